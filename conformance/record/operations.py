"""NumPy: every element-wise operation and conversion on every element type, at chosen operands.

Corners (signed zeros, infinities, NaN, subnormal numbers, the ends of integers) meet each other, and
random operands follow. What NumPy leaves undefined or refuses is computed from the table of
`Op` by exact arithmetic: powers with negative exponents, quotients of integers rounded towards 0,
floats outside an integer's range, sums that are rounded once. `erf` and `expit` are SciPy's, bfloat16
is ml_dtypes'.

    python3 operations.py OUTPUT.jsonl
"""

import math
import os
import sys
import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import scipy
import scipy.special

from common import Draw, line

warnings.simplefilter("ignore")

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
TYPES = {name: np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name) for name in NAMES}
# How many corners meet each other, and how many operands are drawn.
CORNERS, DRAWN = 9, 24


def kind(dtype):
    return "f" if dtype == ml_dtypes.bfloat16 else dtype.kind


def corners(dtype):
    """The most telling first."""
    if kind(dtype) == "b":
        return [False, True]
    if kind(dtype) in "iu":
        own = np.iinfo(dtype)
        width = own.bits
        few = [0, 1, own.max, own.min, 3, own.max // 2 + 1, width - 1, width, 7, 2]
        return few[:6] + ([-1, -7, width, 2] if own.min else [width - 1, width, 7, 2]) + [5, 10, 100]
    own = ml_dtypes.finfo(dtype)
    small, large = float(own.smallest_subnormal), float(own.max)
    return [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.5, 2.5, -small, large,
            0.5, -0.5, 1.5, -2.5, -1.0, 3.0, small, -large, float(own.tiny), float(own.eps), 0.49999997, 8388609.0]


def drawn(draw, dtype, count):
    if kind(dtype) == "b":
        return [draw.chance(0.5) for _ in range(count)]
    if kind(dtype) in "iu":
        own = np.iinfo(dtype)
        def one():
            size = draw.below(own.bits) + 1
            value = int(draw.random() * 2 ** 53) * 2 ** 11 >> max(64 - size, 0)
            return max(own.min, min(own.max, -value if own.min and draw.chance(0.5) else value))
        return [one() for _ in range(count)]
    def one():
        value = (draw.random() * 2 - 1) * draw.of([1, 1, 4, 4, 20, 100, 1e4])
        return round(value) if draw.chance(0.1) else value
    return [one() for _ in range(count)]


def operands(name, arity):
    """`arity` arrays of operands that meet."""
    dtype = TYPES[name]
    draw = Draw("%s %d" % (name, arity))
    if kind(dtype) == "c":
        part = np.dtype("float%d" % (dtype.itemsize * 4))
        if arity == 1:
            own = corners(part)[:8]
            pairs = [(a, b) for a in own for b in own]
            pairs += list(zip(drawn(draw, part, DRAWN), drawn(draw, part, DRAWN)))
            return [np.array([complex(a, b) for a, b in pairs]).astype(dtype)]
        own = [0.0, -0.0, 1.0, -1.5, math.inf, math.nan]
        values = [complex(draw.of(own), draw.of(own)) for _ in range(arity * 40)]
        values += [complex(*drawn(draw, part, 2)) for _ in range(arity * DRAWN)]
        return [np.array(values[k::arity]).astype(dtype) for k in range(arity)]
    own = corners(dtype)
    if arity == 1:
        return [array(own + drawn(draw, dtype, DRAWN), dtype)]
    few = own[:CORNERS]
    if arity == 2:
        rows = [(a, b) for a in few for b in few]
    else:
        rows = [[draw.of(own) for _ in range(3)] for _ in range(40)]
    arrays = []
    for k in range(arity):
        arrays.append(array([row[k] for row in rows] + drawn(draw, dtype, DRAWN), dtype))
    return arrays


def array(values, dtype):
    """Integers are not to be floats on the way, as large ones beside small ones would be."""
    return np.array(values, dtype=dtype) if kind(dtype) in "iu" else np.array(values).astype(dtype)


def wide(function):
    """A function computed in twice the width and rounded: NumPy's and SciPy's short ones lose bits."""
    def apply(*arrays):
        dtype = arrays[0].dtype
        more = {"f": np.float64, "F": np.complex128}.get(dtype.char, dtype)
        return function(*(one.astype(more) for one in arrays)).astype(dtype)
    return apply


def wrapped(value, dtype):
    own = np.iinfo(dtype)
    return (int(value) - own.min) % 2 ** own.bits + own.min


def each(function):
    """Exact arithmetic on integers, wrapped at the end."""
    def apply(*arrays):
        dtype = arrays[0].dtype
        rows = zip(*(array.tolist() for array in arrays))
        return array([wrapped(function(*row), dtype) for row in rows], dtype)
    return apply


def power(a, b):
    if b >= 0:
        return pow(a, b, 2 ** 64)
    # One over a number of at least two is less than one.
    return math.trunc(Fraction(a) ** (b % 2 - 2)) if a else 0


def fused(a, b, c):
    """`a * b + c`, rounded once."""
    def one(a, b, c):
        if not all(map(math.isfinite, (a, b, c))):
            return a * b + c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return nearest(exact, a_type, zero=a * b + c)
    a_type = a.dtype
    return np.array([one(*row) for row in zip(a.tolist(), b.tolist(), c.tolist())]).astype(a_type)


def nearest(exact, dtype, zero=0.0):
    """The nearest number of a type, halves to even."""
    if exact == 0:
        return zero
    own = ml_dtypes.finfo(dtype)
    digits = own.nmant + 1
    exponent = math.floor(math.log2(abs(exact.numerator))) - math.floor(math.log2(exact.denominator))
    while Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(exact):
        exponent += 1
    place = max(exponent, int(own.minexp)) - digits + 1
    count = round(exact / Fraction(2) ** place)
    if abs(count) >= 2 ** (own.maxexp - place):
        return math.inf if exact > 0 else -math.inf
    return math.copysign(float(count * Fraction(2) ** place), 1 if exact > 0 else -1)


NUMPYS = """negative absolute sign sqrt cbrt square exp exp2 expm1 log log2 log10 log1p sin cos tan
    arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc logical_not isnan isinf
    isfinite conjugate add subtract multiply divide floor_divide remainder fmod arctan2 hypot maximum minimum
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift equal
    not_equal less less_equal greater greater_equal""".split()


FUNCTIONS = """sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arccosh arctanh""".split()


def loops(function, dtype):
    """Whether NumPy has a loop for the type itself, rather than for one it converts to."""
    own = dtype.char * function.nin + "->"
    return any(types.startswith(own) for types in function.types)


def operations(dtype):
    """Name, arity and function of each operation on a type."""
    if kind(dtype) == "f" and dtype.itemsize == 2:
        return
    for name in NUMPYS:
        function = getattr(np, name)
        if loops(function, dtype):
            yield name, function.nin, wide(function) if name in FUNCTIONS else function
    if dtype.kind == "b":
        yield "bitwise_not", 1, np.invert
        return
    yield "real", 1, lambda a: a.real
    yield "imag", 1, lambda a: a.imag
    if dtype.kind in "iu":
        yield "bitwise_not", 1, np.invert
        yield "power", 2, each(power)
        yield "trunc_divide", 2, each(lambda a, b: math.trunc(Fraction(a, b)) if b else 0)
        yield "reciprocal", 1, each(lambda a: math.trunc(Fraction(1, a)) if a else 0)
        yield "relu", 1, lambda a: np.maximum(a, dtype.type(0))
        yield "multiply_add", 3, lambda a, b, c: a * b + c
        yield "round", 1, np.round
        return
    yield "power", 2, wide(np.power)
    yield "reciprocal", 1, np.reciprocal
    yield "round", 1, np.rint
    yield "multiply_add", 3, lambda a, b, c: a * b + c
    if dtype.kind == "f":
        yield "fused multiply_add", 3, fused
        yield "erf", 1, wide(scipy.special.erf)
        yield "sigmoid", 1, wide(scipy.special.expit)
        yield "relu", 1, lambda a: np.where(a <= 0, dtype.type(0), a)


def converted(values, to):
    """The values as another type, each rounded once; to integers towards 0 and within their range."""
    own, dtype = kind(values.dtype), TYPES[to]
    if kind(dtype) in "iu" and own in "fc":
        limits = np.iinfo(dtype)
        def one(x):
            x = x.real
            return 0 if math.isnan(x) else max(limits.min, min(limits.max, math.trunc(x) if math.isfinite(x) else
                                                             math.copysign(10 ** 30, x)))
        return array([int(one(x)) for x in values.tolist()], dtype)
    if kind(dtype) == "f":
        def one(x):
            x = x.real
            return nearest(Fraction(x), dtype, x) if math.isfinite(x) else x
        return np.array([float(one(x)) for x in values.tolist()]).astype(dtype)
    return values.astype(dtype)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: %s OUTPUT.jsonl" % sys.argv[0])
    with open(sys.argv[1] + ".part", "w") as out:
        out.write(line({"system": "numpy", "versions": {
            "numpy": np.__version__, "scipy": scipy.__version__, "ml_dtypes": ml_dtypes.__version__}}))
        for name in NAMES:
            own = {arity: operands(name, arity) for arity in (1, 2, 3)}
            out.write(line({"dtype": name, "operands": [[a.tobytes().hex() for a in own[n]] for n in (1, 2, 3)]}))
            for op, arity, function in operations(TYPES[name]):
                result = function(*own[arity])
                out.write(line({"op": op, "dtype": name, "result": str(result.dtype), "out": result.tobytes().hex()}))
            choice = np.arange(len(own[3][0])) % 3 == 1
            result = np.where(choice, own[3][1], own[3][2])
            out.write(line({"op": "where", "dtype": name, "result": name, "out": result.tobytes().hex()}))
            for to in NAMES:
                out.write(line({"cast": to, "dtype": name, "out": converted(own[1][0], to).tobytes().hex()}))
    os.replace(sys.argv[1] + ".part", sys.argv[1])


if __name__ == "__main__":
    main()
