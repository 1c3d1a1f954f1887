"""What is an array: everything that is not a plain `ndarray` comes through here, and becomes one or is refused.

Refused are masked arrays (their mask would be lost) and classes that opt out of NumPy's operators.
"""

import sys

import numpy as np


def dask_array():
    """The module `dask.array`, where the program has imported it; we never do."""
    return sys.modules.get("dask.array")


def prepare(operands):
    """Plain arrays for all operands; None where one is a Dask array."""
    dask = dask_array()
    if dask is not None and any(isinstance(x, dask.Array) for x in operands):
        return None
    return [plain(x) for x in operands]


def plain(x):
    """An array of the class `ndarray` itself, which shares the memory of `x` where that is possible."""
    kind = type(x)
    if kind is np.ndarray:
        return x
    if isinstance(x, np.ndarray):
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(x, masked.MaskedArray):
            raise TypeError("a masked array would lose its mask; pass x.filled(...) or x.data")
        return x.view(np.ndarray)
    if getattr(kind, "__array_ufunc__", False) is None:
        raise TypeError(f"{kind.__name__} refuses NumPy's operators (__array_ufunc__ is None)")
    if hasattr(kind, "__dlpack__") and not isinstance(x, np.generic):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError):
            # Another device, or a dtype that DLPack lacks: what the class itself offers, or nothing.
            if not hasattr(kind, "__array__"):
                raise TypeError(f"{kind.__name__} is no array in this machine's memory") from None
    return np.asarray(x)


def sound(x):
    """A copy whose elements lie as Rust reads them: native bytes, aligned, whole strides."""
    return np.array(x, dtype=x.dtype.newbyteorder("="), order="C", copy=True)
