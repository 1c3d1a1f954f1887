"""`sum_to` against NumPy: exact where integers are, within the bound of pairwise summation where floats are."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulcast


def theirs(x, shape, dtype):
    """NumPy's sum over the axes that a broadcast repeats."""
    x = x.astype(dtype)
    x = x.sum(tuple(range(x.ndim - len(shape))), dtype=dtype)
    axes = tuple(k for k, size in enumerate(shape) if size == 1 and x.shape[k] != 1)
    return x.sum(axes, keepdims=True, dtype=dtype)


@given(st.data())
def test_sums_are_numpys(data):
    whole = data.draw(st.lists(st.integers(0, 5), max_size=5))
    own = [data.draw(st.sampled_from([size, 1])) for size in whole]
    own = tuple(own[data.draw(st.integers(0, len(own))) :])
    dtype = data.draw(st.sampled_from(["f4", "f8", "f2", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]))
    step = data.draw(st.sampled_from([1, -1]))
    x = np.random.default_rng(data.draw(st.integers(0, 9))).integers(1, 100, whole).astype(dtype)
    if x.dtype.kind == "c":
        x = x * (2 - 3j)
    x = x[tuple(slice(None, None, step) for _ in whole)]
    if x.size == 0 and 1 in own:
        own = tuple(whole)
    ours = simulcast.sum_to(x, own)
    assert ours.dtype == x.dtype and ours.shape == own
    if x.dtype.kind in "fc":
        wide = "c16" if x.dtype.kind == "c" else "f8"
        exact = theirs(x, own, wide)
        assert np.allclose(ours.astype(wide), exact, rtol=1e-3 if dtype == "f2" else 1e-6)
    else:
        assert (ours == theirs(x, own, dtype)).all()


def test_a_gradient_without_elements_gives_zeros():
    assert simulcast.sum_to(np.ones((0, 3)), (1, 3)).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("dtype", ["f2", ml_dtypes.bfloat16])
def test_halves_are_summed_in_float32(dtype):
    x = np.ones(4096, dtype=dtype)
    ours = simulcast.sum_to(x, ())
    assert ours.dtype == x.dtype and float(ours) == 4096
    y = np.arange(1, 7).reshape(2, 3).astype(dtype)
    assert simulcast.sum_to(y, (2, 1)).astype("f8").tolist() == [[6], [15]]


def test_rules():
    x = np.arange(1.0, 7).reshape(2, 3)
    assert simulcast.sum_to(x, (2,), rule="pdpd:0").tolist() == [6, 15]
    assert simulcast.sum_to(x, (3,), rule=simulcast.axes((2, 3), (0,))).tolist() == [5, 7, 9]
    assert simulcast.sum_to(x, (3, 2), rule=simulcast.named(("h", "w"), ("w", "h"))).tolist() == x.T.tolist()


def test_what_cannot_be_summed_is_refused():
    for dtype in ["O", "U1", "M8[D]", "?", "g", "G"]:
        with pytest.raises(TypeError, match="no sums of dtype"):
            simulcast.sum_to(np.zeros(3, dtype=dtype), ())
    with pytest.raises(simulcast.BroadcastError):
        simulcast.sum_to(np.ones((2, 3)), (2,))
    with pytest.raises(MemoryError):
        simulcast.sum_to(np.ones((0, 1 << 40)), (1, 1 << 40))


def test_any_number_of_threads_gives_the_same_bits():
    x = np.random.default_rng(1).standard_normal((700, 900)).astype("f4")
    one = simulcast.sum_to(x, (700, 1), threads=1)
    assert one.tobytes() == simulcast.sum_to(x, (700, 1)).tobytes()
    assert one.tobytes() == simulcast.sum_to(x, (700, 1), threads=3).tobytes()
    for threads in (0, -1):
        with pytest.raises(ValueError, match="from 1 on"):
            simulcast.sum_to(x, (700, 1), threads=threads)
