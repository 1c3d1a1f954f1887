"""Columns of pandas in which values may be missing (`Int64`, `Float64`, `boolean`): computed by value, with NA kept as pandas
keeps it. A result is NA where an operand is, but for what pandas decides without it: `NA & False`, `NA | True`, `NA ** 0`,
`1 ** NA`, and what `where` does not choose.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    _Masks = Sequence[NDArray[np.bool_]]


def is_nullable(x: object) -> bool:
    """Whether it is one of pandas' arrays of values and a mask."""
    arrays = getattr(sys.modules.get("pandas"), "arrays", None)
    return arrays is not None and isinstance(x, (arrays.IntegerArray, arrays.FloatingArray, arrays.BooleanArray))


def has_nullable(x: object) -> bool:
    """Whether something of pandas' holds such columns, or others that are not NumPy's but have its types."""
    dtypes = list(x.dtypes) if type(x).__name__ == "DataFrame" and hasattr(x, "dtypes") else [getattr(x, "dtype", None)]
    return any(hasattr(own, "numpy_dtype") for own in dtypes)


def values(x: Any) -> Any:
    """The array of what is alone, with what it is called where it cannot be one of NumPy's."""
    if not has_nullable(x):
        return x
    dtypes = list(x.dtypes) if type(x).__name__ == "DataFrame" else [x.dtype]
    kinds = [getattr(own, "numpy_dtype", own) for own in dtypes]
    if np.any(np.asarray(x.isna())):
        wanted = next(own for own in dtypes if hasattr(own, "numpy_dtype"))
        raise TypeError(
            f"{wanted} with values that are missing is no type of NumPy's: pass x.to_numpy(float, na_value=np.nan), or fill them"
        )
    return x.to_numpy(np.result_type(*kinds))


def computed(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """`function` of the values of arrays of which some are nullable: nullable where its type has such a class."""
    pandas = sys.modules["pandas"]
    operands = tuple(_read(own) for own in operands)
    if not any(is_nullable(own) or own is pandas.NA for own in operands):
        return function(*operands)
    masks = [np.asarray(own.isna()) if is_nullable(own) else np.asarray(own is pandas.NA) for own in operands]
    any_missing = any(mask.any() for mask in masks)
    rule = _RULES.get(name)
    arrays = []
    for place, own in enumerate(operands):
        fill: Any = 0 if rule is _power and place else 1
        if is_nullable(own):
            own = own.to_numpy(own.dtype.numpy_dtype, na_value=own.dtype.type(fill))
        arrays.append(fill if own is pandas.NA else own)
    made = function(*arrays)
    if not is_nullable_type(np.asarray(made).dtype):
        if any_missing:
            raise TypeError(f"{name} gives {np.asarray(made).dtype}, in which nothing can be missing: fill what is")
        return made
    mask = np.zeros(np.shape(made), bool)
    if any_missing:
        if rule is _refused:
            raise TypeError(
                "an expression with a choice, a power, & or | may need no value where one is missing: "
                "compute that part by the functions, or fill what is missing"
            )
        mask = mask | (rule or _either)(arrays, masks)
    made = np.asarray(made)
    # pandas has no shorter floats.
    made = pandas.array(made.astype(np.float32) if made.dtype == np.float16 else made, dtype=_class_of(made.dtype))
    made[mask] = pandas.NA
    return made


def is_nullable_type(dtype: np.dtype[Any]) -> bool:
    """Whether pandas has a nullable class for a type."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _class_of(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "b":
        return "boolean"
    return "Float32" if dtype == np.float16 else dtype.name.capitalize().replace("Uint", "UInt")


def _read(own: Any) -> Any:
    """An operand whose type may be one of Arrow's, which are read by neither."""
    dtype = getattr(own, "dtype", None)
    if not is_nullable(own) and hasattr(dtype, "numpy_dtype"):
        raise TypeError(f"arrays of {dtype} are not computed with: pass x.convert_dtypes(dtype_backend='numpy_nullable'), or x.to_numpy()")
    return own


def _either(arrays: Sequence[Any], masks: _Masks) -> Any:
    """NA where one operand is."""
    made: Any = False
    for mask in masks:
        made = made | mask
    return made


def _and(arrays: Sequence[Any], masks: _Masks) -> Any:
    return _decided(arrays, masks, False)


def _or(arrays: Sequence[Any], masks: _Masks) -> Any:
    return _decided(arrays, masks, True)


def _decided(arrays: Sequence[Any], masks: _Masks, value: bool) -> Any:
    """NA where one operand is, unless the other alone decides."""
    made = _either(arrays, masks)
    for array, mask in zip(arrays, masks):
        if np.asarray(array).dtype == bool:
            made = made & ~(~mask & (np.asarray(array) == value))
    return made


def _power(arrays: Sequence[Any], masks: _Masks) -> Any:
    (base, exponent), (no_base, no_exponent) = arrays, masks
    decided = (~no_base & (np.asarray(base) == 1)) | (~no_exponent & (np.asarray(exponent) == 0))
    return (no_base | no_exponent) & ~decided


def _where(arrays: Sequence[Any], masks: _Masks) -> Any:
    return masks[0] | np.where(np.asarray(arrays[0]) != 0, masks[1], masks[2])


def _refused(arrays: Sequence[Any], masks: _Masks) -> Any:
    raise NotImplementedError


_RULES: dict[str, Callable[[Sequence[Any], _Masks], Any]] = {
    "bitwise_and": _and, "bitwise_or": _or, "power": _power, "where": _where, "evaluate, decided": _refused,
}  # fmt: skip
