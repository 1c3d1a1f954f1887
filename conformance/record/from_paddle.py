"""Paddle: `elementwise_add` with its axis, `broadcast_tensors`, `broadcast_to`, and gradients; executed on the CPU."""

import warnings

warnings.simplefilter("ignore")

import numpy as np
import paddle
from paddle import _legacy_C_ops

from common import (
    REFUSED, ask, elements, few_pairs, isolated, lists, placed, targets, valued, write,
)

paddle.set_device("cpu")
ERRORS = (ValueError, RuntimeError, MemoryError, OSError, NotImplementedError)


def counted(own, step=1):
    return paddle.to_tensor((np.arange(elements(own), dtype=np.int64).reshape(own) + 1) * step)


def run(case, operands):
    if case["op"] == "elementwise_add":
        return [_legacy_C_ops.elementwise_add(operands[0], operands[1], "axis", case["axis"])]
    if case["op"] == "broadcast_tensors":
        return paddle.broadcast_tensors(operands)
    return [paddle.broadcast_to(operands[0], case["target"])]


def answer(case):
    own = case["shapes"]
    added = case["op"] == "elementwise_add"
    operands = [counted(one, 1000 ** k if added else 1) for k, one in enumerate(own)]
    try:
        results = run(case, operands)
    except ERRORS:
        yield {"out": REFUSED}
        return
    out = list(results[0].shape)
    yield {"out": out}
    if overhangs(case) or not valued(case, out, 3):
        return
    flat = [result.numpy().ravel() for result in results]
    if added:
        flat = [flat[0] // 1000 ** k % 1000 for k in range(2)]
    yield {"from": [(one - 1).tolist() for one in flat]}
    if valued(case, out, 6):
        real = [paddle.to_tensor(np.zeros(one), stop_gradient=False) for one in own]
        results = run(case, real)
        delta = paddle.to_tensor(np.arange(elements(out), dtype=np.float64).reshape(out))
        try:
            grads = paddle.grad(results, real, [delta] * len(results))
        except ERRORS:
            yield {"sums": REFUSED}
            return
        if all(list(grad.shape) == one for grad, one in zip(grads, own)):
            yield {"sums": [grad.numpy().ravel().astype(int).tolist() for grad in grads]}


def overhangs(case):
    """The shorter shape would reach over the end of the longer; Paddle does not look."""
    ranks = sorted(map(len, case["shapes"]))
    return "axis" in case and ranks[0] < ranks[1] and ranks[0] + max(case["axis"], 0) > ranks[1]


def cases():
    for a, b, axis in placed():
        yield ask("elementwise_add", "paddle", [a, b], axis=axis)
    for own in few_pairs() + lists("several", 300, 3, 4):
        yield ask("broadcast_tensors", "numpy", own)
    for own, target in targets():
        yield ask("broadcast_to", "to", [own], target=target)


def settled(answers):
    """Where Paddle reads and writes past a list of sizes, a case that is not refused dies or passes
    by accident, differently from run to run: its answer is undefined."""
    for reply in answers:
        if overhangs(reply) and reply["out"] != REFUSED:
            reply.pop("signal", None)
            reply["out"] = "undefined"
        yield reply


if __name__ == "__main__":
    answers = isolated(cases(), answer, alone=overhangs, patience=20)
    write("paddle", {"paddlepaddle": paddle.__version__}, settled(answers))
