"""NumPy and numexpr: outputs are preallocated unless the case says otherwise."""

import numexpr
import numpy as np

from peer import NAMES, THREADS, TYPES, operands, serve, summed_axes
from steps import steps

FUNCTIONS = {
    "Add": np.add, "Sub": np.subtract, "Mult": np.multiply, "Div": np.divide, "Gt": np.greater,
    "BitAnd": np.bitwise_and, "exp": np.exp, "tanh": np.tanh, "sin": np.sin, "square": np.square,
    "where": np.where, "sum": np.sum, "allocating": {"where", "sum"},
}


def output(case):
    return None if case["fresh"] else np.empty(case["result"], TYPES[case["gives"]])


def numpy_call(case):
    op, shapes, result = case["op"], case["shapes"], tuple(case["result"])
    if case["compile"] or case["grad"] or case["type"] not in TYPES:
        return None
    if op == "broadcast_shapes":
        shapes = [tuple(shape) for shape in shapes]
        return lambda: np.broadcast_shapes(*shapes)
    arrays = operands(case)
    a = arrays[0]
    if op == "broadcast_to":
        return lambda: np.broadcast_to(a, result)
    if op == "copy":
        out = np.empty(result, a.dtype)
        return lambda: np.copyto(out, a)
    if op == "sum_to":
        wide, axes = np.float32 if a.dtype == np.float16 else a.dtype, summed_axes(case)
        return lambda: np.sum(a, axis=axes, dtype=wide)
    return steps(case, arrays, FUNCTIONS, output(case))


def numexpr_call(case):
    if set(case["types"]) - {"f32", "f64", "i64", "u8", "bool"} or case["fresh"] or case["grad"] or "[" in case["op"]:
        return None
    if case["op"] in ("copy", "sum_to", "broadcast_shapes", "broadcast_to"):
        return None
    if case["compile"] and case["type"] == "f32":
        signature = [(name, float) for name in NAMES]  # which is what it calls float32
        return lambda: numexpr.NumExpr(case["op"], signature)
    names, out = dict(zip(NAMES, operands(case))), output(case)
    return lambda: numexpr.evaluate(case["op"], names, out=out)


numexpr.set_num_threads(THREADS)
serve([("numpy", 1, numpy_call), ("numexpr", THREADS, numexpr_call)])
