"""NumPy: `broadcast_shapes`, `broadcast_to`, `+=` (only the right side stretches), and values."""

import numpy as np

from common import REFUSED, ask, elements, few_pairs, lists, pairs, plainly, shapes, targets, valued, write


def counted(own):
    """An operand that holds the row-major position of each element."""
    return np.arange(elements(own)).reshape(own)


def cases():
    every = [[a, b] for a in shapes(3, range(4)) for b in shapes(3, range(4))]
    several = [[]] + [[a] for a in shapes(2, range(4))] + lists("several", 700, 3, 5)
    for own in pairs() + every + several:
        yield ask("broadcast_shapes", "numpy", own)
    for own, target in targets():
        yield ask("broadcast_to", "to", [own], target=target)
    for own in few_pairs():
        yield ask("+=", "unidirectional", own)
    yield ask("broadcast_shapes", "numpy", [[1] * 16 + [2], [3, 1], [2]])


def answer(case):
    own = case["shapes"]
    try:
        if case["op"] == "broadcast_shapes":
            out = np.broadcast_shapes(*map(tuple, own))
            shown = np.broadcast_arrays(*map(counted, own))
        elif case["op"] == "broadcast_to":
            shown = [np.broadcast_to(counted(own[0]), case["target"])]
            out = shown[0].shape
        else:
            first = counted(own[0])
            into = np.zeros(own[0], dtype=int)
            into += counted(own[1])
            shown, out = [first, into], into.shape
    except ValueError:
        yield {"out": REFUSED}
        return
    yield {"out": list(out)}
    if own and valued(case, out, 4):
        yield {"from": [one.ravel().tolist() for one in shown]}


write("numpy", {"numpy": np.__version__}, plainly(cases(), answer))
