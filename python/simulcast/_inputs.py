"""What is an array: everything that is not a plain `ndarray` comes through here, and becomes one or is refused.

Refused are masked arrays (their mask would be lost) and classes that opt out of NumPy's operators.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray


def dask_array() -> ModuleType | None:
    """The module `dask.array`, where the program has imported it; we never do."""
    return sys.modules.get("dask.array")


def is_number(x: object) -> bool:
    """Whether it is a number of Python's own classes, which is weak."""
    return type(x) in (bool, int, float, complex)


def prepare(operands: Sequence[Any]) -> list[NDArray[Any]] | None:
    """Plain arrays for all operands; None where one is a Dask array."""
    dask = dask_array()
    if dask is not None and any(isinstance(x, dask.Array) for x in operands):
        return None
    return [plain(x) for x in operands]


def plain(x: Any) -> NDArray[Any]:
    """An array of the class `ndarray` itself, which shares the memory of `x` where that is possible."""
    kind = type(x)
    if kind is np.ndarray:
        array: NDArray[Any] = x
        return array
    if getattr(kind, "__array_ufunc__", False) is None:
        raise TypeError(f"{kind.__name__} refuses NumPy's operators (__array_ufunc__ is None)")
    if isinstance(x, np.ndarray):
        return _bare(x)
    if hasattr(kind, "__dlpack__") and not isinstance(x, np.generic):
        if hasattr(kind, "resolve_neg"):
            # A view of torch's that is negated once it is read, of which DLPack does not know.
            x = x.resolve_neg()
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError):
            # Another device, or a dtype that DLPack lacks: what the class itself offers, or nothing.
            if not hasattr(kind, "__array__"):
                raise TypeError(f"{kind.__name__} is no array in this machine's memory") from None
    return _bare(np.asanyarray(x))


def _bare(x: NDArray[Any]) -> NDArray[Any]:
    """The array without its class, which must not be that of a masked one."""
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(x, masked.MaskedArray):
        raise TypeError("a masked array would lose its mask; pass x.filled(...) or x.data")
    return x.view(np.ndarray)


def sound(x: NDArray[Any]) -> NDArray[Any]:
    """A copy whose elements lie as Rust reads them: native bytes, aligned, whole strides."""
    return np.array(x, dtype=x.dtype.newbyteorder("="), order="C", copy=True)


def text(x: NDArray[Any]) -> list[str]:
    """The words of an array of text, in C's order."""
    words = x.ravel().tolist()
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"of an array of {x.dtype} something is computed only where all of it is text, and {word!r} is not")
    return words


def text_array(words: list[str], shape: Sequence[int], like: Sequence[np.dtype[Any]], joined: bool | None) -> Any:
    """An array of words, of the dtype that NumPy gives for operands of the dtypes `like`.

    Words of fixed width are as wide as the operands' widest, or as all of them `joined`, or just wide enough.
    """
    kinds = {dtype.char: dtype for dtype in like}
    dtype = kinds.get("T") or kinds.get("O") or np.dtype("U")
    if dtype.char == "U" and joined is not None:
        widths = [own.itemsize // 4 for own in like]
        dtype = np.dtype(("U", sum(widths) if joined else max(widths)))
    return np.array(words, dtype=dtype).reshape(shape)[()]


def store(out: NDArray[Any], result: NDArray[Any], casting: Any) -> None:
    """A result into `out`, to whose shape it stretches, where the casting allows it."""
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"the result is {result.dtype}, which is not cast to out's {out.dtype} under casting {casting!r}")
    np.copyto(out, result, casting="unsafe")
