"""PyTorch, eager on one and on all threads, and compiled: outputs are preallocated where a function takes them."""

import numpy as np
import torch

from peer import NAMES, THREADS, TYPES, function, seen, serve, stored, summed_axes
from steps import steps

HALF = {"bf16": torch.bfloat16}
FUNCTIONS = {
    "Add": torch.add, "Sub": torch.sub, "Mult": torch.mul, "Div": torch.div, "Gt": torch.gt,
    "BitAnd": torch.bitwise_and, "exp": torch.exp, "tanh": torch.tanh, "sin": torch.sin,
    "square": torch.square, "where": torch.where, "sum": torch.sum, "allocating": {"sum"},
}


def tensors(case):
    arrays = zip(stored(case), case["types"])
    first, *rest = (torch.from_numpy(a).to(HALF[kind]) if kind in HALF else torch.from_numpy(a) for a, kind in arrays)
    return [seen(case, first), *rest]


def output(case):
    kind = HALF.get(case["gives"]) or torch.from_numpy(np.empty(0, TYPES[case["gives"]])).dtype
    return None if case["fresh"] else torch.empty(case["result"], dtype=kind)


def refused(case):
    return case["compile"] or case["backwards"] or case["type"] not in {*TYPES, *HALF} - {"string"}


def summed(case, a):
    return torch.sum(a, dim=summed_axes(case), dtype=torch.float32 if a.dtype == torch.float16 else a.dtype)


def value_and_grad(case, compiled):
    """The value and its gradients, by the loss as it is or compiled."""
    operands = tensors(case)
    wrt = [operands[NAMES.index(name)].requires_grad_() for name in case["grad"]]
    loss = function(case, {name: getattr(torch, name) for name in ("log", "mean")})
    loss = torch.compile(loss, dynamic=False) if compiled else loss

    @torch.enable_grad()
    def call():
        value = loss(*operands)
        return value, torch.autograd.grad(value, wrt)

    return call


def eager(case):
    op, shapes = case["op"], case["shapes"]
    if refused(case):
        return None
    if case["grad"]:
        return value_and_grad(case, compiled=False)
    if op == "broadcast_shapes":
        return lambda: torch.broadcast_shapes(*shapes)
    operands = tensors(case)
    a, out = operands[0], output(case)
    if op == "broadcast_to":
        return lambda: torch.broadcast_to(a, case["result"])
    if op == "copy":
        return lambda: out.copy_(a)
    if op == "sum_to":
        return lambda: summed(case, a)
    if op == "a * b + c":
        return lambda: torch.addcmul(operands[2], a, operands[1], out=out)
    return steps(case, operands, FUNCTIONS, out)


def compiled(case):
    """The whole expression, written into the output."""
    if refused(case) or case["op"] in ("broadcast_shapes", "broadcast_to") or (case["fresh"] and not case["grad"]):
        return None
    if case["copy"] == 0:
        torch._dynamo.reset()
    if case["grad"]:
        return value_and_grad(case, compiled=True)
    operands, out = tensors(case), output(case)
    if case["op"] == "copy":
        whole = lambda out, a: out.copy_(a)
    elif case["op"] == "sum_to":
        whole, out = lambda out, a: summed(case, a), None
    else:
        part = function(case, {name: getattr(torch, name) for name in ("exp", "tanh", "sin", "where", "sum")})
        whole = lambda out, *operands: out.copy_(part(*operands))
    whole = torch.compile(whole, dynamic=False)
    return lambda: whole(out, *operands)


torch.set_grad_enabled(False)
engines = [(f"torch-{threads}", threads, eager) for threads in sorted({1, THREADS or 1})]
serve([*engines, ("torch-compile", THREADS, compiled)], ready=torch.set_num_threads)
