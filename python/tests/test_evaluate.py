"""Expressions: what NumPy computes of the same text, and errors that point into it."""

import inspect
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import DTYPES, outcome, values

import simulcast

pytestmark = pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")

NAMES = {
    name: getattr(np, name)
    for name in "sqrt exp log sin cos tanh where maximum minimum floor hypot arctan2 clip nan inf pi e".split()
}
NAMES.update(abs=np.abs, float32=np.float32, float64=np.float64, int32=np.int32)

EXPRESSIONS = """
a + b * c
(a - b) / (c * c + 1)
2 * a + 3 * b
sin(a)**2 + cos(a)**2
sqrt(a*a + b*b)
where(a > b, a, b) - c
(a > 0) & (b < 2) | ~(c >= 1)
a % 3 + b // 2
-a + +b - abs(c)
exp(-a*a) / 2.5
maximum(a, minimum(b, c))
a * 1j + b
arctan2(a, b) * hypot(a, c)
clip(a, -1, 1) + pi
(a != b) == (b != c)
floor(a * 10) / 10
a[:, None] * b[None, :]
a.T + b.T
a.sum() + b
(a - a.mean(axis=0)) / (a.max(axis=0) - a.min(axis=0) + 1)
a.sum(axis=-1, keepdims=True) + b
""".strip().splitlines()


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("types", ["f8 f8 f8", "f4 f4 f4", "i4 f4 f8", "i2 u1 i8"])
def test_numpy_computes_the_same(text, types):
    rng = np.random.default_rng(7)
    shape = (6,) if "None" in text else (4, 6)
    own = {name: rng.integers(-4 if dtype[0] != "u" else 0, 9, shape).astype(dtype) for name, dtype in zip("abc", types.split())}
    for name, x in own.items():
        if x.dtype.kind == "f":
            own[name] = x + rng.uniform(0, 0.5, shape).astype(x.dtype)
    with np.errstate(all="ignore"):
        theirs = eval(text, {**NAMES, **own})
    names = simulcast.compile(text).operands
    ours = simulcast.evaluate(text, **{name: own[name] for name in names})
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype.kind in "biu":
        assert (ours == theirs).all()
    else:
        # Of small integers, functions are computed in float16 and float32.
        eps = np.finfo("f4" if "u1" in types else theirs.dtype).eps
        assert np.allclose(ours, theirs, rtol=64 * eps, atol=64 * eps, equal_nan=True)


@given(st.data())
def test_arithmetic_over_any_shapes_is_numpys(data):
    """Sums, products and comparisons have the same bits, however they are nested."""
    whole = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 7]), max_size=3))
    own = {}
    for name in "abc":
        shape = [data.draw(st.sampled_from([size, 1])) for size in whole]
        shape = tuple(shape[data.draw(st.integers(0, len(shape))) :])
        dtype = data.draw(st.sampled_from([dtype for dtype in DTYPES if dtype.kind in "iuf" and dtype.itemsize > 2]))
        own[name] = np.resize(values(dtype), shape) if np.prod(shape) else np.empty(shape, dtype)
        if data.draw(st.booleans()):
            own[name] = np.asfortranarray(own[name])[::-1] if shape else own[name]
    number = data.draw(st.sampled_from([2, -3, 0.5, True]))
    text = data.draw(
        st.recursive(
            st.sampled_from(["a", "b", "c", "k", "2", "1.5"]),
            lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+ - * < >= == !=".split()), inner),
            max_leaves=6,
        )
    )
    with np.errstate(all="ignore"):
        theirs = outcome(eval, text, {**own, "k": number})
    if isinstance(theirs, (bool, int, float)):
        return
    operands = {name: x for name, x in {**own, "k": number}.items() if name in text}
    ours = outcome(simulcast.evaluate, text, **operands)
    if isinstance(theirs, type):
        assert ours is theirs
        return
    theirs = np.asarray(theirs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind == "f")


def test_weak_numbers_and_where_they_come_from():
    x = np.ones(3, "f4")
    assert simulcast.evaluate("x * k", x=x, k=2.0).dtype == np.float32
    assert simulcast.evaluate("x * k", x=x, k=np.float64(2)).dtype == np.float64
    assert simulcast.evaluate("x * k", local_dict={"x": x, "k": 3, "other": 1}).tolist() == [3, 3, 3]
    assert simulcast.evaluate("x * k", x=x, local_dict={"x": 0, "k": 3}).tolist() == [3, 3, 3]
    assert simulcast.evaluate("e", e=x) is not x and simulcast.evaluate("e") == np.e
    assert type(simulcast.evaluate("1 + 2")) is np.int64 and type(simulcast.evaluate("x.sum()", x=x)) is np.float32
    assert simulcast.evaluate("'a' + s", s=np.array(["b", "cde"])).tolist() == ["ab", "acde"]
    assert simulcast.evaluate("where(s == 'b', s, 'longer')", s=np.array(["b", "c"])).tolist() == ["b", "longer"]
    with pytest.raises(OverflowError, match="does not fit in int8"):
        simulcast.evaluate("x + 200", x=np.ones(2, "i1"))
    with pytest.raises(OverflowError, match="too large an integer"):
        simulcast.evaluate("x + 10 ** 40", x=np.ones(2, "i8"))
    for call in [
        lambda: simulcast.evaluate("n ** -1", n=np.array([1, 2])),
        lambda: simulcast.evaluate("(n + 1) ** (m - 3)", n=np.array([1, 2]), m=np.array([[3], [2]])),
        lambda: simulcast.evaluate("n ** m", n=np.array([1, 2]), m=-1),
    ]:
        with pytest.raises(ValueError, match="negative integer powers"):
            call()
    assert simulcast.evaluate("n ** m", n=np.array([1.0, 2.0]), m=-1).tolist() == [1, 0.5]


LITERALS = """
7 // 2; -7 // 2; 7 // -2; 7 % 3; -7 % 3; 7 % -3; 7.5 // 2; -7.5 // 2; -7.5 % 2; 7.5 % -2; 7 / 2; 2 ** 3; 2 ** -1; (-2) ** 3;
(-8.0) ** 2; 2 ** 0.5; 0.0 ** 0; 7 << 1; -7 >> 1; 7 >> 200; 7 & 3; 7 | 8; 7 ^ 1; ~7; 1 + 2j; 1j * 1j; 1.5 - 2; 0 * 1.5; 1e308 * 10;
True + True; True - True; -True; True * 2; True / 2; True // 1; True % 2; True ** 2; True + 1.5; True << 1; ~True; True & True;
True | False; True ^ True; 2 < 3; 2.5 >= 3; (2 < 3) + 1; (2 < 3) + (2 < 3); (1 < 2 < 3) * 2; not 3; 1 if 2 < 3 else 4; 4.5 if 0 else 1;
-1.0 // inf; 1.5 // -inf; 255 // -inf; 2.5 // inf; -0.0 // 2; 7 / -3; 1 / 3; -2**70 / 3; 1 / 2**70; 0 / -3; 2**100 / (2**100 - 1); ~(1j == 2); -(1j != 2); (1j != 2) ^ 0; 9007199254740993 / 3
""".replace("\n", " ").split(";")


@pytest.mark.parametrize("text", [own.strip() for own in LITERALS])
@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "f2", "f4", "c8"])
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
def test_numbers_among_themselves_are_pythons_and_stay_weak(text, dtype):
    x = np.array([1, 0, 1]).astype(dtype)
    with np.errstate(all="ignore"):
        theirs = outcome(eval, f"x * ({text})", {"x": x, "inf": np.inf})
    ours = outcome(simulcast.evaluate, f"x * ({text})", x=x)
    assert ours is theirs if isinstance(theirs, type) else ours.dtype == theirs.dtype
    assert isinstance(theirs, type) or np.array_equal(ours, theirs, equal_nan=theirs.dtype.kind in "fc")


@pytest.mark.parametrize("condition", [0, 1, 2.5, True, False, 0j])
def test_which_number_is_chosen_says_nothing_of_the_type(condition):
    for yes in (True, 2, 0.5, 1j):
        for no in (False, 3, 1.5, 2j):
            theirs = np.where(condition, yes, no)
            ours = simulcast.evaluate("where(c, a, b)", c=condition, a=yes, b=no)
            assert ours == theirs and ours.dtype == theirs.dtype
            assert simulcast.evaluate("a if c else b", c=condition, a=yes, b=no) == (yes if condition else no)


def test_a_text_that_claims_to_be_another_is_not():
    class Liar(str):
        __hash__ = lambda self: hash("a + b")
        __eq__ = lambda self, other: True

    assert simulcast.evaluate("a + b", a=2, b=3) == 5
    assert simulcast.evaluate(Liar("a * b * 5"), a=2, b=3) == 30
    assert simulcast.evaluate("a + b", a=2, b=3) == 5


@pytest.mark.parametrize("shape, axis", [((0, 5, 0), 2), ((0, 0), 0), ((0, 5), 0), ((0, 5), 1), ((5, 0), 0), ((3, 0), 1)])
def test_the_largest_of_nothing_is_refused_where_numpy_does(shape, axis):
    theirs = outcome(np.max, np.zeros(shape), axis)
    ours = outcome(simulcast.evaluate, f"max(x, axis={axis})", x=np.zeros(shape))
    assert ours is theirs if isinstance(theirs, type) else ours.shape == theirs.shape


def test_out_and_dtype():
    x = np.arange(3, dtype="i4")
    out = np.zeros((2, 3), "f4")
    assert simulcast.evaluate("x + 0.5", x=x, out=out) is out and out.tolist() == [[0.5, 1.5, 2.5]] * 2
    assert simulcast.evaluate("x + 0.5", x=x, dtype="f4").dtype == np.float32
    assert simulcast.evaluate("x + 0.5", x=x, dtype="i4", casting="unsafe").tolist() == [0, 1, 2]
    for bad in [{"out": np.zeros(3, "i4")}, {"dtype": "i4"}, {"out": np.zeros(3), "casting": "no", "dtype": "f4"}]:
        with pytest.raises(TypeError, match="not cast"):
            simulcast.evaluate("x + 0.5", x=x, **bad)
    with pytest.raises(simulcast.BroadcastError):
        simulcast.evaluate("x + y", x=np.ones((2, 3)), y=1, out=np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        simulcast.evaluate("x", x=x, out=np.broadcast_to(0, 3))
    y = np.arange(5.0)
    simulcast.evaluate("a + b", a=y[:-1], b=y[1:], out=y[1:])
    assert y.tolist() == [0, 1, 3, 5, 7]
    z = np.arange(9.0).reshape(3, 3)
    assert (simulcast.evaluate("z - z.T + z.sum(axis=0)", z=z, out=z) == [[9, 10, 11], [11, 12, 13], [13, 14, 15]]).all()


def test_rules():
    x, bias = np.arange(6.0).reshape(2, 3), np.array([10.0, 20.0])
    ours = simulcast.evaluate("x * 2 + bias", x=x, bias=bias, rule="pdpd:0")
    assert (ours == x * 2 + bias[:, None]).all()
    with pytest.raises(simulcast.BroadcastError, match="exact|`\\+`"):
        simulcast.evaluate("x + bias", x=x, bias=bias, rule="exact")


def test_errors_point_into_the_text():
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.evaluate("image - mean", image=np.ones((2, 3, 4)), mean=np.ones(3))
    assert "image - mean[:, None]" in str(caught.value) and caught.value.code == "E1" and caught.value.axis == 2
    cases = [
        ("x +* 2", simulcast.ExpressionError, (3, 4)),
        ("x + meen", simulcast.ExpressionError, (4, 8)),
        # In characters, not in bytes of UTF-8: text[slice(*span)] is the part.
        ("\N{GREEK SMALL LETTER MU} +* 2", simulcast.ExpressionError, (3, 4)),
        ("x & 1", simulcast.ExpressionTypeError, (0, 5)),
        ("sqrt(x, x)", simulcast.ExpressionError, None),
        ("__import__('os')", simulcast.ExpressionError, None),
        ("x.sum(axis=3)", simulcast.ExpressionError, None),
        ("", simulcast.ExpressionError, None),
        ("(" * 10000 + "x", simulcast.ExpressionError, None),
    ]
    for text, kind, span in cases:
        with pytest.raises(kind) as caught:
            simulcast.evaluate(text, local_dict={"x": np.ones(2)})
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is kind and str(again) == str(caught.value) and again.expression == text
        assert span is None or again.span == span
        assert isinstance(again, ValueError) and (kind is simulcast.ExpressionError or isinstance(again, TypeError))
    with pytest.raises(TypeError, match="no operand `y`"):
        simulcast.evaluate("x", x=1, y=2)


def test_a_strategy_shows_what_is_hoisted():
    x, row = np.ones((2000, 500)), np.ones(500)
    expression = simulcast.compile("x + exp(sin(row))")
    assert [line for line in expression.strategy(x=x, row=row).splitlines() if line.startswith("#")] == [
        "#1 hoisted  exp(sin(row))  float64 (500,)",
        "#2 result   x + #1         float64 (2000, 500)",
    ]
    assert expression.strategy(x=x, row=x).startswith("#1 result   x + exp(sin(row))  float64 (2000, 500)\n    ")
    column = expression.strategy(local_dict={"x": x, "row": np.ones(2000)}, rule="pdpd:0")
    assert "exp(sin(row))  float64 (2000,)" in column
    with pytest.raises(simulcast.BroadcastError):
        expression.strategy(x=x, row=np.ones(3))
    with pytest.raises(TypeError, match="no operand `y`"):
        expression.strategy(x=x, row=row, y=1)


def test_what_an_error_suggests_is_about_what_is_written():
    long, short = np.ones((3, 4)), np.ones(3)
    for text, operands in [
        ("B * 2 + A", {"B": long, "A": short}),
        ("-x + y", {"x": long, "y": short}),
        ("x.T + y", {"x": long, "y": long}),
        ("x[None] - y", {"x": long, "y": long.T}),
        ("where(x > 1,\n x + 0, y)", {"x": long, "y": short}),
    ]:
        with pytest.raises(simulcast.BroadcastError) as caught:
            simulcast.evaluate(text, **operands)
        assert len(caught.value.suggestions) > 0
        written = {name: eval(name, {"where": np.where} | operands) for name in caught.value.names}
        assert tuple(value.shape for value in written.values()) == caught.value.shapes
        # What is suggested has the shape that is said, in NumPy.
        for suggestion in caught.value.suggestions:
            changed, shape = suggestion.split(", result ")[0].rsplit(" is ", 1)
            assert eval(changed, dict(operands)).shape == eval(shape), suggestion


def test_errors_name_what_met_and_the_result():
    a, b, c = np.ones((2, 3)), np.ones(3), np.ones(4)
    for text, operands, names in [
        ("a < b <= c", {"a": a, "b": b, "c": c}, ("b", "c")),
        ("clip(a, b, c)", {"a": a, "b": b, "c": c}, None),
    ]:
        with pytest.raises(simulcast.BroadcastError) as caught:
            simulcast.evaluate(text, **operands)
        assert names is None or caught.value.names == names
        for name, shape in zip(caught.value.names, caught.value.shapes):
            assert name not in operands or operands[name].shape == shape
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.evaluate("a + b", a=a, b=b, out=np.ones(3))
    assert caught.value.names == ("result",) and caught.value.shapes == ((2, 3),)


def test_compiled_expressions():
    product = simulcast.compile("a * b")
    assert product.operands == ("a", "b") and str(product) == "a * b"
    assert repr(product) == 'simulcast.compile("a * b")'
    again = pickle.loads(pickle.dumps(product))
    for dtype in ("f4", "i8", "c16"):
        assert again(a=np.full(3, 2, dtype), b=3).dtype == dtype
    for k in range(200):  # more than are kept
        assert product(a=np.full(2, 2.0), b=k).tolist() == [2 * k] * 2
    with pytest.raises(simulcast.ExpressionError, match="no operand `b`"):
        product(a=1)
    with pytest.raises(simulcast.ExpressionError):
        simulcast.compile("a *")


def test_how_it_is_called():
    x = np.arange(3.0)
    for _ in range(3):  # by the long way, and then by the short one
        spelled = {"".join(["lo", "ng"]): x, "".join(["nam", "e"]): 2}  # names that are other objects than the text's
        assert simulcast.evaluate("long * name", **spelled).tolist() == [0, 2, 4]
        assert simulcast.compile("long * name")(**spelled).tolist() == [0, 2, 4]
        assert simulcast.evaluate("x + 1", x=x, out=None, casting=None, dtype=None, rule=None, threads=None).tolist() == [1, 2, 3]
        assert simulcast.evaluate("x + y", x=x, local_dict={"y": x}).tolist() == [0, 2, 4]
        # A name that is that of an option is the option, and of a constant an operand where it is given.
        assert simulcast.compile("out + 1")(local_dict={"out": x}).tolist() == [1, 2, 3]
        place = np.empty(3)
        assert simulcast.compile("x * rule")(x=x, local_dict={"rule": x}, out=place) is place
        assert simulcast.compile("x * pi")(x=x, pi=x).tolist() == [0, 1, 4]
        assert simulcast.compile("x * pi")(x=x).tolist() == [0, np.pi, 2 * np.pi]
        with pytest.raises(TypeError, match="`out=` is an option of the call: give the operand `out` in local_dict"):
            simulcast.compile("out + 1")(out=place)
    for call, message in [
        (lambda: simulcast.evaluate(), "1 positional argument"),
        (lambda: simulcast.evaluate("x", x), "1 positional argument"),
        (lambda: simulcast.evaluate(1), "an expression is text"),
        (lambda: simulcast.evaluate("x", x=x, threads="two"), "argument 'threads'"),
        (lambda: simulcast.evaluate("x", x=x, fast_math="yes"), "argument 'fast_math'"),
        (lambda: simulcast.evaluate("x", x=x, casting=1), "argument 'casting'"),
        (lambda: simulcast.evaluate("x", x=x, rule=1), "rule is a text"),
        (lambda: simulcast.evaluate("x", x=x, y=x), "no operand `y`"),
        (lambda: simulcast.compile("x")(x=x, y=x), "no operand `y`"),
        (lambda: simulcast.compile("x")(x=x, fast_math=True), "no operand `fast_math`"),
        (lambda: simulcast.compile("x")(x=x, threads="two"), "argument 'threads'"),
        (lambda: simulcast.compile("x")(x), "operands are given by name, but 1 came by place"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match="casting is"):
        simulcast.evaluate("x", x=x, casting="maybe")
    signature = inspect.signature(simulcast.evaluate)
    assert list(signature.parameters) == "expr out casting dtype rule threads local_dict fast_math operands".split()
    assert signature.parameters["fast_math"].default is False
    assert pickle.loads(pickle.dumps(simulcast.evaluate)) is simulcast.evaluate


def test_short_and_long_ways_agree():
    """Small arrays side by side take a short way, the second time; all others a long one."""
    small = {"a": np.arange(1.0, 7).reshape(2, 3), "b": np.full((2, 3), 2.0), "c": np.array(3.0)}
    for text in ["a * b + c", "a - 2 * k", "where(a > b, a, k)", "a if a > c else b", "c * 2", "(a + b) * (a - b) / c + k"]:
        own = {name: x for name, x in {**small, "k": 2.5}.items() if name in simulcast.compile(text).operands}
        twisted = {name: np.array(x, order="F") if isinstance(x, np.ndarray) else x for name, x in own.items()}
        first, again, long = (simulcast.evaluate(text, **given) for given in (own, own, twisted))
        assert type(first) is type(again) is type(long) and first.dtype == again.dtype == long.dtype
        assert np.array_equal(first, again) and np.array_equal(first, long)
        for dtype in ("f8", "f4", "c16"):
            out = np.zeros(np.shape(first), dtype)
            assert simulcast.evaluate(text, **own, out=out) is simulcast.evaluate(text, **own, out=out) is out
            assert np.allclose(out, first)
        with pytest.raises(TypeError, match="not cast"):
            simulcast.evaluate(text, **own, out=np.zeros(np.shape(first), "i4"))
    x = np.arange(6.0)
    for _ in range(3):
        y = x.copy()
        assert simulcast.evaluate("y * 2 + z", y=y[:-1], z=y[1:], out=y[1:]).tolist() == (x[:-1] * 2 + x[1:]).tolist()
        assert simulcast.evaluate("y * 2 + z", y=x, z=x, out=y).tolist() == (x * 3).tolist()
        with pytest.raises(ValueError, match="read-only"):
            simulcast.evaluate("y * 2 + z", y=x, z=x, out=np.broadcast_to(x, 6))
        with pytest.raises(ValueError, match="negative integer powers"):
            simulcast.evaluate("n ** m", n=np.array([2, 3]), m=np.array([1, -1]))
        with simulcast.strict("exact"), pytest.raises(simulcast.BroadcastError):
            simulcast.evaluate("y * z", y=x, z=np.array(2.0))


def test_what_has_the_name_of_a_constant_is_what_is_given():
    x = np.array([1.0, 2.0])
    assert (simulcast.evaluate("e * pi", e=x) == x * np.pi).all()
    assert (simulcast.evaluate("e * pi", pi=x) == np.e * x).all()
    assert (simulcast.evaluate("e * pi", e=x, pi=x) == x * x).all()
    assert simulcast.evaluate("e * pi") == np.e * np.pi


def rounded_once(a, b, c):
    """`a * b + c` in float32, of the exact value."""
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())]
    near = np.array([float(own) for own in exact], "f4")
    around = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    distance = np.array([[abs(Fraction(x) - own) for x, own in zip(other.tolist(), exact)] for other in around])
    return np.choose(distance.argmin(0), around)


@pytest.mark.parametrize("count", [3, 1000, 100_000])
def test_sums_of_products_are_rounded_twice_unless_said(count):
    rng = np.random.default_rng(3)
    a, b, c = (rng.normal(size=count).astype("f4") for _ in range(3))
    c[: count // 2] = -(a * b)[: count // 2]  # what is left is the error of the product
    few = slice(0, 1000)
    twice, once = a * b + c, rounded_once(a[few], b[few], c[few])
    assert (once != twice[few]).any()
    text, own = "a * b + c", {"a": a, "b": b, "c": c}
    for plain in [simulcast.evaluate(text, **own), simulcast.compile(text)(**own), simulcast.evaluate(text, fast_math=False, **own)]:
        assert (plain == twice).all()
    fast = simulcast.compile(text, fast_math=True)
    for expression in [fast, pickle.loads(pickle.dumps(fast)), eval(repr(fast))]:
        assert expression.fast_math and (expression(**own) == simulcast.evaluate(text, fast_math=True, **own)).all()
    ours = fast(**own)[few]
    assert ((ours == once) | (ours == twice[few])).all()
    if np._core._multiarray_umath.__cpu_features__.get("FMA3") and "SIMULCAST_LEVEL" not in os.environ:
        assert (ours == once).all()
    assert not simulcast.compile(text).fast_math and simulcast.compile(text) is simulcast.compile(text)


def test_threads_share_an_expression():
    product = simulcast.compile("a * b + 1")
    failed = []

    def work(k):
        for dtype in ("f4", "f8", "i4") * 20:
            if (product(a=np.full(300, k, dtype), b=2) != 2 * k + 1).any():
                failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_large_arrays_on_any_number_of_threads():
    x, mean = np.arange(300_000.0).reshape(300, 1000), np.arange(1000.0)
    theirs = (x - mean) / 3
    for threads in (None, 1, 2, 5):
        assert (simulcast.evaluate("(x - mean) / 3", x=x, mean=mean, threads=threads) == theirs).all()
        assert (simulcast.subtract(x, mean, threads=threads) == x - mean).all()


@pytest.mark.parametrize("x", "i1 u1 i4 u4 f2 f4".split())
def test_clip_has_the_type_of_all_three(x):
    for low in "i1 u1 i2 u8 f2".split():
        for high in "i1 u1 u2 i8 f2 f4".split():
            own = {"x": np.array([1, 5, 9], x), "low": np.array([2, 2, 7], low), "high": np.array([4, 6, 6], high)}
            theirs = np.clip(own["x"], own["low"], own["high"])
            for ours in (simulcast.evaluate("clip(x, low, high)", **own), simulcast.clip(*own.values())):
                assert ours.dtype == theirs.dtype and (ours == theirs).all(), (x, low, high)
            for bound in (3, 2.5, True):
                theirs = np.clip(own["x"], own["low"], bound)
                ours = simulcast.evaluate("clip(x, low, bound)", x=own["x"], low=own["low"], bound=bound)
                assert ours.dtype == theirs.dtype and (ours == theirs).all(), (x, low, bound)


def test_what_is_said_to_be_another_answer_than_numpys_is_one():
    ends, root = np.array([-np.inf, -0.0, 4.0]), np.full(3, 0.5)
    with np.errstate(invalid="ignore"):
        theirs = ends**root
        assert not np.array_equal(ends**0.5, theirs, equal_nan=True)
    for text in ("x ** 0.5", "x ** r", "power(x, 0.5)"):
        ours = simulcast.evaluate(text, x=ends, **({"r": root} if "r" in text.split() else {}))
        assert (ours == theirs).all() and (np.signbit(ours) == np.signbit(theirs)).all()
    whole = np.arange(3)
    assert np.rint(whole).dtype == np.float64 and np.round(whole).dtype == whole.dtype
    for text in ("rint(x)", "round(x)"):
        assert simulcast.evaluate(text, x=whole).dtype == whole.dtype
    one = np.array(3.0)
    assert np.sum(one, axis=0) == 3.0
    with pytest.raises(np.exceptions.AxisError):
        np.mean(one, axis=0)
    for fold in ("sum", "mean", "max"):
        with pytest.raises(simulcast.ExpressionError, match="axis"):
            simulcast.evaluate(f"{fold}(x, axis=0)", x=one)


def test_no_memory_is_a_memory_error():
    x, n = np.broadcast_to(1.0, (1 << 55,)), np.broadcast_to(2, (1 << 55,))
    for call in (
        lambda: simulcast.exp(x),
        lambda: simulcast.evaluate("exp(x) + 1", x=x),
        lambda: simulcast.evaluate("sum(n ** n)", n=n),
        lambda: simulcast.vjp("exp", (x,), x),
        lambda: simulcast.sum_to(x, x.shape),
    ):
        with pytest.raises(MemoryError):
            call()


def test_names_are_those_that_python_reads():
    # The micro sign of keyboards; Python takes it for the Greek letter.
    micro, greek = "\u00b5", "\u03bc"
    x = np.ones(2)
    for names in ({micro: x}, {greek: x}):
        assert (simulcast.evaluate(f"{micro} * 2", **names) == 2).all()
        assert (simulcast.evaluate(f"{micro} * 2", local_dict=names) == 2).all()
    assert (eval(f"simulcast.evaluate('{micro} * 2', {micro}=x)") == 2).all()
    assert simulcast.compile(f"{micro} + {greek}").operands == (greek,)
    for names in ({micro: x}, {greek: x}):
        assert (simulcast.evaluate(f"{micro} + {greek}", **names) == 2).all()
        assert (simulcast.evaluate(f"{micro} + {greek}", local_dict=names) == 2).all()
