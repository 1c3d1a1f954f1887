"""What counts as an array: the traps of NumPy's protocols and of reading its memory from Rust."""

import threading
import time

import numpy as np
import pytest

import simulcast


def reference(x, axis):
    """A sum that NumPy makes of a plain copy."""
    return np.ascontiguousarray(x).astype(x.dtype.newbyteorder("=")).sum(axis, keepdims=True, dtype=x.dtype.newbyteorder("="))


PACKED = np.zeros((3, 4), dtype=[("a", "i1"), ("b", "f8")])
PACKED["b"] = np.arange(1, 13).reshape(3, 4)
TWELVE = np.zeros((3, 4), dtype=[("a", "i4"), ("b", "f8")])
TWELVE["b"] = np.arange(1, 13).reshape(3, 4)
SIXTEEN = np.zeros((3, 4), dtype=[("a", "f8"), ("b", "f8")])
SIXTEEN["b"] = np.arange(1, 13).reshape(3, 4)
PLAIN = np.arange(1.0, 13).reshape(3, 4)
MISALIGNED = np.frombuffer(b"\0" + PLAIN.tobytes(), dtype="f8", offset=1, count=12).reshape(3, 4)


@pytest.mark.parametrize(
    "x",
    [
        PLAIN,
        np.asfortranarray(PLAIN),
        PLAIN[::2, ::-1],
        PLAIN[::-1, 1::2],
        np.broadcast_to(PLAIN[:1], (3, 4)),
        PACKED["b"],
        TWELVE["b"],
        SIXTEEN["b"],
        MISALIGNED,
        PLAIN.astype(">f8"),
        PLAIN.astype("<i2").astype(">i2"),
        PACKED["b"][::-1, ::-2],
    ],
    ids=["C", "F", "slice", "negative", "stride 0", "stride 9", "stride 12", "stride 16", "misaligned", "big", "big i2", "mixed"],
)
def test_awkward_arrays_are_read_right(x):
    assert simulcast.sum_to(x, (1, x.shape[1])).tolist() == reference(x, 0).tolist()
    assert simulcast.sum_to(x, (x.shape[0], 1)).tolist() == reference(x, 1).tolist()
    shown = simulcast.broadcast_to(x, (2, *x.shape))
    assert shown.tolist() == [x.tolist()] * 2 and np.shares_memory(shown, x)


def test_64_axes_are_read_right():
    x = np.arange(1.0, 13).reshape((1,) * 40 + (3,) + (1,) * 22 + (4,))
    shape = (1,) * 63 + (4,)
    assert simulcast.sum_to(x, shape).tolist() == x.sum(40, keepdims=True).tolist()


def test_masked_arrays_are_refused():
    masked = np.ma.array([1, 2], mask=[True, False])
    for call in (simulcast.broadcast_arrays, lambda x: simulcast.broadcast_to(x, 2), lambda x: simulcast.sum_to(x, ())):
        with pytest.raises(TypeError, match="mask"):
            call(masked)


def test_classes_that_refuse_operators_are_refused():
    class Refuses:
        __array_ufunc__ = None

        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    with pytest.raises(TypeError, match="__array_ufunc__ is None"):
        simulcast.broadcast_to(Refuses(), (2, 2))


def test_subclasses_become_plain_arrays():
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1, 2]])
    shown = simulcast.broadcast_to(matrix, (3, 2))
    assert type(shown) is np.ndarray and shown.tolist() == [[1, 2]] * 3 and np.shares_memory(shown, matrix)

    class Own(np.ndarray):
        pass

    assert type(simulcast.sum_to(np.ones(3).view(Own), ())) is np.ndarray


class OnlyDlpack:
    """An array of another library: only DLPack."""

    def __init__(self, x):
        self._x = x

    def __dlpack__(self, **options):
        return self._x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._x.__dlpack_device__()


def test_dlpack_shares_memory():
    x = np.arange(1.0, 4)
    shown = simulcast.broadcast_to(OnlyDlpack(x), (2, 3))
    assert shown.tolist() == [x.tolist()] * 2 and np.shares_memory(shown, x)


def test_what_dlpack_cannot_give_is_refused():
    class Elsewhere(OnlyDlpack):
        def __dlpack__(self, **options):
            raise BufferError("on another device")

    with pytest.raises(TypeError, match="no array in this machine's memory"):
        simulcast.broadcast_to(Elsewhere(np.ones(2)), (2, 2))


def test_lists_scalars_and_xarray_are_arrays():
    import xarray

    assert simulcast.broadcast_to([1, 2], (2, 2)).tolist() == [[1, 2], [1, 2]]
    assert simulcast.broadcast_to(np.float32(3), (2,)).dtype == np.float32
    named = xarray.DataArray([1, 2], dims="b")
    assert simulcast.broadcast_to(named, (2, 2)).tolist() == [[1, 2], [1, 2]]


def test_the_interpreter_is_released_while_sums_are_made():
    x = np.ones((2048, 2048), dtype="f4")

    def runs_meanwhile():
        """Whether this thread runs in the middle of a sum that another one makes."""
        times, done = [], []

        def work():
            start = time.perf_counter()
            sums = simulcast.sum_to(x, (2048, 1), threads=1)
            done.extend([start, time.perf_counter(), sums])

        worker = threading.Thread(target=work)
        worker.start()
        while not done:
            times.append(time.perf_counter())
        worker.join()
        start, end, sums = done
        assert (sums == 2048).all()
        part = (end - start) / 4
        return sum(start + part < own < end - part for own in times) > 5

    assert any(runs_meanwhile() for _ in range(50))
