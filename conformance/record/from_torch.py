"""PyTorch: `broadcast_shapes`, `broadcast_tensors`, `expand`, `add_` (only the right side stretches), and gradients."""

import torch

from common import REFUSED, ask, elements, few_pairs, lists, pairs, plainly, targets, valued, write


def counted(own):
    return torch.arange(elements(own)).reshape(own)


def run(case, operands):
    if case["op"] == "broadcast_tensors":
        return torch.broadcast_tensors(*operands)
    if case["op"] == "expand":
        return [operands[0].expand(case["target"])]
    return [operands[0], torch.zeros(case["shapes"][0], dtype=operands[0].dtype).add_(operands[1])]


def answer(case):
    own = case["shapes"]
    try:
        if case["op"] == "broadcast_shapes":
            yield {"out": list(torch.broadcast_shapes(*map(tuple, own)))}
            return
        shown = run(case, [counted(one) for one in own])
    except RuntimeError:
        yield {"out": REFUSED}
        return
    out = list(shown[0].shape)
    yield {"out": out}
    if not own:
        return
    if valued(case, out, 3):
        yield {"from": [one.flatten().tolist() for one in shown]}
    if valued(case, out, 4) and case["op"] != "add_":
        # The gradient of the sum of all shown operands, each weighted with 0, 1, 2, ...
        real = [torch.zeros(one, dtype=torch.float64, requires_grad=True) for one in own]
        weights = torch.arange(elements(out), dtype=torch.float64).reshape(out)
        sum((one * weights).sum() for one in run(case, real)).backward()
        yield {"sums": [one.grad.flatten().int().tolist() for one in real]}


def cases():
    for own in pairs() + [[[2, 3]]] + lists("several", 400, 3, 5):
        yield ask("broadcast_tensors", "numpy", own)
    for own in [[]] + few_pairs() + lists("several", 400, 3, 5):
        yield ask("broadcast_shapes", "numpy", own)
    for own, target in targets():
        yield ask("expand", "to", [own], target=target)
    for own in few_pairs():
        yield ask("add_", "unidirectional", own)


write("torch", {"torch": torch.__version__.split("+")[0]}, plainly(cases(), answer))
