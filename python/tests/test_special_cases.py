"""Special cases: infinities, NaN, zeros of both signs and values at the ends of a range are NumPy's, or mpmath's where NumPy fails."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulcast

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::simulcast.BroadcastWarning")

COMPLEX = """sqrt exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh
    absolute sign""".split()
PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 20.5, 22.0, -22.0, 30.0, -30.0, 400.0, 710.2, -710.2, 1e300, -1e300, 1e-300, -1e-300]
WILD = [np.inf, -np.inf, np.nan]


def numbers(parts):
    """Every number of these parts; a sum would lose signs and make NaN of infinities."""
    made = np.empty((len(parts), len(parts)), complex)
    made.real, made.imag = np.array(parts)[:, None], parts
    return made.ravel()


def kinds(x):
    """For each part whether it is NaN, infinite or zero, and on which side; nothing of ordinary numbers."""
    own = np.asarray(x)
    parts = np.stack([own.real, own.imag]) if own.dtype.kind == "c" else own[None]
    special = np.isnan(parts) | np.isinf(parts) | (parts == 0)
    return np.where(special, np.where(np.isnan(parts), np.nan, np.copysign(np.where(np.isinf(parts), 2, 1), parts)), 0)


def exact(name, z):
    """The value of mpmath, as numbers of Python's; parts that are too large for one are infinite."""
    with mpmath.workprec(400):
        function = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctanh": "atanh", "square": None}.get(name, name)
        z = mpmath.mpc(z.real, z.imag)
        made = z * z if function is None else getattr(mpmath, function)(z)
        return complex(made)


def close(ours, theirs, bound=1e-14):
    size = max((abs(part) for part in (theirs.real, theirs.imag) if math.isfinite(part)), default=0)
    same = [a == b or abs(a - b) <= bound * size or math.isnan(a) and math.isnan(b) for a, b in zip(parts(ours), parts(theirs))]
    return all(same)


def parts(z):
    return [float(z.real), float(z.imag)]


@pytest.mark.parametrize("name", COMPLEX)
def test_infinities_nan_and_zeros_of_complex_functions_are_numpys(name):
    z = numbers(PARTS + WILD)
    size = np.maximum(abs(z.real), abs(z.imag))
    if name == "log1p":
        z = z[~(size < 1e-16)]  # NumPy's gives 0 there
    ours, theirs = getattr(simulcast, name)(z), getattr(np, name)(z)
    wrong = ~np.all((kinds(ours) == kinds(theirs)) | np.isnan(kinds(ours)) & np.isnan(kinds(theirs)), axis=0)
    assert not wrong.any(), [(z[k], ours[k], theirs[k]) for k in np.flatnonzero(wrong)[:5]]
    apart = [k for k in range(len(z)) if not close(complex(ours[k]), complex(theirs[k]))]
    assert not apart, [(z[k], ours[k], theirs[k]) for k in apart[:5]]


@pytest.mark.parametrize("name", ["tan", "tanh"])
def test_tan_and_tanh_keep_nan_and_infinity_beside_large_parts(name):
    for large, wild in itertools.product([20.5, 21.0, 22.0, 30.0, 1e300], WILD):
        for sign in (1, -1):
            z = complex(sign * large, wild) if name == "tanh" else complex(wild, sign * large)
            ours, theirs = getattr(simulcast, name)(np.array([z]))[0], getattr(np, name)(np.array([z]))[0]
            assert np.isnan(parts(ours)).tolist() == np.isnan(parts(theirs)).tolist(), z
    assert np.isnan(simulcast.tanh(np.complex128(complex(30, math.nan))).real)
    for y in (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 1e6):
        for x in (400.0, 710.0, 1e300, math.inf, -400.0, -math.inf):
            ours, theirs = simulcast.tanh(np.array([complex(x, y)]))[0], np.tanh(np.array([complex(x, y)]))[0]
            assert parts(ours) == parts(theirs) and np.signbit(ours.imag) == np.signbit(theirs.imag), (x, y)


@pytest.mark.parametrize("name", ["sin", "cos", "sinh", "cosh", "exp"])
def test_values_that_fit_do_not_overflow_on_the_way(name):
    for large in (709.5, 709.79, 710.0, 710.2, 710.47, -709.79, -710.47):
        for small in (1e-300, 0.5, 1.0, 1.5707963267948966, 3.0, -2.0):
            z = complex(small, large) if name in ("sin", "cos") else complex(large, small)
            ours = simulcast.evaluate(f"{name}(z)", z=np.array([z]))[0]
            theirs = exact(name, z)
            assert close(ours, theirs) and np.isfinite(parts(ours)).tolist() == np.isfinite(parts(theirs)).tolist(), (z, ours, theirs)


@pytest.mark.parametrize("tiny", [1e-300, 1e-200, 1e-160, 1e-150, 1e-100, 5e-324, 1e-9])
def test_arctanh_and_arctan_beside_their_poles(tiny):
    for sign, other in itertools.product((1, -1), repeat=2):
        beside = complex(sign, other * tiny)
        ours = simulcast.arctanh(np.array([beside]))[0]
        assert close(ours, exact("arctanh", beside)), beside
        turned = complex(other * tiny, sign)
        assert close(simulcast.arctan(np.array([turned]))[0], exact("arctan", turned)), turned
    assert simulcast.arctanh(np.array([1 + 0j])).tolist() == np.arctanh(np.array([1 + 0j])).tolist()


def test_square_of_large_parts():
    z = np.array([1e300 + 1e300j, -1e300 + 1e300j, 1e300 + 2e300j, 3e-200 + 1e-200j, 1e160 + 1j, 1 + 1j, -1 + 1j])
    for one, ours in zip(z, simulcast.square(z)):
        assert close(ours, exact("square", one)), (one, ours)
    assert parts(simulcast.square(np.complex128(1e300 + 1e300j))) == [0, math.inf]
    assert not np.signbit(simulcast.square(np.array([-1 + 1j, 1 - 1j, -0.0 - 0j])).real).any()
    # Of infinities and NaN alone NumPy's, which fuses products: what cancels or overflows otherwise depends on the machine.
    z = numbers([0.0, -0.0, 1.0, -2.0, *WILD])
    assert np.array_equal(kinds(simulcast.square(z)), kinds(np.square(z)), equal_nan=True)


def test_powers_of_infinities_are_numpys():
    own = numbers([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 150.5, 1e200, *WILD])
    base, exponent = own[:, None], own
    ours, theirs = simulcast.power(base, exponent), np.power(base, exponent)
    # The square does not overflow on the way: see `test_square_of_large_parts`.
    wrong = ~np.all((kinds(ours) == kinds(theirs)) | np.isnan(kinds(ours)) & np.isnan(kinds(theirs)), axis=0)
    assert not wrong.any(), [(own[k], own[m], ours[k, m], theirs[k, m]) for k, m in np.argwhere(wrong)[:5]]


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_zero_that_maximum_and_minimum_choose_is_numpys(name):
    for dtype in ("f2", "f4", "f8"):
        for size in (1, 3, 8, 33, 1000):
            zero = np.zeros(size, dtype)
            for a, b in [(zero, -zero), (-zero, zero), (zero[:1], -zero), (-zero, zero[:1])]:
                assert simulcast.__dict__[name](a, b).tobytes() == getattr(np, name)(a, b).tobytes(), (dtype, size)
    assert not np.signbit(simulcast.maximum(np.float16(0.0), np.float16(-0.0)))


def same(ours, theirs):
    """The same type, and bit for bit the same values."""
    return ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("decimals", [-400, -3, -2, -1, 0, 1, 2, 3, 8, 15, 22, 400])
@pytest.mark.parametrize("dtype", "f2 f4 f8 c8 c16 i1 i2 i4 i8 u1 u4 u8".split())
def test_round_to_decimals_is_numpys(dtype, decimals):
    dtype = np.dtype(dtype)
    draw = np.random.default_rng(1)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = draw.integers(max(info.min, -(2**40)), min(info.max, 2**40), 200).astype(dtype)
    else:
        x = np.concatenate([draw.normal(size=200) * 10.0 ** draw.integers(-4, 5, 200), [0.125, 2.675, -0.5, np.nan, np.inf, -0.0, 1e4]]).astype(dtype)
    if decimals < -300 and dtype.kind in "iu":
        return  # a quotient of infinity, cast to an integer: as the machine likes
    if dtype.kind in "iu" and decimals < 0:
        # What leaves the type is cast as the machine likes.
        x = x[abs(x.astype(float)) <= info.max - 10.0 ** min(-decimals, 18)]
    ours, theirs = simulcast.round(x, decimals), np.round(x, decimals)
    assert same(ours[~np.isnan(ours)], theirs[~np.isnan(theirs)])
    within = simulcast.evaluate(f"round(x, {decimals})", x=x)
    if dtype.kind != "c":
        assert same(within[~np.isnan(within)], theirs[~np.isnan(theirs)])
    elif abs(decimals) < 300:
        # The sign of a part that is zero may differ; what no float holds when it is scaled stays.
        assert within.dtype == theirs.dtype and np.array_equal(within, theirs, equal_nan=True)
    out = np.empty_like(x)
    assert simulcast.round(x, decimals=decimals, out=out) is out and np.array_equal(out, theirs, equal_nan=True)


def test_an_expression_rounds_to_decimals():
    import dask.array as da
    import pandas as pd

    x, n = np.array([1.245, 2.675, -17.5]), np.array([149, 150, 250, 350])
    for text in ("round(x, 2)", "round(x, decimals=2)", "x.round(2)", "x.round(decimals=2)", "round(x, 2,)"):
        assert same(simulcast.evaluate(text, x=x), x.round(2)), text
    assert same(simulcast.evaluate("round(n, -2) + 1", n=n), n.round(-2) + 1)
    assert same(simulcast.evaluate("round(n, 3) * 2", n=n), n * 2)
    assert same(simulcast.evaluate("round(x * 3 - mean(x), 1) / 7", x=x), (x * 3 - x.mean()).round(1) / 7)
    assert simulcast.evaluate("round(k, 2)", k=2.675) == np.round(2.675, 2)
    assert simulcast.evaluate("round(2.675, 2) * x", x=x)[0] == 2.68 * x[0]
    assert same(simulcast.evaluate("round(x, 0)", x=x), x.round())
    assert str(simulcast.compile(["round( x,2)+1"])) == "round(x, 2) + 1"
    assert simulcast.grad("sum(round(x, 1) * x)", "x")(x=x).tolist() == x.round(1).tolist()
    lazy = da.from_array(x, chunks=2)
    for rule in ("numpy", simulcast.unidirectional()):
        made = simulcast.evaluate("round(y, 2) + x", y=lazy, x=x, rule=rule)
        assert isinstance(made, da.Array) and same(made.compute(scheduler="sync"), x.round(2) + x)
    series = pd.Series(x, index=list("abc"))
    assert simulcast.evaluate("round(s, 2)", s=series).equals(series.round(2))
    for text, said in [
        ("round(x, 1.5)", "a number of decimals, such as `2`"),
        ("round(x, x)", "a number of decimals"),
        ("round(x, 2, 3)", "expected"),
        ("round(x, digits=2)", "decimals|digits"),
        ("rint(x, 2)", "1 operand"),
        ("round()", "operand"),
    ]:
        with pytest.raises(simulcast.ExpressionError, match=said):
            simulcast.evaluate(text, x=x)


def test_round_takes_decimals_where_numpy_does():
    assert simulcast.round(2.675, 2) == np.round(2.675, 2) == 2.68
    assert simulcast.round([15, 25, 1234], -1).tolist() == [20, 20, 1230]
    assert simulcast.round(np.array([True]), 0).dtype == np.round(np.array([True]), 0).dtype
    with pytest.raises(TypeError):
        simulcast.round([1.5], 0.5)
    import dask.array as da

    lazy = simulcast.round(da.from_array(np.array([1.234, 5.678]), chunks=1), 1)
    assert isinstance(lazy, da.Array) and lazy.compute(scheduler="sync").tolist() == [1.2, 5.7]


# The array API standard's functions of elements, by its names, and the kinds of types that it defines them on.
STANDARD = {
    "abs": "iufc", "acos": "fc", "acosh": "fc", "asin": "fc", "asinh": "fc", "atan": "fc", "atanh": "fc", "bitwise_invert": "biu",
    "ceil": "iuf", "conj": "fc", "cos": "fc", "cosh": "fc", "exp": "fc", "expm1": "fc", "floor": "iuf", "imag": "c", "isfinite": "iufc",
    "isinf": "iufc", "isnan": "iufc", "log": "fc", "log1p": "fc", "log2": "fc", "log10": "fc", "logical_not": "b", "negative": "ifc",
    "real": "c", "reciprocal": "fc", "round": "iufc", "sign": "iufc", "sin": "fc", "sinh": "fc", "sqrt": "fc",
    "square": "iuf", "tan": "fc", "tanh": "fc", "trunc": "iuf",
}  # fmt: skip
STANDARD_OF_TWO = {
    "add": "iufc", "atan2": "f", "bitwise_and": "biu", "bitwise_left_shift": "iu", "bitwise_or": "biu", "bitwise_right_shift": "iu",
    "bitwise_xor": "biu", "divide": "fc", "equal": "biufc", "floor_divide": "f", "greater": "iuf", "greater_equal": "iuf",
    "hypot": "f", "less": "iuf", "less_equal": "iuf", "logical_and": "b", "logical_or": "b", "logical_xor": "b", "maximum": "iuf",
    "minimum": "iuf", "multiply": "iufc", "not_equal": "biufc", "pow": "fc", "remainder": "f", "subtract": "iufc",
}  # fmt: skip
# What the standard's tables of special cases speak of: each value that is named there, and neighbours of it.
NAMED = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, math.pi, 1e30, -1e30, 1e-30, -1e-30]


def of_kind(kind):
    return {"b": ["?"], "i": ["i1", "i4", "i8"], "u": ["u1", "u8"], "f": ["f4", "f8"], "c": ["c8", "c16"]}[kind]


def drawn(dtype):
    """Values of a type, as the special cases of the standard name them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        named = st.sampled_from([own for own in (0, 1, -1, 2, 7, info.min, info.max) if own >= info.min])
        return st.one_of(named, st.integers(int(info.min), int(info.max)))
    width = dtype.itemsize * (4 if dtype.kind == "c" else 8)
    real = st.one_of(st.sampled_from(NAMED), st.floats(-100, 100, width=32), st.floats(width=width))
    return real if dtype.kind == "f" else st.builds(complex, real, real)


def special(ours, theirs):
    """What the standard's special cases ask: the same type, NaN, infinity and zero at the same places."""
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if ours.dtype.kind not in "fc":
        return np.array_equal(ours, theirs)
    mine, numpys = kinds(ours), kinds(theirs)
    return np.array_equal(mine, numpys, equal_nan=True)


@pytest.mark.parametrize("name", STANDARD)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_special_cases_of_the_array_api_standard(name, data):
    for kind in STANDARD[name]:
        dtype = data.draw(st.sampled_from(of_kind(kind)))
        x = np.array(data.draw(st.lists(drawn(dtype), min_size=1, max_size=8)), dtype)
        if kind == "c" and np.any(abs(np.nan_to_num([x.real, x.imag])) > 1e18):
            continue  # glibc's functions of float lose what ours, computed in double, keep
        if kind == "c" and name == "log1p":
            continue  # NumPy's loses small parts: compared above
        with np.errstate(all="ignore"):
            theirs = getattr(np, name)(x)
            if dtype == "c8":
                # In float, NumPy's steps underflow (`expm1(1e-30j)`) and overflow (`expm1(89+0j)`) where the result does not.
                theirs = getattr(np, name)(x.astype("c16")).astype(theirs.dtype)
        assert special(getattr(simulcast, name)(x), theirs), (x, getattr(simulcast, name)(x), theirs)


def test_complex_expm1_neither_underflows_nor_overflows_on_the_way():
    x = np.array([1e-30j, 89, complex(89, -0.0), 5.5e-33j], np.complex64)
    made, exact = simulcast.expm1(x), np.expm1(x.astype(complex)).astype(np.complex64)
    assert special(made, exact) and np.signbit(made.real).tolist() == np.signbit(exact.real).tolist()


@pytest.mark.parametrize("name", STANDARD_OF_TWO)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_special_cases_of_two_operands_of_the_array_api_standard(name, data):
    for kind in STANDARD_OF_TWO[name]:
        dtype = data.draw(st.sampled_from(of_kind(kind)))
        count = data.draw(st.integers(1, 8))
        x, y = (np.array(data.draw(st.lists(drawn(dtype), min_size=count, max_size=count)), dtype) for _ in "xy")
        if name.endswith("shift"):
            y = np.abs(y) % np.array(8, dtype)
        if kind == "c" and np.any(abs(np.nan_to_num([x.real, x.imag, y.real, y.imag])) > 1e9):
            continue  # NumPy fuses products, and what overflows depends on the machine
        with np.errstate(all="ignore"):
            theirs = getattr(np, name)(x, y)
        ours = getattr(simulcast, name)(x, y)
        if kind == "c" and name in ("multiply", "divide", "pow", "square") and np.isfinite(np.concatenate([x, y])).all():
            # A part that cancels is a zero where products are rounded, and what is left of them where they are fused.
            assert np.allclose(ours, theirs, rtol=1e-3 if dtype == "c8" else 1e-9, atol=1e-3, equal_nan=True)
            continue
        assert special(ours, theirs), (x, y, ours, theirs)
