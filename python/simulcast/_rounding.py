"""`round` to decimals, by NumPy's steps: scaled by a power of ten, rounded to integers, scaled back."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from . import _simulcast
from ._inputs import dask_array, is_labelled, plain


def rounded(a: Any, decimals: int, **settings: Any) -> Any:
    """`a` rounded to that many decimals, which are not 0; before the decimal point where they are negative."""
    dask = dask_array()
    if is_labelled(a):
        from . import _labels

        settings = {"casting": "same_kind", **{key: own for key, own in settings.items() if own is not None}}
        return _labels.apply("round", (a,), **{"rule": "numpy", **settings, "decimals": decimals})
    if dask is not None and isinstance(a, dask.Array):
        lazy: Any = importlib.import_module("simulcast._dask")
        if settings["out"] is not None:
            raise TypeError("argument 'out' goes with arrays in memory, not with Dask's, and not with labels")
        blocks = {"decimals": decimals, "casting": settings["casting"], "dtype": settings["dtype"]}
        return lazy._lazily(lazy._block, [a], "numpy", "round", called="round", settings=blocks)
    x = plain(a)
    dtype = settings.pop("dtype")
    if dtype is not None and np.dtype(dtype) != x.dtype:
        if not np.can_cast(x.dtype, dtype, settings["casting"] or "same_kind"):
            raise TypeError(f"a is {x.dtype}, which is not cast to {np.dtype(dtype)} under casting {settings['casting'] or 'same_kind'!r}")
        x = x.astype(dtype)
    is_integer = x.dtype.kind in "iu"
    if is_integer and decimals > 0:
        return _simulcast.round(x, **settings)
    if x.dtype.kind == "c":
        # Each part by itself.
        part = np.dtype(f"f{x.dtype.itemsize // 2}")
        made = np.stack([rounded(own, decimals, dtype=part, **{**settings, "out": None}) for own in (x.real, x.imag)], axis=-1)
        made = made.view(x.dtype)[..., 0]
        out = settings["out"]
        return made[()] if out is None else _simulcast.conjugate(np.conjugate(made), out, casting=settings["casting"])
    scale = 1.0
    for _ in range(min(abs(decimals), 400)):
        scale *= 10.0
    there, back = ("*", "/") if decimals > 0 else ("/", "*")
    if x.dtype.kind in "fV" and x.dtype.itemsize == 2:
        # In an expression halves are computed in float32; each step is rounded here, as NumPy does it.
        to, fro = (_simulcast.multiply, _simulcast.divide) if decimals > 0 else (_simulcast.divide, _simulcast.multiply)
        threads = {"threads": settings["threads"]}
        return fro(_simulcast.round(to(x, scale, **threads), **threads), scale, **settings)
    steps = f"round(x {there} scale) {back} scale"
    if is_integer:
        steps = f"astype({steps}, {x.dtype.name})"
    return _simulcast.compile(steps)(local_dict={"x": x, "scale": scale}, **settings)
