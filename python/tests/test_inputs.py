"""What counts as an array: the traps of NumPy's protocols and of reading its memory from Rust."""

import threading
import time

import ml_dtypes
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


def truths(*shape):
    """Truths of other bytes than 0 and 1, as a view of integers has them, and what they are."""
    x = np.resize(np.array([2, 3, 0, 1, 255, 0, 128, 0, 0], np.uint8), shape)
    return x.view(bool), x != 0


TRUTHS = {
    "bitwise_and": simulcast.bitwise_and,
    "add": simulcast.add,
    "less": simulcast.less,
    "equal": simulcast.equal,
    "where bool": lambda x, y: simulcast.where(x, y, x),
    "where text": lambda x, y: simulcast.where(x, "yes", "no"),
    "where rule": lambda x, y: simulcast.where(x, y, x, rule="exact"),
    "positive": lambda x, y: simulcast.abs(x),
    "out": lambda x, y: simulcast.logical_xor(x, y, out=np.empty(x.shape, bool)),
    "cast out": lambda x, y: simulcast.logical_or(x, y, out=np.empty(x.shape, np.int8)),
    "dtype": lambda x, y: simulcast.add(x, y, dtype=np.int16),
    "numbers": lambda x, y: simulcast.multiply(x, 2.5),
    "clip": lambda x, y: simulcast.clip(x, 0, 1),
    "vjp": lambda x, y: simulcast.vjp("where", (x, np.ones(x.shape), 2.0), np.ones(x.shape))[1],
    "sum_to": lambda x, y: simulcast.sum_to(simulcast.add(x, 0), (1,) * x.ndim),
    "evaluate": lambda x, y: simulcast.evaluate("~x | y", x=x, y=y),
    "copy": lambda x, y: simulcast.evaluate("x", x=x),
    "count": lambda x, y: simulcast.evaluate("sum(x & y)", x=x, y=y),
    "counts": lambda x, y: simulcast.evaluate("sum(x, axis=-1)", x=x),
    "any": lambda x, y: simulcast.evaluate("max(x, axis=-1)", x=x),
    "all": lambda x, y: simulcast.evaluate("min(x, axis=0)", x=x),
    "compile": lambda x, y: simulcast.compile("where(x, 1, y) + x")(x=x, y=y),
}


@pytest.mark.parametrize("shape", [(4,), (3, 4), (5000,), (70, 900)], ids=str)
@pytest.mark.parametrize("function", TRUTHS.values(), ids=TRUTHS)
def test_truths_of_other_bytes_are_truths(function, shape):
    (x, truth), (y, other) = truths(*shape), truths(*shape[::-1])
    for turn in (np.array, lambda own: own[..., ::-1], lambda own: np.asfortranarray(own)):
        ours, theirs = function(turn(x), turn(y).T), function(turn(truth), turn(other).T)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_truths_of_other_bytes_are_numpys():
    x, y = truths(70)[0], truths(71)[0][1:]
    for ours, theirs in [
        (simulcast.bitwise_and(x, y), x & y),
        (simulcast.bitwise_or(x, y), x | y),
        (simulcast.bitwise_xor(x, y), x ^ y),
        (simulcast.bitwise_not(x), ~x),
        (simulcast.less(x, y), x < y),
        (simulcast.equal(x, y), x == y),
        (simulcast.evaluate("sum(x)", x=x), np.count_nonzero(x)),
        (simulcast.evaluate("float32(x)", x=x), x.astype(np.float32)),
        (simulcast.where(x, 1.5, 2.5), np.where(x, 1.5, 2.5)),
    ]:
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_64_axes_are_read_right():
    x = np.arange(1.0, 13).reshape((1,) * 40 + (3,) + (1,) * 22 + (4,))
    shape = (1,) * 63 + (4,)
    assert simulcast.sum_to(x, shape).tolist() == x.sum(40, keepdims=True).tolist()


DTYPES = [np.dtype(char) for char in np.typecodes["All"] if char not in "SUVMm"]
DTYPES += [np.dtype(name) for name in ("S3", "U3", ">U3", "V3", "M8[s]", "m8[s]", ">f8", ">i2", "i1,>f8")]
DTYPES += [np.dtypes.StringDType(), np.dtypes.StringDType(na_object=None)]
DTYPES += [np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "int4")]


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_every_dtype_is_shown_as_it_is(dtype):
    numbers = dtype.kind in "biufcOV" and dtype.names is None and dtype != "V3"
    x = np.array([1, 0, 2]).astype(dtype) if numbers else np.zeros(3, dtype)
    x = np.array(["one", "", "two"], dtype) if dtype.kind in "SUT" else x
    for shown in (simulcast.broadcast_to(x, (2, 3)), simulcast.broadcast_arrays(np.zeros((2, 1)), x)[1]):
        assert shown.dtype == dtype and shown.strides[0] == 0 and not shown.flags.writeable and np.shares_memory(shown, x)
        assert shown.tolist() == [x.tolist()] * 2 == shown.copy().tolist()


OPERATIONS = [
    lambda x: simulcast.broadcast_arrays(x),
    lambda x: simulcast.broadcast_to(x, 2),
    lambda x: simulcast.sum_to(x, ()),
    lambda x: simulcast.add(x, 1),
    lambda x: simulcast.where(True, 1, x),
    lambda x: simulcast.clip(1, x),
    lambda x: simulcast.vjp("multiply", (x, 2.0), np.ones(2)),
    lambda x: simulcast.vjp("exp", (np.ones(2),), x),
    lambda x: simulcast.evaluate("x + 1", x=x),
    lambda x: simulcast.evaluate("y + 1", local_dict={"y": x}),
    lambda x: simulcast.compile("x + 1")(x=x),
    lambda x: simulcast.guard(x),
]


class GivesMasked:
    def __array__(self, dtype=None, copy=None):
        return MASKED


MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


@pytest.mark.parametrize("x", [MASKED, GivesMasked()], ids=["masked", "gives masked"])
@pytest.mark.parametrize("call", OPERATIONS)
def test_masked_arrays_are_refused(call, x):
    with pytest.raises(TypeError, match="mask"):
        call(x)


def test_a_masked_array_is_no_out():
    with pytest.raises(TypeError, match="mask"):
        simulcast.add([1, 2], 1, out=np.ma.array([1, 2]))


@pytest.mark.parametrize("call", OPERATIONS)
def test_classes_that_refuse_operators_are_refused(call):
    class Refuses:
        __array_ufunc__ = None

        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

    class RefusingArray(np.ndarray):
        __array_ufunc__ = None

    for x in (Refuses(), np.ones(2).view(RefusingArray)):
        with pytest.raises(TypeError, match="__array_ufunc__ is None"):
            call(x)


OUTS = {
    "misaligned": lambda: np.frombuffer(bytearray(97), dtype="f8", offset=1).reshape(3, 4),
    "big": lambda: np.zeros((3, 4), ">f8"),
    "stride 9": lambda: np.zeros((3, 4), dtype=[("a", "i1"), ("b", "f8")])["b"],
    "stride 12": lambda: np.zeros((3, 4), dtype=[("a", "i4"), ("b", "f8")])["b"],
    "backwards": lambda: np.zeros((3, 4))[::-1, ::-1],
    "sliced": lambda: np.zeros((6, 8))[::2, 1::2],
    "F": lambda: np.zeros((3, 4), order="F"),
    "float32": lambda: np.zeros((3, 4), "f4"),
}


@pytest.mark.parametrize("make", OUTS.values(), ids=OUTS)
def test_awkward_outs_are_written_right(make):
    row = np.array([10.0, 20, 30, 40])
    for call in (
        lambda out: simulcast.add(PLAIN, row, out=out),
        lambda out: simulcast.evaluate("x + row", x=PLAIN, row=row, out=out),
        lambda out: simulcast.clip(PLAIN + row, None, 1000, out=out),
        lambda out: simulcast.add(PLAIN, MISALIGNED - MISALIGNED + row.astype(">f8"), out=out),
    ):
        out = make()
        assert call(out) is out and out.tolist() == (PLAIN + row).tolist()


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_large_outs_between_two_places_for_complex_numbers(dtype):
    """Their alignment is that of a part, so that none of them may begin at a line of memory."""
    part = np.dtype(dtype).itemsize // 2
    x = (np.arange(3 << 20) % 1009).astype(dtype) * (1 + 2j)
    held = np.zeros(x.nbytes + 2 * part, "u1")
    first = part if held.ctypes.data % (2 * part) == 0 else 0
    out = held[first : first + x.nbytes].view(dtype)
    assert out.flags.aligned and out.ctypes.data % (2 * part) == part
    assert simulcast.multiply(x, x[:1] + 3, out=out) is out
    assert (out == x * (x[:1] + 3)).all()
    assert not held[:first].any() and not held[first + x.nbytes :].any()


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


def test_what_is_negated_when_it_is_read_is_negated():
    class Negated(OnlyDlpack):
        """As a tensor of torch whose negative bit is set: DLPack shows it without."""

        def resolve_neg(self):
            return OnlyDlpack(-self._x)

    assert simulcast.multiply(Negated(np.array([2.0, -4.0])), 1).tolist() == [-2.0, 4.0]


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
    assert simulcast.sum(named) == 3 and simulcast.broadcast_to(named.data, (2, 2)).tolist() == [[1, 2], [1, 2]]


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
