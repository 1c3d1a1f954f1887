"""Sums, products, means and extremes as functions: NumPy's values, types and errors, and masks under every rule."""

import numpy as np
import pytest

import simulcast

X = np.random.default_rng(3).integers(-9, 9, (3, 4, 5))
MASK = np.random.default_rng(4).random((4, 1)) > 0.4
AXES = [None, 0, -1, (0, 2), (1,), ()]
TYPES = ["i1", "u1", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?"]


def array(dtype):
    return np.abs(X).astype(dtype) if dtype in ("u1", "?") else X.astype(dtype)


def same(ours, theirs, tolerance=1e-5):
    assert (np.shape(ours), np.asarray(ours).dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
    np.testing.assert_allclose(np.asarray(ours, "c16"), np.asarray(theirs, "c16"), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", TYPES)
def test_values_and_types_are_those_of_numpy(name, dtype):
    if name in ("max", "min") and dtype.startswith("c"):
        pytest.skip("complex numbers have no order here")
    x = array(dtype)
    if name == "prod":
        x = np.clip(x, 0, 2) if dtype != "?" and dtype[0] != "c" else x
        x = x[:, :2, :2]
    for axis in AXES:
        for keepdims in (False, True):
            theirs = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            tolerance = 2e-2 if dtype == "f2" else 1e-5
            same(getattr(simulcast, name)(x, axis, keepdims=keepdims), theirs, tolerance)


@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
@pytest.mark.parametrize("dtype", ["i4", "f2", "f4", "f8"])
def test_a_mask_broadcasts_with_the_array(name, dtype):
    x = np.abs(X[:, :, :2]).astype(dtype) % 3
    for axis in (None, 1, (0, 1)):
        theirs = getattr(np, name)(x, axis=axis, where=MASK)
        same(getattr(simulcast, name)(x, axis, where=MASK), theirs, 2e-2 if dtype == "f2" else 1e-5)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["i1", "i8", "f2", "f8"])
def test_extremes_begin_with_an_initial_value(name, dtype):
    x = X.astype(dtype)
    for initial in (-3, 0, 4):
        for axis in (None, 2, (0, 1)):
            theirs = getattr(np, name)(x, axis=axis, initial=initial)
            same(getattr(simulcast, name)(x, axis, initial=initial), theirs)
            theirs = getattr(np, name)(x, axis=axis, initial=initial, where=MASK)
            same(getattr(simulcast, name)(x, axis, initial=initial, where=MASK), theirs)
    none = np.empty((2, 0, 3))
    same(getattr(simulcast, name)(none, 1, initial=2), getattr(np, name)(none, axis=1, initial=2))


def test_a_mask_follows_the_rule():
    x, channels = X.astype("f8"), np.array([True, False, True])
    ours = simulcast.sum(x, axis=(1, 2), where=channels, rule=simulcast.pdpd(axis=0))
    np.testing.assert_array_equal(ours, np.where(channels, x.sum((1, 2)), 0))
    ours = simulcast.mean(x, axis=0, where=channels, rule="pdpd:0")
    np.testing.assert_allclose(ours, x[channels].mean(0))
    with pytest.raises(simulcast.BroadcastError, match="E1"):
        simulcast.sum(x, where=channels)


def test_sums_are_computed_in_a_type_and_written_where_it_is_said():
    x = np.full((3, 1000), 0.1, np.float32)
    same(simulcast.sum(x, dtype="f8"), np.sum(x, dtype="f8"), 1e-14)
    same(simulcast.mean(x, 1, dtype=np.float64), np.mean(x, 1, dtype="f8"), 1e-14)
    out = np.empty(3, np.float32)
    assert simulcast.sum(x, axis=1, out=out) is out
    np.testing.assert_allclose(out, x.sum(1), rtol=1e-6)
    assert simulcast.mean(x, axis=1, where=x > 0, out=out) is out
    np.testing.assert_allclose(out, x.mean(1), rtol=1e-6)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="max with where needs initial"):
        simulcast.max(X, where=MASK)
    with pytest.raises(TypeError, match="where is an array of bool, not of int64"):
        simulcast.sum(X, where=MASK.astype(int))
    for axis in (3, -4, (0, 0)):
        with pytest.raises(ValueError):
            simulcast.sum(X, axis=axis)
        with pytest.raises(ValueError):
            np.sum(X, axis=axis)
    with pytest.raises(ValueError):
        simulcast.max(np.empty((2, 0)), axis=1)
    with pytest.raises(ValueError):
        np.max(np.empty((2, 0)), axis=1)


def test_reductions_of_dask_arrays_stay_lazy():
    da = pytest.importorskip("dask.array")
    x = X.astype("f8")
    lazy = da.from_array(x, chunks=(2, 2, 3))
    for name in ("sum", "prod", "mean", "max", "min"):
        ours = getattr(simulcast, name)(lazy, axis=(0, 2), keepdims=True)
        assert isinstance(ours, da.Array)
        np.testing.assert_allclose(ours.compute(), getattr(np, name)(x, axis=(0, 2), keepdims=True))
    for name in ("sum", "mean"):
        ours = getattr(simulcast, name)(lazy, axis=1, where=MASK)
        np.testing.assert_allclose(ours.compute(), getattr(np, name)(x, axis=1, where=MASK))


def test_the_number_of_threads_is_set_for_the_process():
    before = simulcast.set_num_threads(3)
    try:
        assert simulcast.get_num_threads() == 3
        x = np.random.default_rng(5).random((700, 900))
        several = simulcast.sum(x, axis=0)
        assert simulcast.set_num_threads(1) == 3
        np.testing.assert_array_equal(simulcast.sum(x, axis=0), several)
    finally:
        simulcast.set_num_threads(before)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="threads is a number from 1 on"):
            simulcast.set_num_threads(wrong)


def test_axes_and_arrays_that_are_none_are_said_as_arguments():
    x = np.ones((2, 3))
    for axis in (2, -3, (0, 5)):
        with pytest.raises(np.exceptions.AxisError, match="out of bounds for array of dimension 2"):
            simulcast.sum(x, axis=axis)
    for axis in (1.0, "a", (0, None)):
        with pytest.raises(TypeError, match="argument 'axis' is a number, a tuple of numbers or None"):
            simulcast.mean(x, axis=axis)
    with pytest.raises(ValueError, match="argument 'axis' names an axis twice"):
        simulcast.sum(x, axis=(0, -2))
    with pytest.raises(TypeError, match="argument 'x' is an array or a number, not None"):
        simulcast.sum(None)
    for empty, axis in ([], None), (np.ones((0, 3)), 0), (np.ones((0, 3)), None):
        with pytest.raises(ValueError, match="there is no max of no elements: .*initial=") as caught:
            simulcast.max(empty, axis=axis)
        assert "keepdims" not in str(caught.value)
    assert simulcast.max(np.ones((0, 3)), axis=1).shape == (0,) and simulcast.sum(5) == 5 == simulcast.sum(5, axis=())
