"""mpmath: the elementary functions at chosen arguments, correctly rounded to `f32` and `f64`.

Beside each rounded answer stands how far the exact one is from it, in thousandths of a unit in the
last place, so that a test can tell an error of half a unit from one of a whole. Where mpmath has no
say (infinities, NaN, signed zeros, arguments outside the domain) the answer is NumPy's.

    python3 functions.py OUTPUT.jsonl
"""

import math
import os
import struct
import sys
import warnings

import mpmath
import numpy as np
from mpmath import mp, mpf

from common import Draw, line

mp.prec = 200
warnings.simplefilter("ignore")


class Type:
    def __init__(self, name, code, bits, digits, least, most):
        self.name, self.code, self.bits, self.digits = name, code, bits, digits
        # The exponents of the smallest and the largest normal number.
        self.least, self.most = least, most
        self.numpy = {"f32": np.float32, "f64": np.float64}[name]

    def of_bits(self, bits):
        integer = {32: "<I", 64: "<Q"}[self.bits]
        return struct.unpack("<" + self.code, struct.pack(integer, bits))[0]

    def hex(self, x):
        """The bits of a number of this type, NaN as `nan`."""
        if math.isnan(x):
            return "nan"
        return struct.pack(">" + self.code, x).hex()

    def near(self, x):
        """The number of this type that is nearest to a finite one."""
        return float(self.numpy(float(x)))

    def rounded(self, exact):
        """The nearest number, ties to even, and the rest in thousandths of its last place."""
        place = max(exact.exp + exact.bc - 1, self.least) - self.digits + 1
        scaled = mp.ldexp(exact, -place)
        count = mp.nint(scaled)
        rest = int(mp.nint((scaled - count) * 1000))
        if abs(count) >= mpf(2) ** (self.most + 1 - place):
            return math.copysign(math.inf, exact), 0
        return math.copysign(float(mp.ldexp(count, place)), exact), rest


TYPES = [Type("f32", "f", 32, 24, -126, 127), Type("f64", "d", 64, 53, -1022, 1023)]

def c99_power(x, y):
    """NumPy's power of several exponents: of a single 0.5 it takes the root, which is not C99's."""
    return np.power(np.array([x, 2], x.dtype), np.array([y, 3], x.dtype))[0]


# The function here, NumPy's, and where its arguments are drawn from.
FUNCTIONS = {
    "exp": (mp.exp, np.exp, [(-1, 1), (-104, 89), (-746, 710)]),
    "exp2": (lambda x: mpf(2) ** x, np.exp2, [(-1, 1), (-150, 128), (-1075, 1024)]),
    "expm1": (mp.expm1, np.expm1, [(-1, 1), (-40, 89), (-1e-3, 1e-3), (0, 710)]),
    "log": (mp.log, np.log, [(0.5, 2), (0.99, 1.01), (0, 1e6)]),
    "log2": (lambda x: mp.log(x) / mp.ln2, np.log2, [(0.5, 2), (0.99, 1.01), (0, 1e6)]),
    "log10": (lambda x: mp.log(x) / mp.ln10, np.log10, [(0.5, 2), (0.99, 1.01), (0, 1e6)]),
    "log1p": (mp.log1p, np.log1p, [(-1, 1), (-1e-3, 1e-3), (0, 1e6)]),
    "sin": (mp.sin, np.sin, [(-4, 4), (-1000, 1000), (-1e6, 1e6), (-1e9, 1e9)]),
    "cos": (mp.cos, np.cos, [(-4, 4), (-1000, 1000), (-1e6, 1e6), (-1e9, 1e9)]),
    "tan": (mp.tan, np.tan, [(-4, 4), (-1000, 1000)]),
    "tanh": (mp.tanh, np.tanh, [(-1, 1), (-0.1, 0.1), (-10, 10), (-20, 20)]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: 1 / (1 + np.exp(-x)),
                [(-1, 1), (-40, 40), (-104, -87), (-746, 0)]),
    "erf": (mp.erf, lambda x: type(x)(math.erf(x)), [(-1, 1), (0.8, 1), (-4, 4), (-6, 6)]),
    "asin": (mp.asin, np.arcsin, [(-1, 1), (0.99, 1)]),
    "acos": (mp.acos, np.arccos, [(-1, 1), (0.99, 1)]),
    "atan": (mp.atan, np.arctan, [(-1, 1), (-10, 10)]),
    "sinh": (mp.sinh, np.sinh, [(-1, 1), (-710, 710)]),
    "cosh": (mp.cosh, np.cosh, [(-1, 1), (-710, 710)]),
    "asinh": (mp.asinh, np.arcsinh, [(-1, 1), (-100, 100)]),
    "acosh": (mp.acosh, np.arccosh, [(1, 2), (1, 100)]),
    "atanh": (mp.atanh, np.arctanh, [(-1, 1), (0.99, 1)]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt, [(-2, 2), (0, 1e6)]),
}
PAIRS = {
    "pow": (mp.power, c99_power,
            [((0, 4), (-40, 40)), ((0.99, 1.01), (-4000, 4000)), ((0, 1e4), (-8, 8)),
             ((0.9999999, 1.0000001), (-1e8, 1e8)), ((0, 2), (-300, 300))]),
    "atan2": (mp.atan2, np.arctan2, [((-1, 1), (-1, 1)), ((-9, 9), (-9, 9))]),
    "hypot": (mp.hypot, np.hypot, [((-1, 1), (-1, 1)), ((-9, 9), (-9, 9))]),
}
# Doubles and singles that are exceptionally near to multiples of half a turn's half.
NEAR_TURNS = [6381956970095103 * 2.0 ** 797, 5.319372648326541e255, 16367173 * 2.0 ** 72, 1e22, 2.0 ** 120]


def specials(own):
    fraction = own.digits - 1
    one = own.of_bits
    smallest = 1 << fraction
    unit = (own.bits == 32 and 127 or 1023) << fraction
    largest = ((1 << (own.bits - 1 - fraction)) - 1 << fraction) - 1
    some = [0, 1, 2, 12345, smallest - 1, smallest, smallest + 1, unit - 1, unit, unit + 1,
            unit + smallest, unit - smallest, unit + (1 << fraction - 1), largest, largest + 1]
    return [sign * one(bits) for bits in some for sign in (1.0, -1.0)] + [math.nan]


def drawn(draw, own, low, high):
    """Evenly, or, every other time, evenly among the exponents towards zero."""
    x = low + (high - low) * draw.random()
    if low <= 0 <= high and draw.chance(0.3):
        x *= 2.0 ** -draw.below(30)
    return own.near(x)


def anything(draw, own):
    """Any number that is not a NaN, so that all exponents come up."""
    while True:
        x = own.of_bits(draw.below(1 << 16) << own.bits - 16 | draw.below(1 << 48) >> 64 - own.bits)
        if not math.isnan(x):
            return x


def arguments(name, own):
    draw = Draw("%s %s" % (name, own.name))
    if name in PAIRS:
        few = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.0, 3.0, -3.0, 4.0, -7.0, own.of_bits(1),
               2.0 ** own.digits, -(2.0 ** own.digits) + 1, 2.0 ** own.digits + 2,
               math.inf, -math.inf, math.nan]
        out = [(x, y) for x in few for y in few]
        for xs, ys in PAIRS[name][2]:
            out += [(drawn(draw, own, *xs), drawn(draw, own, *ys)) for _ in range(60)]
        out += [(anything(draw, own), anything(draw, own)) for _ in range(40)]
        out += [(anything(draw, own), drawn(draw, own, -2, 2)) for _ in range(60)]
        out += [(-abs(drawn(draw, own, -9, 9)), float(draw.below(99) - 49)) for _ in range(40)]
        return out
    out = specials(own)
    for low, high in FUNCTIONS[name][2]:
        out += [drawn(draw, own, low, high) for _ in range(60)]
    out += [anything(draw, own) for _ in range(60)]
    if name in ("sin", "cos", "tan"):
        most = [3, 100, 20000, 600000, 2 ** 30]
        turns = [1 + draw.below(most[k % len(most)]) for k in range(80)]
        out += [own.near(mp.pi / 2 * turn) for turn in turns]
        out += [own.near(x) for x in NEAR_TURNS if abs(x) < 2.0 ** own.most]
    return [(x,) for x in out]


def answer(name, own, xs):
    function, numpys, _ = PAIRS[name] if name in PAIRS else FUNCTIONS[name]
    if all(math.isfinite(x) and x for x in xs):
        try:
            exact = function(*map(mpf, xs))
        except (ValueError, ZeroDivisionError):
            exact = None
        if isinstance(exact, mpf) and mp.isfinite(exact) and exact:
            return own.rounded(exact)
    return float(numpys(*map(own.numpy, xs))), 0


def points(name, own):
    seen = set()
    for xs in arguments(name, own):
        text = " ".join(map(own.hex, xs))
        if text not in seen:
            seen.add(text)
            y, rest = answer(name, own, xs)
            yield "%s %s %d" % (text, own.hex(y), rest)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: %s OUTPUT.jsonl" % sys.argv[0])
    with open(sys.argv[1] + ".part", "w") as out:
        out.write(line({"system": "mpmath",
                        "versions": {"mpmath": mpmath.__version__, "numpy": np.__version__}}))
        for name in list(FUNCTIONS) + list(PAIRS):
            for own in TYPES:
                every = list(points(name, own))
                out.write(line({"op": name, "type": own.name, "points": every}))
                sys.stdout.write("%s of %s: %d points\n" % (name, own.name, len(every)))
    os.replace(sys.argv[1] + ".part", sys.argv[1])


if __name__ == "__main__":
    main()
