"""What NumPy says: values that are worth trying, and how far results may be from NumPy's."""

import math

import ml_dtypes
import numpy as np

import simulcast

DTYPES = [np.dtype(name) for name in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()]
DTYPES.insert(10, np.dtype(ml_dtypes.bfloat16))



def functions(operands):
    """Our operations of so many operands."""
    signature = "(" + ", ".join("abc"[:operands]) + ", /, out=None"
    own = [name for name in simulcast.__all__ if getattr(getattr(simulcast, name), "__name__", None) == name]

    def takes(name):
        return (getattr(getattr(simulcast, name), "__text_signature__", None) or "").replace("decimals=0, ", "")

    return [name for name in own if takes(name).startswith(signature)]


UNARY, BINARY = ([name for name in functions(operands) if hasattr(np, name)] for operands in (1, 2))
"""Those that NumPy has too."""

ROUNDED = set(
    """cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh power
    arctan2""".split()
)
"""Functions whose last bits differ between libraries; all others have the same bits as NumPy's."""

ZEROS = {"maximum", "minimum", "clip", "sign"}
"""Functions that give either zero where 0.0 meets -0.0, as NumPy does from type to type."""

ULP = 2
"""How many numbers apart ours and NumPy's may be: each is within about one of the truth."""


def values(dtype, finite=False):
    """Values at the edges of a type, and ordinary ones."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        own = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 0, 1, 2, 3, 7, 100}
        if dtype.kind == "i":
            own |= {-1, -2, -3, -7, -100}
        return np.array(sorted(own), dtype)
    wild = [] if finite else [np.inf, -np.inf, np.nan]
    if dtype.kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -2.5, 0.3, *wild], dtype.type(0).real.dtype)
        made = np.empty((len(parts), len(parts)), dtype)
        made.real, made.imag = parts[:, None], parts
        return made.ravel()
    info = ml_dtypes.finfo(dtype)
    own = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 7.25, -100.0, 0.1, *wild]
    own += [float(info.max), float(info.min), float(info.tiny), float(info.eps)]
    return np.array(own, dtype)


def bits(x):
    """An array by its bits, NaNs all alike."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return np.stack([bits(x.real), bits(x.imag)])
    if x.dtype.kind in "biu":
        return x
    x = np.where(np.isnan(x), x.dtype.type(np.nan), x)
    return x.view({2: "i2", 4: "i4", 8: "i8"}[x.dtype.itemsize])


def distance(ours, theirs):
    """How many numbers of the type lie between two arrays of floats, at most; infinite where one is NaN or infinite alone."""
    odd = ~(np.isfinite(ours) & np.isfinite(theirs))
    if not (bits(ours[odd]) == bits(theirs[odd])).all():
        return math.inf
    top = 1 << (8 * ours.dtype.itemsize - 1)
    ordered = [np.where(own < 0, -(own.astype("O") + top), own.astype("O")) for own in map(bits, (ours[~odd], theirs[~odd]))]
    return max(map(abs, (ordered[0] - ordered[1]).tolist()), default=0)


def outcome(function, *args, **options):
    """What a call gives, or the class of what it raises, of those that NumPy's functions do."""
    try:
        with np.errstate(all="ignore"):
            return function(*args, **options)
    except OverflowError:
        return OverflowError
    except TypeError:
        return TypeError
    except ValueError:
        return ValueError


def check(name, ours, theirs):
    """Asserts that a result is NumPy's: its class, dtype, shape, and bits, or nearly so where rounding differs."""
    if name == "round" and isinstance(theirs, np.ndarray):
        # Of integers NumPy gives a copy in their byte order; results of ours are in that of the machine.
        theirs = theirs.astype(theirs.dtype.newbyteorder("="))
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours is theirs
        return
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if (bits(ours) == bits(theirs)).all():
        return
    if ours.dtype.kind == "c":
        # Where a part cancels, it is small beside the whole, which is what is right; and what the parts of infinite
        # numbers are is left open by C.
        sound = np.isfinite(ours) & np.isfinite(theirs)
        scale = np.abs(theirs[sound].astype("c16"))
        # Powers multiply the error of a logarithm by the exponent, which is 100 at most here.
        tolerance = (2000 if name == "power" else 16) * np.finfo(ours.dtype).eps
        assert (np.abs(ours[sound].astype("c16") - theirs[sound]) <= tolerance * np.maximum(scale, np.finfo("f4").tiny)).all()
        if name != "power":
            assert (np.isnan(ours) | np.isinf(ours))[~sound].all() and (np.isnan(theirs) | np.isinf(theirs))[~sound].all()
        return
    if name in ZEROS:
        assert ((ours == theirs) | (ours != ours) & (theirs != theirs)).all()
        return
    assert name in ROUNDED and distance(ours, theirs) <= ULP
