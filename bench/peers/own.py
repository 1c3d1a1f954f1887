"""Our own Python package: functions by name where the case is one operation, else a compiled expression."""

import ml_dtypes
import numpy as np
import simulcast

from peer import NAMES, THREADS, TYPES, operands, serve

KINDS = {**TYPES, "bf16": ml_dtypes.bfloat16}
FUNCTIONS = {
    "a + b": "add", "a - b": "subtract", "a * b": "multiply", "a > b": "greater", "a & b": "bitwise_and",
    "exp(a)": "exp", "tanh(a)": "tanh", "sin(a)": "sin", "where(a, b, c)": "where",
}


def call(case):
    op, shapes, result = case["op"], case["shapes"], tuple(case["result"])
    # Its programs are made when they are first called, with the types that come; of text there are only views.
    if case["compile"] or set(case["types"]) - (set(KINDS) - {"string"}):
        return None
    if op == "broadcast_shapes":
        shapes = [tuple(shape) for shape in shapes]
        return lambda: simulcast.broadcast_shapes(*shapes)
    arrays = [array.astype(KINDS[kind], copy=False) for array, kind in zip(operands(case), case["types"])]
    if op == "broadcast_to":
        return lambda: simulcast.broadcast_to(arrays[0], result)
    if op == "sum_to":
        return lambda: simulcast.sum_to(arrays[0], result)
    if case["grad"]:
        loss, names = simulcast.value_and_grad(op, wrt=case["grad"]), dict(zip(NAMES, arrays))
        return lambda: loss(**names)
    out = None if case["fresh"] else np.empty(result, KINDS[case["gives"]])
    if op in FUNCTIONS:
        function = getattr(simulcast, FUNCTIONS[op])
        return lambda: function(*arrays, out=out)
    # What is copied is an expression of one name, which stretches to the output.
    expression, names = simulcast.compile("a" if op == "copy" else op), dict(zip(NAMES, arrays))
    return lambda: expression(out=out, **names)


if __name__ == "__main__":
    serve([("simulcast-python", THREADS, call)])
