"""PyTorch, eager, on one and on all threads: outputs are preallocated where a function takes them."""

import os

import torch

from peer import serve

TYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "u8": torch.uint8, "i64": torch.int64, "bool": torch.bool,
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "greater": torch.gt,
    "and": torch.logical_and,
}


def operands(case):
    """The case's tensors, filled as the other engines fill theirs."""
    tensors = []
    for n, shape in enumerate(case["shapes"]):
        kind = case["type"]
        if case["op"] == "where" and n == 0:
            kind = "bool"
        if case["op"] == "normalise" and n > 0:
            kind = "f32"
        count = 1
        for size in shape:
            count *= size
        values = torch.arange(count) % 97
        if kind == "bool":
            values = values % 3 == 0
        tensors.append(values.to(TYPES[kind]).reshape(shape))
    if case["transposed"]:
        tensors[0] = tensors[0].T
    return tensors


def call_of(case, tensors):
    op, a, result = case["op"], tensors[0], case["result"]
    if op in BINARY:
        function, b = BINARY[op], tensors[1]
        if case["fresh"]:
            return lambda: function(a, b)
        out = torch.empty(result, dtype=torch.bool if op in ("greater", "and") else a.dtype)
        return lambda: function(a, b, out=out)
    if op == "copy":
        out = torch.empty(result, dtype=a.dtype)
        return lambda: out.copy_(a)
    if op == "sum_to":
        lead = len(a.shape) - len(result)
        axes = [k for k in range(a.dim()) if k < lead or result[k - lead] != a.shape[k]]
        wide = torch.float32 if a.dtype == torch.float16 else a.dtype
        return lambda: torch.sum(a, dim=axes, dtype=wide)
    if op == "where":
        out = torch.empty(result, dtype=torch.float32)
        return lambda: torch.where(a, tensors[1], tensors[2], out=out)
    if op == "mul_add":
        out = torch.empty(result, dtype=torch.float32)
        return lambda: torch.addcmul(tensors[2], a, tensors[1], out=out)
    out = torch.empty(result, dtype=torch.float32)
    if op == "normalise":
        return lambda: torch.mul(torch.sub(a, tensors[1], out=out), tensors[2], out=out)
    if op == "exp_sub_mul":
        return lambda: torch.mul(torch.exp(torch.sub(a, tensors[1], out=out), out=out), tensors[2], out=out)
    if op == "mul_mul_add":
        also, (_, b, c, d) = torch.empty(result, dtype=torch.float32), tensors
        return lambda: torch.add(torch.mul(a, b, out=out), torch.mul(c, d, out=also), out=out)
    if op == "square_distance":
        return lambda: ((a[:, None, :] - tensors[1][None, :, :]) ** 2).sum(dim=2)
    return None


def on(threads, call):
    torch.set_num_threads(threads)
    return call


def calls(case):
    if case["type"] not in TYPES or case["backwards"]:
        return
    with torch.inference_mode():
        call = call_of(case, operands(case))
        for threads in sorted({1, os.cpu_count()}):
            if call is not None:
                yield f"torch-{threads}", threads, on(threads, call)


serve(calls)
