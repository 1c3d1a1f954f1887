"""NumPy's functions: types, values and errors are NumPy's, for every type and layout."""

import enum
import inspect
import math
import pickle
import signal

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import BINARY, DTYPES, ROUNDED, UNARY, bits, check, functions, outcome, values

import simulcast

pytestmark = pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
NUMBERS = [True, 2, -1, 300, -300, 2**40, 0.5, -1.5, 1e300, 1j]


def both(name, *args, **options):
    """Ours is compared with NumPy's."""
    check(name, outcome(getattr(simulcast, name), *args, **options), outcome(getattr(np, name), *args, **options))


def tame(name, x, y):
    """Exponents of complex numbers that NumPy's own powers bear: it loses a digit for each that they have."""
    return y[~(np.abs(y.astype("c16")) > 100)] if name == "power" and "c" in (x.dtype.kind, y.dtype.kind) else y


def test_every_operation_is_tried():
    assert len(UNARY) >= 38 and len(BINARY) >= 26
    tried = {name for operands in (1, 2, 3) for name in functions(operands)} | {"clip"}
    public = {name for name in simulcast.__all__ if "threads=" in (getattr(getattr(simulcast, name), "__text_signature__", "") or "")}
    aliases = {name for name in public if getattr(simulcast, name).__name__ != name}
    assert public - aliases - {"sum_to", "evaluate"} == tried
    for name in aliases - {"mod"}:
        assert getattr(np, name).__name__ in (getattr(simulcast, name).__name__, "invert"), name
    assert simulcast.mod is simulcast.remainder


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    for dtype in DTYPES:
        own = values(dtype)
        if name == "reciprocal" and dtype.kind == "i":
            own = own[own != 0]  # what NumPy gives there depends on the machine
        both(name, own)
        if name not in ("round", "real", "imag"):
            both(name, own[-1])


@pytest.mark.parametrize("name", BINARY)
def test_two_operands_of_all_types(name):
    for a in DTYPES:
        for b in DTYPES:
            x, y = values(a)[:, None], values(b)
            if name == "power" and b.kind == "i" and a.kind in "biu":
                both(name, x, y)
                y = y[y >= 0]
            both(name, x, tame(name, x, y))


@pytest.mark.parametrize("name", BINARY)
def test_numbers_of_pythons_are_weak(name):
    for dtype in DTYPES:
        for number in NUMBERS:
            if name == "power" and number in (0.5, -1, -1.5) and dtype.kind in "fcV":
                continue  # NumPy takes a root or a quotient for these, which differ for -0.0
            if name == "power" and dtype.kind == "c" and abs(number) > 100:
                continue
            both(name, values(dtype), number)
            both(name, number, tame(name, np.asarray(number), values(dtype)))


@pytest.mark.parametrize("large", [2**63, 2**64, 2**70, -(2**63) - 1])
def test_large_integers_are_computed_in_what_they_meet(large):
    for name, args in [
        ("multiply", (large, 0.5)),
        ("divide", (large, 1)),
        ("less", (large, 1)),
        ("equal", (large, large)),
        ("not_equal", (large, 7)),
        ("add", (large, 1j)),
        ("where", (True, large, 1.0)),
        ("clip", (1.5, 0, abs(large))),
        ("power", (large, 2.0)),
        ("maximum", (1.0, large)),
        ("arctan2", (large, 1.0)),
        ("hypot", (large, 1.0)),
        ("remainder", (large, 3.0)),
        ("floor_divide", (large, 3.0)),
    ]:
        ours, theirs = getattr(simulcast, name)(*args), getattr(np, name)(*args)
        assert ours == theirs and ours.dtype == theirs.dtype, name
    # Two that no type holds apart are not taken for each other.
    for name in ("equal", "less"):
        with pytest.raises(OverflowError):
            getattr(simulcast, name)(large, 2 * large)
    for name, args in [("add", (large, 1)), ("bitwise_and", (large, 1)), ("multiply", (np.int8(1), large))]:
        try:
            theirs = getattr(np, name)(*args)
        except (OverflowError, TypeError):
            theirs = None
        if theirs is None or theirs.dtype == object:
            with pytest.raises((OverflowError, TypeError)):
                getattr(simulcast, name)(*args)


def test_numpys_scalars_are_not():
    for a in DTYPES:
        for b in DTYPES:
            x, y = values(a)[:3], values(b)[1]
            both("add", x, y)
            both("add", y, x[0])
            both("add", x, np.asarray(y))
    assert simulcast.add(np.ones(2, "f4"), np.float64(1)).dtype == np.float64
    assert simulcast.add(1, 2).dtype == np.int64 and simulcast.add(True, 1.5) == 2.5
    assert type(simulcast.add(np.ones(()), 1)) is np.float64


class Length(float):
    pass


class Colour(enum.IntEnum):
    RED = 1


class Angle(complex):
    pass


@pytest.mark.parametrize("number", [Colour.RED, signal.SIGINT, Length(2), Angle(2j)])
def test_numbers_of_other_classes_are_not_weak(number):
    for dtype in DTYPES:
        both("add", values(dtype)[:3], number)
        both("multiply", number, values(dtype)[:3])
    x = np.ones(2, "f4")
    assert simulcast.evaluate("x + n", x=x, n=number).dtype == np.add(x, number).dtype


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons_with_large_integers_are_exact(name):
    for edge in (2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**70, -(2**70)):
        for dtype in "i1 i8 u1 u8 f4 f8".split():
            both(name, values(dtype), edge)
            both(name, edge, values(dtype))


def test_errors_are_numpys():
    for call in [
        lambda xp: xp.add(np.ones(2, "i1"), 200),
        lambda xp: xp.add(np.ones(2, "u1"), -1),
        lambda xp: xp.add(2**63, 1),
        lambda xp: xp.power(np.array([2]), np.array([-1])),
        lambda xp: xp.power(np.array([2]), -1),
        lambda xp: xp.power(2, -1),
        lambda xp: xp.subtract(np.array([True]), True),
        lambda xp: xp.bitwise_and(np.ones(2), 1),
        lambda xp: xp.add(np.ones(2), np.array(["a"])),
        lambda xp: xp.add(np.ones((2, 3)), np.ones(2)),
        lambda xp: xp.add(np.ones(3), 1, out=np.broadcast_to(0.0, 3)),
        lambda xp: xp.add(np.ones(3), 1, out=[0, 0, 0]),
        lambda xp: xp.add(np.ones(3), 1, out=np.ones(2)),
        lambda xp: xp.add(np.ones(3), 1, out=np.ones(1)),
        lambda xp: xp.add(np.ones((2, 3)), 1, out=np.ones(3)),
        lambda xp: xp.add(np.ones(2), 1, out=np.ones(2, "i4")),
        lambda xp: xp.add(np.array([1.5]), 1, dtype="i4"),
        lambda xp: xp.equal([1], [2], dtype="f8"),
        lambda xp: xp.add(np.ones(2), 1, casting="any"),
        lambda xp: xp.add(np.ones(2), np.ones(2), casting="any"),
        lambda xp: xp.add(np.ones(2), np.ones(2), out=np.ones(2), casting="any"),
        lambda xp: xp.clip(np.ones(2), 0, 1, casting="any"),
        lambda xp: xp.arctan2(np.ones(2, "c8"), 1),
        lambda xp: xp.add(),
        lambda xp: xp.add(1, 2, nonsense=3),
    ]:
        theirs = outcome(call, np)
        assert isinstance(theirs, type) and outcome(call, simulcast) is theirs, inspect.getsource(call)
    with pytest.raises(simulcast.BroadcastError, match=r"E1: A \(2, 3\) and B \(2,\).*help: B\[:, None\]"):
        simulcast.add(np.ones((2, 3)), np.ones(2))
    for odd in [np.ones(2, "g"), np.ones(2, "M8[s]"), np.array([1, 2], dtype=object), np.zeros(2, "i4,f4")]:
        with pytest.raises(TypeError, match="dtype|text"):
            simulcast.add(odd, odd)
    for bad in (0, -1):
        with pytest.raises(ValueError, match="threads"):
            simulcast.add([1], 2, threads=bad)


def test_dtype_and_out_are_numpys():
    for options in [{"dtype": "f4"}, {"dtype": "c16"}, {"dtype": "i2"}, {"dtype": "f4", "casting": "unsafe"}, {"dtype": "i1", "casting": "safe"}]:
        for x in (np.ones(3, "i4"), np.ones(3), 1, 2.5):
            both("add", x, 1, **options)
    for x, number in [(np.array([1.5, -2.75]), 2.5), (np.arange(2), -3.25), (np.arange(2), 2.5), (2.5, 3.75)]:
        both("add", x, number, dtype="i2", casting="unsafe")
    both("absolute", np.array([3 + 4j]), dtype="f8")
    both("equal", [1, 2], [1, 3], dtype=bool)
    for to in "i1 i8 f2 f4 f8 c16".split():
        for x in (np.arange(3, dtype="i4"), np.arange(3.0)):
            for casting in ("same_kind", "unsafe", "safe"):
                ours, theirs = np.zeros((2, 3), to), np.zeros((2, 3), to)
                made = outcome(simulcast.multiply, x, 2, out=ours, casting=casting)
                expected = outcome(np.multiply, x, 2, out=theirs, casting=casting)
                assert made is ours if expected is theirs else made is expected
                assert (ours == theirs).all()
    out = np.zeros(3)
    assert simulcast.add([1, 2, 3], 1, out) is out and simulcast.add([1, 2, 3], 1, out=(out,)) is out
    assert simulcast.add([1, 2, 3], 1, out=(None,)).tolist() == [2, 3, 4]
    assert out.tolist() == [2, 3, 4]
    kept = np.zeros(3).view(np.matrix)
    assert simulcast.add([[1, 2, 3]], 1, out=kept) is kept and kept.tolist() == [[2, 3, 4]]


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_casting_speaks_of_operands_too(casting):
    kinds = [np.ones(2, dtype) for dtype in "? i1 i4 i8 u8 f2 f4 f8 c8 c16".split()]
    for name in ("add", "divide", "power", "maximum", "arctan2", "less"):
        for x in kinds:
            for y in kinds:
                if not (name == "less" and {x.dtype.char, y.dtype.char} == {"l", "L"}):  # NumPy casts neither there
                    both(name, x, y, casting=casting)
    for name in ("sqrt", "exp", "negative", "floor", "absolute"):
        for x in kinds:
            both(name, x, casting=casting)
    both("clip", np.ones(2, "i4"), np.ones(2), 2.0, casting=casting)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_casting_speaks_of_the_order_of_bytes(casting):
    orders = [np.arange(1, 4).astype(order + kind) for order in "<>" for kind in ("i2", "f4", "f8", "c16")]
    for x in orders:
        both("negative", x, casting=casting)
        both("clip", x.real, x.real[..., :1], None, casting=casting)
        # NumPy refuses numbers of Python's under "equiv", which it takes under "no".
        for y in [*orders[::3], *([2.0] if casting != "equiv" else [])]:
            both("add", x, y, casting=casting)
            both("add", x, y, dtype="c16", casting=casting)
        for order in "<>":
            for kind in ("i2", "f8"):
                ours, theirs = np.zeros(x.shape, order + kind), np.zeros(x.shape, order + kind)
                made = outcome(simulcast.add, x.real, x.real, out=ours, casting=casting)
                expected = outcome(np.add, x.real, x.real, out=theirs, casting=casting)
                assert made is ours if expected is theirs else made is expected
                assert (ours == theirs).all()
    words = [np.array(["a", "bc"], order + "U2") for order in "<>"]
    for x in words:
        theirs = outcome(np.add, x, words[0], casting=casting)
        ours = outcome(simulcast.add, x, words[0], casting=casting)
        assert ours is theirs if isinstance(theirs, type) else (ours == theirs).all()


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
def test_out_that_is_an_operand_too(step):
    for dtype in ("f8", "u1"):
        for shift in range(-3, 4):
            ours, theirs = np.arange(30, dtype=dtype), np.arange(30, dtype=dtype)
            for xp, own in ((simulcast, ours), (np, theirs)):
                source = own[10:20][::step]
                place = own[10 + shift : 10 + shift + len(source)]
                xp.add(source, place, out=place)
            assert (ours == theirs).all()
    ours = np.arange(9.0).reshape(3, 3)
    simulcast.add(ours, ours.T, out=ours)
    assert (ours == np.add(np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3).T)).all()
    same = np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))
    simulcast.add(np.ones(3), 1, out=same)
    assert same.tolist() == [2, 2, 2]


@st.composite
def laid_out(draw, shape, dtype):
    """An array of that shape with values of the type, in any layout that NumPy can make."""
    pool = values(dtype)
    count = math.prod(shape)
    chosen = draw(st.lists(st.integers(0, len(pool) - 1), min_size=min(count, 8), max_size=min(count, 8)))
    x = np.resize(pool[chosen] if chosen else pool[:0], shape) if count else np.empty(shape, dtype)
    how = draw(st.sampled_from(["C", "F", "sliced", "negative", "zero", "swapped", "misaligned", "field", "read-only"]))
    if how == "F":
        return np.asfortranarray(x)
    if how == "sliced":
        wide = np.zeros([2 * size + 1 for size in shape], dtype)
        inner = tuple(slice(1, 2 * size, 2) for size in shape)
        wide[inner] = x
        return wide[inner]
    if how == "negative":
        turn = (slice(None, None, -1),) * x.ndim
        return np.ascontiguousarray(x[turn])[turn]
    if how == "zero":
        return np.broadcast_to(x.flat[0], shape) if count else x
    if how == "swapped" and x.dtype.isbuiltin == 1:
        return x.astype(x.dtype.newbyteorder("S"))
    if how == "misaligned":
        raw = np.zeros(x.nbytes + 1, "u1")
        odd = raw[1:].view(dtype).reshape(shape)
        odd[...] = x
        return odd
    if how == "field" and x.dtype.isbuiltin == 1:
        record = np.zeros(shape, [("a", "u1"), ("b", dtype)])
        record["b"] = x
        return record["b"]
    if how == "read-only":
        x.flags.writeable = False
    return x


@st.composite
def broadcastable(draw, count):
    """Shapes that broadcast."""
    whole = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 17]), max_size=4))
    shapes = []
    for _ in range(count):
        own = [draw(st.sampled_from([size, size, 1])) for size in whole]
        shapes.append(tuple(own[draw(st.integers(0, len(own))) :]))
    return shapes


@settings(max_examples=400)
@given(st.data())
def test_any_shapes_and_strides(data):
    name = data.draw(st.sampled_from([*UNARY, *BINARY]))
    shapes = data.draw(broadcastable(1 if name in UNARY else 2))
    args = [data.draw(laid_out(shape, data.draw(st.sampled_from(DTYPES)))) for shape in shapes]
    if name == "reciprocal" and args[0].dtype.kind == "i":
        return
    if name in ("round", "real", "imag") and args[0].ndim == 0:
        return  # these are no ufuncs, and give an array back there
    theirs = outcome(getattr(np, name), *args)
    check(name, outcome(getattr(simulcast, name), *args), theirs)
    if isinstance(theirs, type) or name in ROUNDED:
        return
    theirs = np.asarray(theirs)
    out = data.draw(laid_out((2, *theirs.shape), theirs.dtype)).copy(order="K")
    outcome(getattr(simulcast, name), *args, out=out)
    if theirs.dtype.kind != "c":
        assert (bits(out) == bits(np.broadcast_to(theirs, out.shape).astype(out.dtype))).all()


def test_where_is_numpys():
    for a in DTYPES:
        for b in DTYPES:
            x, y = values(a)[:2], values(b)[:2]
            ours = outcome(simulcast.where, np.array([True, False]), x, y)
            theirs = outcome(np.where, np.array([True, False]), x, y)
            check("where", ours, theirs)
    for condition in ([2, 0], np.array([0.0, np.nan]), [1j, 0]):
        assert (simulcast.where(condition, 1.5, np.float32(2)) == np.where(condition, 1.5, np.float32(2))).all()
    assert simulcast.where(np.array([True, False]), np.ones(2, "f4"), 2.0).dtype == np.float32


def test_clip_is_numpys():
    for dtype in DTYPES:
        if dtype == ml_dtypes.bfloat16:
            continue  # ml_dtypes has no clip, and NumPy takes float32
        x = values(dtype)
        for low, high in [(1, 3), (None, 2), (0, None), (-1, 300), (0.5, 2), (x[1], x[0]), (np.int8(1), np.float32(3))]:
            check("clip", outcome(simulcast.clip, x, low, high), outcome(np.clip, x, low, high))
    x = np.arange(6.0).reshape(2, 3)
    both("clip", x, np.array([[1], [2]]), [3, 4, 5])
    both("clip", x, min=2, max=3.5)
    assert simulcast.clip(x, 1, rule="exact").tolist() == np.clip(x, 1, None).tolist()
    out = np.zeros((2, 3), "f4")
    assert simulcast.clip(x, 1, 2, out) is out and (out == np.clip(x, 1, 2)).all()


INTEGERS = "i1 u1 i2 u2 i4 u4 i8 u8".split()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_divisions_of_integers_are_numpys(name, dtype):
    info = np.iinfo(dtype)
    bits = [1 << n for n in range(info.bits)]
    edges = {sign * (x + by) for x in [0, *bits, *(x // 3 for x in bits)] for by in (-1, 0, 1) for sign in (1, -1)}
    edges = [x for x in edges | {info.min, info.max} if info.min <= x <= info.max]
    values = np.arange(info.min, info.max + 1, dtype=dtype) if info.bits == 8 else np.array(sorted(edges), dtype)
    small = values[(values >= -(2**40)) & (values <= 2**40)] if dtype == "i8" else values[values <= 2**40]
    for x in (values, small):
        both(name, x[:, None], x)
    for divisor in values:
        both(name, values, divisor)
        both(name, divisor, values)


def test_those_that_numpy_lacks():
    x = np.linspace(-6, 6, 241)
    assert np.abs(simulcast.erf(x) - np.vectorize(math.erf)(x)).max() <= 4e-16
    wide = x.astype("g")
    assert np.abs(simulcast.sigmoid(x) - 1 / (1 + np.exp(-wide))).max() <= 4e-16
    assert (simulcast.softsign(x) == x / (1 + np.abs(x))).all()
    assert (simulcast.relu(x) == np.maximum(x, 0)).all() and np.isnan(simulcast.relu(np.nan))
    a, b = np.arange(-9, 10)[:, None], np.array([-4, -3, 2, 5])
    assert (simulcast.trunc_divide(a, b) == np.trunc(a / b)).all() and simulcast.trunc_divide(a, 2).dtype == a.dtype
    exact = np.array([[1.5, 2.0], [3.0, -4.0]])
    assert (simulcast.multiply_add(exact, [2, 3], 1) == exact * [2, 3] + 1).all()


def test_other_rules():
    image, bias = np.zeros((2, 3, 4)), np.array([1.0, 2.0, 3.0])
    ours = simulcast.add(image, bias, rule=simulcast.pdpd(axis=1))
    assert (ours == image + bias[:, None]).all()
    turned = simulcast.subtract(image[0], np.ones((4, 3)), rule=simulcast.named(("c", "w"), ("w", "c")))
    assert (turned == image[0] - 1).all()
    # Two steps in the engine, one rule.
    signed, unsigned = np.array([[-1], [5]]), np.array([4, 6], "u8")
    assert (simulcast.less(signed, unsigned, rule="paddle:0") == (signed < unsigned[:, None])).all()
    assert simulcast.negative(bias, rule=simulcast.to((2, 3))).tolist() == [[-1, -2, -3]] * 2
    assert simulcast.multiply(bias, 2, rule="exact").tolist() == [2, 4, 6]
    with pytest.raises(simulcast.BroadcastError, match="rule exact"):
        simulcast.add(image, bias, rule="exact")
    out = np.zeros((2, 3, 4))
    assert simulcast.add(image, bias, out=out, rule="pdpd:1") is out and (out == ours).all()


def test_text():
    for dtype in ("U3", np.dtypes.StringDType(), object):
        x, y = np.array(["a", "bc", ""], dtype), np.array([["a"], ["é"]], dtype)
        for name in ("add", "equal", "not_equal"):
            ours, theirs = getattr(simulcast, name)(x, y), getattr(np, name)(x, y)
            assert ours.dtype == theirs.dtype and (ours == theirs).all()
        ours = simulcast.where([True, False, True], x, "-")
        assert ours.tolist() == ["a", "-", ""] and ours.dtype == (x.dtype if dtype != "U3" else np.dtype("U3"))
    assert simulcast.add("a", "b") == "ab"
    with pytest.raises(TypeError):
        simulcast.less(np.array(["a"]), "b")
    out = np.zeros(2, "U9")
    assert simulcast.add(np.array(["x", "y"]), "z", out=out) is out and out.tolist() == ["xz", "yz"]


def test_sixty_four_axes():
    x = np.arange(6.0).reshape((1,) * 30 + (2,) + (1,) * 32 + (3,))
    assert x.ndim == 64 and (simulcast.add(x, x.swapaxes(30, 31)) == x + x.swapaxes(30, 31)).all()
    assert simulcast.add(np.ones((2,) * 10), np.ones((2,) * 9)).shape == (2,) * 10


def test_layouts_of_results():
    x = np.asfortranarray(np.ones((3, 4)))
    assert simulcast.add(x, 1).flags.f_contiguous and simulcast.add(x, np.ones(4)).flags.f_contiguous
    assert simulcast.add(x, np.ones((3, 4))).flags.c_contiguous


def test_bfloat16_is_ml_dtypes():
    x = np.array([1.0, 2.5], ml_dtypes.bfloat16)
    assert simulcast.exp(x).dtype == x.dtype and simulcast.add(x, ml_dtypes.bfloat16(1)).dtype == x.dtype
    assert simulcast.evaluate("bfloat16(x)", x=[1.0, 2.5]).dtype == x.dtype


def test_functions_pickle_and_policies_hold():
    assert pickle.loads(pickle.dumps(simulcast.add)) is simulcast.add
    column, row = np.ones((3, 1)), np.ones(3)
    for call in [
        lambda: simulcast.subtract(column, row),
        lambda: simulcast.clip(column, row, 2),
        lambda: simulcast.evaluate("a - b", a=column, b=row),
        lambda: simulcast.vjp("subtract", (column, row), np.ones((3, 3))),
    ]:
        with simulcast.strict(), pytest.raises(simulcast.BroadcastError, match="SC102"):
            call()
    with simulcast.record() as broadcasts:
        simulcast.add(column, 1)
        simulcast.evaluate("a * 2 - b[None]", a=column, b=row)
    assert [own.function for own in broadcasts] == ["add", "evaluate"]
    assert broadcasts[1].shapes == ((3, 1), (1, 3)) and broadcasts[1].file == __file__


def test_gradients():
    rng = np.random.default_rng(5)
    x, y, grad = rng.uniform(0.5, 2, (3, 4)), rng.uniform(0.5, 2, 4), rng.normal(size=(3, 4))
    step = 1e-6
    for name in ("add", "subtract", "multiply", "divide", "power", "arctan2", "hypot", "maximum"):
        function = getattr(simulcast, name)
        for_x, for_y = simulcast.vjp(function, (x, y), grad)
        theirs = [getattr(np, name)(x + dx, y + dy) for dx, dy in ((step, 0), (-step, 0), (0, step), (0, -step))]
        assert np.allclose(for_x, grad * (theirs[0] - theirs[1]) / (2 * step), atol=1e-7)
        assert np.allclose(for_y, (grad * (theirs[2] - theirs[3]) / (2 * step)).sum(0), atol=1e-7)
    [for_x] = simulcast.vjp("exp", (x,), grad)
    assert np.allclose(for_x, grad * np.exp(x))
    decides, kept, other = simulcast.vjp("where", (x > 1, x, 0.0), grad)
    assert decides is None and (kept == np.where(x > 1, grad, 0)).all() and np.isclose(other, grad[x <= 1].sum())
    by_row = simulcast.vjp("multiply", (x, y[:3]), grad, rule="pdpd:0")[1]
    assert np.allclose(by_row, (grad * x).sum(1))
    inner, low, high = simulcast.vjp("clip", (x, None, 1.0), grad)
    assert low is None and (inner == np.where(x > 1, 0, grad)).all() and np.isclose(high, grad[x > 1].sum())
    for name, own in [("equal", (x, y)), ("add", (x,)), ("clip", (x,))]:
        with pytest.raises(TypeError):
            simulcast.vjp(name, own, grad)
    for name, same in [("pow", "power"), ("abs", "absolute"), ("acos", "arccos"), ("true_divide", "divide")]:
        own = (np.full(3, 0.25),) * (2 if name in ("pow", "true_divide") else 1)
        ours, theirs = simulcast.vjp(name, own, np.ones(3)), simulcast.vjp(same, own, np.ones(3))
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))
    for function, own, given, said in [
        ("exp", (x,), None, "no gradient"),
        (5, (x,), grad, "or its name, not 5"),
        ("clip", (x, 0.0, 1.0, 2.0), grad, "two bounds"),
    ]:
        with pytest.raises(TypeError, match=said):
            simulcast.vjp(function, own, given)
    with pytest.raises(ValueError, match="no operation"):
        simulcast.vjp("convolve", (x, y), grad)
    with pytest.raises(simulcast.BroadcastError):
        simulcast.vjp("add", (x, y), grad[0])


CLIPS = [
    ("numpy", (3, 4), (4,), (3, 1)),
    ("exact", (3, 4), (3, 4), 1.4),
    ("exact", (3, 4), 0.8, 1.4),
    ("unidirectional", (3, 4), (1, 4), (3, 1)),
    ("pdpd:0", (3, 4), (3,), None),
    ("pdpd:0", (3, 4), (3,), 1.4),
    ("pdpd:0", (3, 4), None, 1.4),
    ("legacy:0", (3, 4), None, (3,)),
    ("paddle:0", (3,), (3, 4), 1.4),
    ("paddle:0", (3,), None, (3, 4)),
    (simulcast.named(("a", "b"), ("b", "a")), (3, 4), (4, 3), None),
    (simulcast.to((3, 4)), (3, 1), 0.8, 1.4),
    (simulcast.bidirectional((3, 1)), (1, 4), 0.8, None),
    (simulcast.axes((3, 4), (0,)), (4,), None, 1.4),
    (simulcast.mapping((3, 4), (0,)), (3,), 0.8, 1.4),
]


@pytest.mark.parametrize("rule, shapes", [(rule, shapes) for rule, *shapes in CLIPS], ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["arrays", "dask"])
def test_gradients_of_clip_are_slopes_under_every_rule(rule, shapes, lazy):
    import dask.array as da

    rng = np.random.default_rng(5)
    own = [rng.uniform(0.5, 2, shape) if isinstance(shape, tuple) else shape for shape in shapes]
    grad = rng.normal(size=(3, 4))
    given = [da.from_array(own[0], chunks=2), *own[1:]] if lazy else own
    gradients = simulcast.vjp("clip", given, grad, rule=rule)
    assert len(gradients) == 3
    step = 1e-6
    for place, (x, ours) in enumerate(zip(own, gradients)):
        assert (x is None) == (ours is None)
        if x is None:
            continue
        theirs = np.empty(np.shape(x))
        for at in np.ndindex(theirs.shape):
            results = []
            for sign in (step, -step):
                moved = np.array(x, float)
                moved[at] += sign
                moved = moved if theirs.ndim else float(moved)
                operands = [moved if place == k else other for k, other in enumerate(own)]
                results.append(simulcast.clip(*operands, rule=rule))
            theirs[at] = (grad * (results[0] - results[1]) / (2 * step)).sum()
        assert ours.shape == theirs.shape and np.allclose(ours, theirs, atol=1e-7)


def test_numbers_beside_gradients_fit_every_rule_and_stay_weak():
    import dask.array as da

    x, grad = np.arange(1, 7, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")
    for given in (x, da.from_array(x, chunks=2)):
        for rule in ("numpy", "exact", "pdpd:0", simulcast.unidirectional()):
            for_x, for_k = simulcast.vjp("multiply", (given, 2.0), grad, rule=rule)
            assert for_x.dtype == for_k.dtype == np.float32 and for_k.shape == ()
            assert np.asarray(for_x).tolist() == [[2] * 3] * 2 and float(for_k) == 21
    with pytest.raises(simulcast.BroadcastError):
        simulcast.vjp("multiply", (x, np.array(2.0)), grad, rule="exact")
    with pytest.raises(simulcast.BroadcastError):
        simulcast.vjp("clip", (x, x, x[0]), grad, rule="pdpd:0")
