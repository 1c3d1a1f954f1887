"""Reductions as functions: each is an expression of one pass, in which a cast and a mask are fused.

A mask (`where=`) broadcasts with the array under a rule; it is read where it lies, and no masked copy is made.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from . import _simulcast
from ._inputs import dask_array, is_labelled, plain, refuse_labels, unlabelled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, SupportsIndex

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ._simulcast import Rule

    _Axis = SupportsIndex | Sequence[SupportsIndex] | None

_NUMPY = "numpy"


def _axes(x: Any, axis: _Axis) -> str:
    """The axes of an array as they stand in an expression."""
    if axis is None:
        return "None"
    try:
        is_one = hasattr(axis, "__index__")
        axes = [own.__index__() for own in ((axis,) if is_one else axis)]  # type: ignore[union-attr]
    except (TypeError, AttributeError):
        raise TypeError(f"argument 'axis' is a number, a tuple of numbers or None, not {axis!r}") from None
    count = np.ndim(x)
    for own in axes:
        if not -count <= own < count:
            raise np.exceptions.AxisError(own, count)
    if len({own % count for own in axes}) < len(axes):
        raise ValueError(f"argument 'axis' names an axis twice: {axis!r} of {count} axes")
    if is_one:
        return str(axes[0])
    return f"({', '.join(map(str, axes))}{',' if len(axes) == 1 else ''})"


def _array(x: ArrayLike, axis: _Axis, keepdims: bool) -> Any:
    """The array that is reduced as it is; a Dask array stays one. Labels may be lost to one number alone."""
    if is_labelled(x):
        count = 1 if axis is None or hasattr(axis, "__index__") else len(axis)
        if keepdims or axis is not None and count < np.ndim(x) or type(x).__name__ == "Dataset":
            refuse_labels("a reduction along axes", x)
    return _plain(x)


def _plain(x: ArrayLike) -> Any:
    if x is None:
        raise TypeError("argument 'x' is an array or a number, not None")
    x, dask = unlabelled(x), dask_array()
    if dask is not None and isinstance(x, dask.Array):
        return x
    return plain(x)


def _reduce(
    name: str,
    x: Any,
    axis: _Axis,
    keepdims: bool,
    *,
    dtype: DTypeLike | None = None,
    where: Any = None,
    otherwise: str = "",
    out: Any = None,
    **settings: Any,
) -> Any:
    """One reduction of an array, cast to `dtype` before it is reduced; where `where` is false it is `otherwise`."""
    text = "x" if dtype is None else f"{np.dtype(dtype).name}(x)"
    operands, settings["rule"] = _masked(x, where, settings["rule"])
    if where is not None:
        text = f"({text} if mask else {otherwise})"
    text = f"{name}({text}, axis={_axes(x, axis)}, keepdims={bool(keepdims)})"
    return _simulcast.compile(text)(local_dict=operands, out=out, **settings)


def _masked(x: Any, where: Any, rule: str | Rule) -> tuple[dict[str, Any], str | Rule]:
    """The operands, and the rule under which they meet in an expression."""
    if where is None:
        return {"x": x}, rule
    if is_labelled(where):
        raise TypeError(f"argument 'where' meets the array by position, and would lose the labels of a {type(where).__name__}: pass where.to_numpy()")
    mask = _plain(where)
    if mask.dtype != bool:
        raise TypeError(f"where is an array of bool, not of {mask.dtype}")
    if str(rule) != _NUMPY:
        # The condition comes first in an expression; by this rule the mask is laid onto the array.
        x, mask = _simulcast.broadcast_arrays(x, mask, rule=rule)
    return {"x": x, "mask": mask}, _NUMPY


def _counted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that means are computed in."""
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def sum(
    x: ArrayLike,
    /,
    axis: _Axis = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    rule: str | Rule = _NUMPY,
    threads: int | None = None,
) -> Any:
    """The sum along axes, in `dtype`; of the elements where `where` is true.

    >>> import numpy as np, simulcast
    >>> x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> simulcast.sum(x, axis=0)
    array([5., 7., 9.])
    >>> simulcast.sum(x, axis=1, where=np.array([True, False, True]))
    array([ 4., 10.])
    """
    settings = {"out": out, "rule": rule, "threads": threads}
    return _reduce("sum", _array(x, axis, keepdims), axis, keepdims, dtype=dtype, where=where, otherwise="0", **settings)


def prod(
    x: ArrayLike,
    /,
    axis: _Axis = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    rule: str | Rule = _NUMPY,
    threads: int | None = None,
) -> Any:
    """The product along axes, in `dtype`; of the elements where `where` is true.

    >>> import simulcast
    >>> simulcast.prod([[1, 2], [3, 4]], axis=1, keepdims=True)
    array([[ 2],
           [12]])
    """
    settings = {"out": out, "rule": rule, "threads": threads}
    return _reduce("prod", _array(x, axis, keepdims), axis, keepdims, dtype=dtype, where=where, otherwise="1", **settings)


def mean(
    x: ArrayLike,
    /,
    axis: _Axis = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    rule: str | Rule = _NUMPY,
    threads: int | None = None,
) -> Any:
    """The mean along axes, in `dtype`; of the elements where `where` is true.

    >>> import numpy as np, simulcast
    >>> x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]])
    >>> simulcast.mean(x, axis=1)
    array([2., 6.])
    >>> simulcast.mean(x, axis=1, where=x > 2)
    array([3., 6.])
    """
    array = _array(x, axis, keepdims)
    if where is None:
        return _reduce("mean", array, axis, keepdims, dtype=dtype, out=out, rule=rule, threads=threads)
    inner = _counted(array.dtype if dtype is None else np.dtype(dtype))
    result = array.dtype if dtype is None and array.dtype.kind not in "biu" else np.dtype(dtype or inner)
    settings: dict[str, Any] = {"rule": rule, "threads": threads}
    total = _reduce("sum", array, axis, keepdims, dtype=inner, where=where, otherwise="0", **settings)
    # As many as there are in the common shape, whichever axes the mask repeats along.
    ones: Any = np.broadcast_to(np.ones((), inner), array.shape)
    if not isinstance(array, np.ndarray):
        ones = sys.modules["dask.array"].ones_like(array, dtype=inner)
    count = _reduce("sum", ones, axis, keepdims, where=where, otherwise="0", **settings)
    value = _simulcast.divide(total, count, out=out, threads=threads)
    return value if out is not None or value.dtype == result else value.astype(result)


def max(
    x: ArrayLike,
    /,
    axis: _Axis = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    rule: str | Rule = _NUMPY,
    threads: int | None = None,
) -> Any:
    """The largest element along axes, and at least `initial`; of the elements where `where` is true.

    Without `initial` no axis may be empty, and `where` has to be left out.

    >>> import numpy as np, simulcast
    >>> x = np.array([[1, 5, 3], [4, 2, 6]])
    >>> simulcast.max(x, axis=1)
    array([5, 6])
    >>> simulcast.max(x, axis=1, where=np.array([True, False, True]), initial=0)
    array([3, 6])
    """
    return _extreme("max", "maximum", x, axis, keepdims, initial, where, out, rule, threads)


def min(
    x: ArrayLike,
    /,
    axis: _Axis = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    rule: str | Rule = _NUMPY,
    threads: int | None = None,
) -> Any:
    """The smallest element along axes, and at most `initial`; of the elements where `where` is true.

    Without `initial` no axis may be empty, and `where` has to be left out.

    >>> import simulcast
    >>> simulcast.min([[1, 5, 3], [4, 2, 6]], axis=1)
    array([1, 2])
    """
    return _extreme("min", "minimum", x, axis, keepdims, initial, where, out, rule, threads)


def _refuse_empty(name: str, array: Any, axis: _Axis) -> None:
    """Of no elements there is no extreme."""
    if 0 in array.shape and (axis is None or hasattr(axis, "__index__")):
        _axes(array, axis)
        if axis is None or array.shape[axis.__index__()] == 0:
            along = "" if axis is None else f" along axis {axis}"
            raise ValueError(f"there is no {name} of no elements: the array is {array.shape}{along}; give initial=")


def _extreme(
    name: str,
    pair: str,
    x: ArrayLike,
    axis: _Axis,
    keepdims: bool,
    initial: complex | None,
    where: ArrayLike | None,
    out: Any,
    rule: str | Rule,
    threads: int | None,
) -> Any:
    array = _array(x, axis, keepdims)
    settings: dict[str, Any] = {"rule": rule, "threads": threads}
    if initial is None:
        if where is not None:
            raise ValueError(f"{name} with where needs initial: where nothing is left there is no {name}")
        _refuse_empty(name, array, axis)
        return _reduce(name, array, axis, keepdims, out=out, **settings)
    first = array.dtype.type(initial)
    if array.size == 0:
        # Nothing is read; NumPy says what is left, and in which shape.
        return getattr(np, name)(array, axis=axis, keepdims=keepdims, initial=first, out=out)
    operands, settings["rule"] = _masked(array, where, rule)
    operands["initial"] = first
    text = "x" if where is None else "(x if mask else initial)"
    text = f"{pair}({name}({text}, axis={_axes(array, axis)}, keepdims={bool(keepdims)}), initial)"
    return _simulcast.compile(text)(local_dict=operands, out=out, **settings)
