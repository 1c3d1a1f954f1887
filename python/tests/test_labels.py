"""Arrays of pandas and xarray: aligned by label as `np.add` does, with their type; lazy where they are."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import simulcast

A = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="price")
B = pd.Series([10.0, 20.0, 30.0], index=list("cbd"), name="price")
C = pd.Series([1.0, 2.0, 3.0], index=list("abc"), name="count")
F = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["r", "s"])
G = pd.DataFrame({"y": [10.0, 20.0], "z": [30.0, 40.0]}, index=["s", "t"])


def equal(ours, theirs):
    assert type(ours) is type(theirs)
    (pd.testing.assert_series_equal if isinstance(theirs, pd.Series) else pd.testing.assert_frame_equal)(ours, theirs)


@pytest.mark.parametrize("a, b", [(A, B), (A, A), (A, C), (A, 2), (2.0, A), (A, np.arange(3.0)), (F, G), (F, 2), (F, F), (F, np.ones((2, 2))), (F, np.array([1.0, 5.0])), (F, np.array([[1.0], [5.0]]))])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "subtract"])
def test_pandas_aligns_as_numpys_functions_do(name, a, b):
    equal(getattr(simulcast, name)(a, b), getattr(np, name)(a, b))


def test_a_series_is_laid_along_the_columns_of_a_frame():
    row = pd.Series([100.0, 200.0], index=["y", "x"])
    equal(simulcast.add(F, row), F + row)
    equal(simulcast.multiply(row, F), row * F)


def test_other_functions_and_expressions_keep_labels():
    equal(simulcast.sqrt(A), np.sqrt(A))
    equal(simulcast.exp(F), np.exp(F))
    equal(simulcast.round(A / 3, 2), (A / 3).round(2))
    equal(simulcast.where(A > 1, A, 0.0), A.where(A > 1, 0.0))
    equal(simulcast.clip(A, 1.5, 2.5), A.clip(1.5, 2.5))
    equal(simulcast.evaluate("a * 2 + b", a=A, b=B), A * 2 + B)
    equal(simulcast.evaluate("f * 2 + g", f=F, g=G), F * 2 + G)
    assert simulcast.sqrt(pd.Index([1.0, 4.0])).tolist() == [1.0, 2.0]
    mixed = pd.DataFrame({"i": [1, 2], "f": [0.5, 1.5]})
    assert simulcast.multiply(mixed, 2).dtypes.astype(str).tolist() == ["int64", "float64"]


def test_what_goes_by_position_refuses_labels_and_says_how_to_leave_them():
    for call in [
        lambda: simulcast.add(A, B, rule="exact"),
        lambda: simulcast.broadcast_arrays(A, B),
        lambda: simulcast.evaluate("a - a.mean(axis=0)", a=A),
        lambda: simulcast.vjp("multiply", (A, B), np.ones(3)),
        lambda: simulcast.sum(np.ones(3), where=A > 1),
        lambda: simulcast.sum(F, axis=0),
        lambda: simulcast.mean(F, axis=1, keepdims=True),
        lambda: simulcast.max(xr.DataArray(np.ones((2, 3)), dims=list("hw")), axis=1),
        lambda: simulcast.sum(xr.Dataset({"a": ("x", [1.0])})),
        lambda: simulcast.broadcast_to(A, (2, 3)),
        lambda: simulcast.broadcast_arrays(A),
        lambda: simulcast.sum_to(A, (1,)),
        lambda: simulcast.guard(A) + simulcast.guard(B),
        lambda: simulcast.guard(xr.DataArray([1.0], dims="h")),
    ]:
        with pytest.raises(TypeError, match=r"to_numpy\(\)"):
            call()
    with pytest.raises(TypeError, match="argument 'out'"):
        simulcast.add(A, B, out=np.empty(3))
    with pytest.raises(ValueError, match=r"to_numpy\(\)"):
        simulcast.add(A, np.ones((2, 3)))
    # One number has no labels, and an index is values alone.
    assert simulcast.sum(A) == 6 == simulcast.sum(A, axis=0) and simulcast.mean(F) == 2.5 == simulcast.max(F, axis=(0, 1)) - 1.5
    assert simulcast.broadcast_to(A.index, (2, 3)).shape == (2, 3) and (simulcast.guard(pd.Index([1.0])) + 1).tolist() == [2.0]


def test_xarray_aligns_by_name_and_coordinate():
    x = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("h", "w"), coords={"w": [1, 2, 3]}, attrs={"unit": "m"})
    y = xr.DataArray([10.0, 20.0, 30.0], dims="w", coords={"w": [2, 3, 4]})
    t = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("w", "h"), coords={"w": [1, 2, 3]})
    for a, b in [(x, y), (x, t), (t, x), (x, 2), (x, x.isel(h=0))]:
        xr.testing.assert_identical(simulcast.add(a, b), np.add(a, b))
    xr.testing.assert_identical(simulcast.evaluate("a * 2 + b", a=x, b=y), x * 2 + y)
    xr.testing.assert_identical(simulcast.exp(xr.Dataset({"a": x})), np.exp(xr.Dataset({"a": x})))
    xr.testing.assert_identical(simulcast.clip(x, 1, 4).variable, np.minimum(np.maximum(x, 1), 4).variable)
    square = xr.DataArray(np.ones((3, 1)), dims=("w", "one"))
    with simulcast.strict("exact"):  # axes that have names are meant
        assert simulcast.add(square, square.isel(one=0)).shape == (3, 1)


def test_dask_in_xarray_stays_lazy():
    def never(block):
        raise AssertionError("computed")

    source = da.ones((4, 6), chunks=(2, 6)).map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    lazy = xr.DataArray(source, dims=("h", "w"))
    for made in [simulcast.add(lazy, 1), simulcast.evaluate("x * 2", x=lazy), simulcast.where(lazy > 0, lazy, 0)]:
        assert isinstance(made, xr.DataArray) and isinstance(made.data, da.Array)
    assert isinstance(simulcast.sum(lazy.data, axis=0), da.Array) and isinstance(simulcast.broadcast_to(lazy.data, (2, 4, 6)), da.Array)
    fine = xr.DataArray(da.ones((4, 6), chunks=(2, 6)), dims=("h", "w"))
    assert simulcast.add(fine, xr.DataArray(np.arange(4.0), dims="h")).compute().values.tolist() == [[k + 1.0] * 6 for k in range(4)]


def column_meets_row(block):
    """A function that Dask runs: a suspicious broadcast."""
    simulcast.add(np.ones((3, 1)), np.ones(3))
    return block


@pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_policies_reach_functions_that_dask_workers_run(scheduler):
    x = da.ones(4, chunks=2).map_blocks(column_meets_row, dtype=float, meta=np.empty(0))
    with dask.config.set(scheduler=scheduler, num_workers=2):
        with simulcast.strict(), pytest.raises(simulcast.BroadcastError, match="SC102"):
            x.compute()
        with simulcast.using("all=allow"):
            assert x.compute().tolist() == [1] * 4
            assert x.compute().tolist() == [1] * 4
        if scheduler != "processes":
            with simulcast.using("all=allow"), simulcast.record() as broadcasts:
                x.compute()
            assert [own.shapes for own in broadcasts] == [((3, 1), (3,))] * 2
        # No policy of the blocks before is left in its graph.
        assert x.compute().tolist() == [1] * 4


NULLABLE = {
    "Int64": pd.Series([3, None, 1, 0], dtype="Int64"),
    "UInt8": pd.Series([3, 255, None, 0], dtype="UInt8"),
    "Float64": pd.Series([1.5, None, -2.0, 0.0], dtype="Float64"),
    "Float32": pd.Series([None, 1.5, -2.0, 0.0], dtype="Float32"),
    "boolean": pd.Series([True, None, False, True], dtype="boolean"),
    "plain": pd.Series([2, 0, 5, 1]),
    "number": 2,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("b", NULLABLE)
@pytest.mark.parametrize("a", [own for own in NULLABLE if own not in ("plain", "number")])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "greater", "less_equal", "equal", "divide", "arctan2"])
def test_missing_values_of_pandas_stay_missing(name, a, b):
    a, b = NULLABLE[a], NULLABLE[b]
    for pair in [(a, b), (b, a), (a[1:], b if b is NULLABLE["number"] else b[:-1])]:
        try:
            theirs = getattr(np, name)(*pair)
        except (NotImplementedError, ValueError):
            continue  # pandas compares what has the same labels, and divides no truths
        ours = getattr(simulcast, name)(*pair)
        if theirs.dtype == "Float64" and name in ("divide", "arctan2"):
            # NumPy's precision for short integers is less.
            theirs = theirs.astype(ours.dtype)
        equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "isnan", "absolute", "sign"])
@pytest.mark.parametrize("a", ["Int64", "Float64", "Float32"])
def test_functions_of_missing_values_are_missing(name, a):
    equal(getattr(simulcast, name)(NULLABLE[a]), getattr(np, name)(NULLABLE[a]))


def test_what_a_missing_value_does_not_decide_has_a_value():
    yes, no = NULLABLE["boolean"], pd.Series([None, False, False, None], dtype="boolean")
    equal(simulcast.bitwise_and(yes, no), yes & no)
    equal(simulcast.bitwise_or(yes, no), yes | no)
    equal(simulcast.bitwise_xor(yes, no), yes ^ no)
    base, exponent = pd.Series([1, None, None, 2], dtype="Int64"), pd.Series([None, 0, 2, 3], dtype="Int64")
    equal(simulcast.power(base, exponent), base**exponent)
    chosen = simulcast.where(pd.Series([True, False, False, True]), base, exponent)
    assert chosen.dtype == "Int64" and chosen.isna().tolist() == [False, False, False, False] and chosen.tolist() == [1, 0, 2, 2]
    with pytest.raises(TypeError, match="may need no value where one is missing"):
        simulcast.evaluate("a if c else b", a=base, b=exponent, c=pd.Series([True, False, False, True]))


def test_expressions_frames_and_bare_arrays_keep_what_is_missing():
    i, f = NULLABLE["Int64"], NULLABLE["Float64"]
    equal(simulcast.evaluate("i * 2 + f", i=i, f=f), i * 2 + f)
    frame, other = pd.DataFrame({"a": i, "b": [1.0, 2.0, 3.0, 4.0]}), pd.DataFrame({"a": f, "b": i})
    equal(simulcast.add(frame, other), frame + other)
    equal(simulcast.add(frame, 1), frame + 1)
    equal(simulcast.clip(i, 1, 2), i.clip(1, 2))
    assert simulcast.add(i.array, 1).tolist() == (i.array + 1).tolist() and simulcast.add(pd.Index(i), 1).equals(pd.Index(i) + 1)
    parts = simulcast.add(pd.Series([1, 2], index=[0, 1], dtype="Int64"), pd.Series([1, 2], index=[1, 2], dtype="Int64"))
    assert parts.dtype == "Int64" and parts.isna().tolist() == [True, False, True]


def test_missing_values_that_numpy_cannot_hold_are_refused():
    i, whole = NULLABLE["Int64"], pd.Series([1, 2, 3], dtype="Int64")
    assert simulcast.sum(whole) == 6 and simulcast.sum(pd.Series([True, False], dtype="boolean")) == 1
    for call in [
        lambda: simulcast.sum(i),
        lambda: simulcast.sum(NULLABLE["boolean"]),
        lambda: simulcast.evaluate("sum(i)", i=i.array),
        lambda: simulcast.add(i, 1j),
    ]:
        with pytest.raises(TypeError, match="missing|axes"):
            call()
