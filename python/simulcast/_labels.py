"""Arrays with labels, of pandas and xarray: functions and expressions align them as `np.add` does, and give back their type.

xarray's go through `xarray.apply_ufunc`: axes meet by name, coordinates as the option `arithmetic_join` says, and Dask arrays
in them stay lazy. Of pandas' the labels of all operands are united; where one operand lacks a label, it is NaN there. A
`Series` beside a `DataFrame` is laid along its columns, as by its operators.

What goes by position alone (other rules than NumPy's, `out`, expressions that move or reduce axes) refuses labels, and says
how to leave them behind.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _policy, _simulcast
from ._inputs import is_labelled, way_out
from ._nullable import computed, has_nullable, is_nullable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BY_ELEMENT = {"value", "name", "apply", "compare", "if", "clip", "round", "cast"}


def apply(name: str, operands: Sequence[Any], **settings: Any) -> Any:
    """An operation on operands of which one has labels, or is a Dask array."""
    if not any(map(is_labelled, operands)):
        return _lazy(settings).apply(name, operands, **settings)
    _by_position(name, settings)
    return _aligned(name, lambda *arrays: getattr(_simulcast, name)(*arrays, **settings), operands)


def clip(a: Any, a_min: Any, a_max: Any, **settings: Any) -> Any:
    """`clip` of operands of which one has labels, or is a Dask array."""
    if not any(map(is_labelled, (a, a_min, a_max))):
        return _lazy(settings).clip(a, a_min, a_max, **settings)
    _by_position("clip", settings)
    given = [own is not None for own in (a, a_min, a_max)]

    def clipped(*arrays: Any) -> Any:
        own = iter(arrays)
        bounds: list[Any] = [next(own) if there else None for there in given]
        return _simulcast.clip(*bounds, **settings)

    return _aligned("clip", clipped, [own for own in (a, a_min, a_max) if own is not None])


def vjp(name: str, operands: Sequence[Any], grad: Any, rule: Any) -> Any:
    """Gradients are arrays by position."""
    for own in (*operands, grad):
        if is_labelled(own):
            raise TypeError(f"vjp goes by position, and would drop the labels of a {type(own).__name__}: {way_out(own)}")
    return _lazy({}).vjp(name, operands, grad, rule)


def evaluate(expression: Any, operands: dict[str, Any], **settings: Any) -> Any:
    """An expression on operands of which one has labels, or is a Dask array."""
    labelled = [own for own in operands.values() if is_labelled(own)]
    if not labelled:
        return _lazy(settings).evaluate(expression, operands, **settings)
    _by_position("evaluate", settings)
    for kind, _, _ in expression._nodes:
        if kind not in _BY_ELEMENT:
            raise TypeError(
                f"the expression moves or reduces axes, which the labels of a {type(labelled[0]).__name__} do not follow: "
                f"{way_out(labelled[0])}"
            )

    def evaluated(*arrays: Any) -> Any:
        return expression(local_dict=dict(zip(operands, arrays)), **settings)

    decides = any(kind == "if" or what in ("where", "power", "bitwise_and", "bitwise_or") for kind, what, _ in expression._nodes)
    return _aligned("evaluate, decided" if decides else "evaluate", evaluated, list(operands.values()))


def _lazy(settings: dict[str, Any]) -> Any:
    """What computes Dask's arrays, each block of which is computed on one thread."""
    from . import _dask

    settings.pop("threads", None)
    return _dask


def _by_position(name: str, settings: dict[str, Any]) -> None:
    if str(settings["rule"]) != "numpy":
        raise TypeError(
            f"{name} under rule {settings['rule']} lays axes by position, and would drop labels: pass x.to_numpy() of "
            "what has labels"
        )


def _aligned(name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """`function` of the arrays of operands that were aligned by their labels, with these labels."""
    xarray = sys.modules.get("xarray")
    if xarray is not None and any(type(own).__module__.startswith("xarray") for own in operands):
        from xarray.core.options import OPTIONS

        join = OPTIONS["arithmetic_join"]
        # Axes meet by name, as is wanted: no policy is asked how they lie.
        with _policy.unasked():
            return xarray.apply_ufunc(
                function, *operands, join=join, dataset_join=join, dataset_fill_value=np.nan, dask="allowed", keep_attrs=True
            )
    return _pandas(name, function, operands)


def _pandas(name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    pandas = sys.modules["pandas"]
    if any(is_nullable(own) or has_nullable(own) for own in operands):
        function = functools.partial(computed, name, function)
    name = name.partition(",")[0]
    frames = [own for own in operands if isinstance(own, pandas.DataFrame)]
    series = [own for own in operands if isinstance(own, pandas.Series)]
    is_index = any(isinstance(own, pandas.Index) for own in operands)
    operands = [_array(own) if isinstance(own, pandas.Index) else own for own in operands]
    if not frames and not series:
        # Of an index alone, or of arrays without labels.
        made = function(*operands)
        return pandas.Index(made) if is_index else made
    if not frames:
        index = _united([own.index for own in series])
        arrays = [_array(_reindexed(own, index=index)) if isinstance(own, pandas.Series) else own for own in operands]
        with _policy.unasked():
            made = function(*arrays)
        if np.shape(made) != (len(index),):
            raise ValueError(f"{name} of a Series of {len(index)} labels gives {np.shape(made)}, which has none: pass x.to_numpy()")
        names = {own.name for own in series}
        return pandas.Series(made, index=index, name=names.pop() if len(names) == 1 else None)
    index = _united([own.index for own in frames])
    columns = _united([own.columns for own in frames] + [own.index for own in series])
    aligned = [
        _reindexed(own, index=index, columns=columns)
        if isinstance(own, pandas.DataFrame)
        else _reindexed(own, index=columns)
        if isinstance(own, pandas.Series)
        else own
        for own in operands
    ]
    shape = (len(index), len(columns))
    for own in aligned:
        # A column that is alone stands for all, as in NumPy; what is larger than the labels has none.
        if np.broadcast_shapes(np.shape(own), shape) != shape:
            raise ValueError(f"{name} of a DataFrame of {shape} and an array of {np.shape(own)} has no labels: pass x.to_numpy()")

    def part(own: Any, column: int) -> Any:
        """What meets the elements of a column."""
        if isinstance(own, pandas.DataFrame):
            return _array(own.iloc[:, column])
        if isinstance(own, pandas.Series):
            return _array(own)[column]
        if is_nullable(own):
            return own[column]
        own = np.asarray(own) if np.ndim(own) else own
        if np.ndim(own) == 0 or own.shape[-1] == 1:
            return own if np.ndim(own) < 2 else own[:, 0]
        return own[..., column]

    with _policy.unasked():
        dtypes = {own for frame in aligned if isinstance(frame, pandas.DataFrame) for own in frame.dtypes}
        if len(dtypes) <= 1 and not any(map(has_nullable, aligned)):
            made = function(*[own.to_numpy() if isinstance(own, (pandas.DataFrame, pandas.Series)) else own for own in aligned])
            return pandas.DataFrame(made, index=index, columns=columns)
        # Each column keeps a type of its own.
        parts = [function(*[part(own, column) for own in aligned]) for column in range(len(columns))]
    made = pandas.concat([pandas.Series(own, index=index) for own in parts], axis=1)
    return made.set_axis(columns, axis=1)


def _array(own: Any) -> Any:
    """The array of a series or an index: as it is where values may be missing."""
    return own.array if has_nullable(own) else own.to_numpy()


def _united(labels: Sequence[Any]) -> Any:
    """The labels of all operands: as they are where all are the same, else their union."""
    first, *others = labels
    for other in others:
        if not first.equals(other):
            first = first.union(other)
    return first


def _reindexed(own: Any, **labels: Any) -> Any:
    """An operand with these labels, which it may have."""
    if all(getattr(own, axis).equals(wanted) for axis, wanted in labels.items()):
        return own
    return own.reindex(**labels)
