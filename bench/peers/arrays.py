"""NumPy and numexpr: outputs are preallocated unless the case says otherwise."""

import os

import numexpr
import numpy as np

from peer import serve

TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8,
    "i64": np.int64, "bool": np.bool_, "string": np.dtypes.StringDType(),
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "greater": np.greater,
    "and": np.logical_and,
}
FUSED = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "greater": "a > b",
    "mul_add": "a * b + c", "where": "where(a, b, c)", "mul_mul_add": "a * b + c * d",
    "exp_sub_mul": "exp(a - b) * c", "normalise": "(a - b) * c",
}


def operands(case):
    """The case's arrays, filled as the other engines fill theirs."""
    arrays = []
    for n, shape in enumerate(case["shapes"]):
        kind = case["type"]
        if case["op"] == "where" and n == 0:
            kind = "bool"
        if case["op"] == "normalise" and n > 0:
            kind = "f32"
        values = np.arange(int(np.prod(shape))) % 97
        if kind == "string":
            values = np.array([f"text {v}" for v in values], TYPES[kind])
        elif kind == "bool":
            values = values % 3 == 0
        arrays.append(values.astype(TYPES[kind]).reshape(shape))
    if case["transposed"]:
        arrays[0] = arrays[0].T
    if case["backwards"]:
        arrays[0] = arrays[0][..., ::-1]
    return arrays


def into(case, kind, result):
    """The output that is given to a call, or nothing where the call allocates it."""
    return None if case["fresh"] else np.empty(result, kind)


def numpy_call(case, arrays):
    """The case with NumPy's functions, each into memory that is there."""
    op, a, result = case["op"], arrays[0], case["result"]
    if op in BINARY:
        kind = np.bool_ if op in ("greater", "and") else a.dtype
        out, function = into(case, kind, result), BINARY[op]
        return lambda: function(a, arrays[1], out=out)
    if op == "copy":
        out = np.empty(result, a.dtype)
        return lambda: np.copyto(out, a)
    if op == "sum_to":
        lead = len(a.shape) - len(result)
        axes = tuple(k for k in range(a.ndim) if k < lead or result[k - lead] != a.shape[k])
        wide = np.float32 if a.dtype == np.float16 else a.dtype
        return lambda: np.sum(a, axis=axes, dtype=wide)
    out = np.empty(result, np.float32)
    if op == "where":
        return lambda: np.where(*arrays)
    if op == "mul_add":
        return lambda: np.add(np.multiply(a, arrays[1], out=out), arrays[2], out=out)
    if op == "normalise":
        return lambda: np.multiply(np.subtract(a, arrays[1], out=out), arrays[2], out=out)
    if op == "exp_sub_mul":
        return lambda: np.multiply(np.exp(np.subtract(a, arrays[1], out=out), out=out), arrays[2], out=out)
    if op == "mul_mul_add":
        also, (_, b, c, d) = np.empty(result, np.float32), arrays
        return lambda: np.add(np.multiply(a, b, out=out), np.multiply(c, d, out=also), out=out)
    if op == "square_distance":
        return lambda: np.sum((a[:, None, :] - arrays[1][None, :, :]) ** 2, axis=2)
    return None


def numexpr_call(case, arrays):
    """The case as one expression."""
    text = FUSED.get(case["op"])
    if text is None or case["type"] not in ("f32", "f64", "i64", "u8") or case["fresh"]:
        return None
    names = dict(zip("abcd", arrays))
    out = np.empty(case["result"], numexpr.evaluate(text, names).dtype)
    return lambda: numexpr.evaluate(text, names, out=out)


def calls(case):
    if case["type"] not in TYPES:
        return
    arrays, threads = operands(case), os.cpu_count()
    for engine, threads, make in (("numpy", 1, numpy_call), ("numexpr", threads, numexpr_call)):
        call = make(case, arrays)
        if call is not None:
            yield engine, threads, call


numexpr.set_num_threads(os.cpu_count())
serve(calls)
