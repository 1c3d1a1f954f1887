"""NumPy's types: `promote_types`, `result_type`, `can_cast`, and the result type of each operation on each
pair of types and literals, with `ml_dtypes`' bfloat16; which literals fit; comparisons at the ends of the integers.

    python promotion.py promotion.jsonl

One table a line: a row for each first operand, in the order of `operands` in the header, and a word for each
second one. `-` stands for a refusal.
"""

import json
import os
import sys
import warnings

import ml_dtypes
import numpy as np

warnings.simplefilter("ignore")

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
LITERALS = [True, 1, 1.5, 1j]
UNARY = ["negative", "absolute", "sign", "sqrt", "cbrt", "square", "reciprocal", "exp", "exp2", "expm1", "log",
         "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
         "arcsinh", "arccosh", "arctanh", "floor", "ceil", "round", "trunc", "logical_not", "bitwise_not", "isnan",
         "isinf", "isfinite", "conjugate", "real", "imag"]
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power", "arctan2", "hypot",
          "maximum", "minimum", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
          "bitwise_xor", "left_shift", "right_shift", "equal", "not_equal", "less", "less_equal", "greater",
          "greater_equal"]
EDGES = sorted({sign * (2 ** bits) + off for bits in (7, 8, 15, 16, 31, 32, 63, 64, 70) for sign in (-1, 1)
                for off in (-1, 0, 1)} | {0, 1, 300})


def dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def array(name):
    return np.ones(1, dtype(name))


def asked(call):
    try:
        out = call()
    except (TypeError, OverflowError):
        return "-"
    return np.dtype(getattr(out, "dtype", out)).name


def table(operands, call):
    return [" ".join(asked(lambda: call(a, b)) for b in operands) for a in operands]


def ends(name):
    info = np.iinfo(name)
    return [info.min, info.min + 1, 0, info.max - 1, info.max]


def lines():
    operands = [array(name) for name in TYPES] + LITERALS
    types = [dtype(name) for name in TYPES]
    yield {"ask": "promote_types", "out": table(types, np.promote_types)}
    yield {"ask": "result_type", "out": table(operands, np.result_type)}
    for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
        rows = ["".join(str(int(np.can_cast(a, b, casting))) for b in types) for a in types]
        yield {"ask": "can_cast", "casting": casting, "out": rows}
    for name in UNARY:
        yield {"ask": name, "out": [" ".join(asked(lambda: getattr(np, name)(a)) for a in operands[:-len(LITERALS)])]}
    for name in BINARY:
        yield {"ask": name, "out": table(operands, getattr(np, name))}
    condition = array("bool")
    yield {"ask": "where", "out": table(operands, lambda a, b: np.where(condition, a, b))}
    for name in ("add", "divide", "hypot", "left_shift", "logical_and"):
        for own in TYPES:
            row = " ".join(asked(lambda: getattr(np, name)(array(own), value)) for value in EDGES)
            yield {"ask": "literal", "op": name, "type": own, "out": row}
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        op = getattr(np, name)
        for own in TYPES[1:9]:
            values = np.array(ends(own), own)
            row = ["".join(str(int(x)) for x in op(values, value)) for value in EDGES]
            yield {"ask": "compare", "op": name, "type": own, "literals": " ".join(row)}
        for own, other in (("int64", "uint64"), ("uint64", "int64"), ("int8", "uint64"), ("uint64", "int16")):
            out = op(np.array(ends(own), own)[:, None], np.array(ends(other), other))
            yield {"ask": "mixed", "op": name, "types": [own, other],
                   "out": " ".join("".join(str(int(x)) for x in row) for row in out)}


if len(sys.argv) != 2:
    raise SystemExit("usage: %s OUTPUT.jsonl" % sys.argv[0])
versions = {"numpy": np.__version__, "ml_dtypes": ml_dtypes.__version__}
header = {"system": "numpy", "versions": versions, "operands": TYPES + [str(x) for x in LITERALS],
          "edges": [str(x) for x in EDGES]}
with open(sys.argv[1] + ".part", "w") as out:
    for line in [header] + list(lines()):
        out.write(json.dumps(line, separators=(",", ":")) + "\n")
os.replace(sys.argv[1] + ".part", sys.argv[1])
