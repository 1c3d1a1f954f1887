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

from ._nullable import is_nullable, values


def dask_array() -> ModuleType | None:
    """The module `dask.array`, where the program has imported it; we never do."""
    return sys.modules.get("dask.array")


def is_number(x: object) -> bool:
    """Whether it is a number of Python's own classes, which is weak."""
    return type(x) in (bool, int, float, complex)


def is_labelled(x: object) -> bool:
    """Whether it is an array with labels, of pandas or xarray; or one of pandas' in which values may be missing."""
    root = type(x).__module__.partition(".")[0]
    if root == "pandas":
        pandas = sys.modules["pandas"]
        return isinstance(x, (pandas.Series, pandas.DataFrame, pandas.Index)) or is_nullable(x)
    if root == "xarray":
        xarray = sys.modules["xarray"]
        return isinstance(x, (xarray.DataArray, xarray.Dataset, xarray.Variable))
    return False


def operand(x: Any) -> NDArray[Any] | None:
    """A plain array for an operand; None for a Dask array, and for one that has labels."""
    dask = dask_array()
    return None if is_labelled(x) or dask is not None and isinstance(x, dask.Array) else plain(x)


def prepare(operands: Sequence[Any]) -> list[NDArray[Any]] | None:
    """Plain arrays for all operands, by position; None where one is a Dask array."""
    labelled = [x for x in operands if is_labelled(x)]
    if labelled and len(operands) > 1:
        kind = type(labelled[0]).__name__
        raise TypeError(f"arrays meet by position here, which would drop the labels of a {kind}: pass x.to_numpy()")
    for x in operands:
        refuse_labels("an array by itself", x)
    operands = [unlabelled(x) for x in operands]
    dask = dask_array()
    if dask is not None and any(isinstance(x, dask.Array) for x in operands):
        return None
    return [plain(x) for x in operands]


def refuse_labels(what: str, x: Any) -> None:
    """Refuses an array whose labels would be lost; an index of pandas has values alone."""
    if is_labelled(x) and not is_nullable(x) and not isinstance(x, getattr(sys.modules.get("pandas"), "Index", ())):
        raise TypeError(f"{what} goes by position, and would drop the labels of a {type(x).__name__}: {way_out(x)}")


def way_out(x: Any) -> str:
    """How to leave the labels of something behind."""
    if type(x).__name__ == "Dataset":
        return "pass x[name].to_numpy() of a variable"
    return "pass x.to_numpy(), or x.data where it is lazy" if type(x).__module__.startswith("xarray") else "pass x.to_numpy()"


def unlabelled(x: Any) -> Any:
    """The array within one of xarray's, which may be lazy; anything else as it is."""
    return x.data if is_labelled(x) and hasattr(x, "data") and type(x).__module__.startswith("xarray") else x


def plain(x: Any) -> NDArray[Any]:
    """An array of the class `ndarray` itself, which shares the memory of `x` where that is possible."""
    kind = type(x)
    if kind is np.ndarray:
        array: NDArray[Any] = x
        return array
    if kind.__module__.partition(".")[0] == "pandas":
        x = values(x)
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
            raise TypeError(f"an array of {x.dtype} is an operand only where all of it is text, and {_shown(word)} is not")
    return words


def _shown(x: object) -> str:
    """What something is, shortly."""
    text = repr(x)
    return text if len(text) <= 40 else f"a {type(x).__name__}"


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


def shares_memory(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether an element of one lies in the other; arrays for which that takes long to find out are taken for apart."""
    # The stubs of NumPy know two values alone.
    most: Any = 100_000
    try:
        return bool(np.shares_memory(a, b, max_work=most))
    except getattr(np, "exceptions", np).TooHardError:
        return False


def store(out: NDArray[Any], result: NDArray[Any], casting: Any) -> None:
    """A result into `out`, to whose shape it stretches, where the casting allows it."""
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(
            f"argument 'out' is {out.dtype}, to which the result, {result.dtype}, is not cast under casting {casting!r}"
        )
    np.copyto(out, result, casting="unsafe")
