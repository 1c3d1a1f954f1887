"""`simulcast.numexpr` beside numexpr: numexpr's own tests, random expressions, and pandas with either. `cargo xtask test numexpr`."""

import subprocess
import sys
import warnings

import numexpr
import numpy as np
import pytest
from numexpr_suite import current, listed, outcomes

import simulcast.numexpr as ne


def test_numexpr_s_own_tests_pass_but_those_that_are_listed():
    found, output = outcomes()
    text, failed, passed = listed(found)
    assert not failed, output
    assert not passed, f"these are listed as what cannot pass, and pass: {passed}"
    assert sum(map(len, found.values())) > 6000
    assert text == current(), "run python python/peers/numexpr_suite.py --write"


KINDS = {"b": "?", "i": "i4", "l": "i8", "f": "f4", "d": "f8", "c": "c16"}
OPERATORS = ["+", "-", "*", "/", "%", "//", "**", "<", "<=", "==", "!=", ">", ">=", "&", "|", "^"]
ONE = [
    "sin", "cos", "tan", "arctan", "sinh", "tanh", "arcsinh", "exp", "expm1", "log1p", "sqrt", "abs", "ceil", "floor", "trunc",
    "round", "sign", "conj", "real", "imag", "isnan", "isinf", "isfinite", "signbit", "copy", "ones_like", "sum", "prod", "min",
    "max", "-", "~",
]
TWO = ["arctan2", "hypot", "fmod", "maximum", "minimum", "copysign", "nextafter", "complex"]


def expression(random, depth):
    """An expression in which no operation has constants alone: numexpr folds those in ways of its own."""
    if depth == 0 or random.integers(6) == 0:
        return list(KINDS)[random.integers(len(KINDS))]
    a, b = expression(random, depth - 1), expression(random, depth - 1)
    b = ["2", "3.5", "1", "0.25", "2j"][random.integers(5)] if random.integers(4) == 0 else b
    kind = random.integers(4)
    if kind < 2:
        return f"({a} {OPERATORS[random.integers(len(OPERATORS))]} {b})"
    if kind == 2:
        return f"{ONE[random.integers(len(ONE) - 6)]}({a})" if random.integers(8) else f"({'-~'[random.integers(2)]}{a})"
    if random.integers(4) == 0:
        return f"where({a} > 1, {b}, {a})"
    return f"{TWO[random.integers(len(TWO))]}({a}, {b})"


@pytest.mark.parametrize("seed", range(20))
def test_values_and_types_are_those_of_numexpr(seed):
    random, compared = np.random.default_rng(seed), 0
    shapes = [(3, 4), (4,), (3, 1), ()]
    for _ in range(150):
        given = {
            name: np.asarray(random.integers(1, 4, shapes[random.integers(4)])).astype(kind) for name, kind in KINDS.items()
        }
        text = expression(random, 3)
        if random.integers(6) == 0:
            text = f"{['sum', 'prod', 'min', 'max'][random.integers(4)]}({text})"
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                # As it is written: with optimization, `x ** 1` is `x`, of x's type.
                expected = numexpr.evaluate(text, local_dict=given, optimization="none")
            except Exception:
                # Some of what numexpr does not take is taken here; the rest is refused by an exception of these.
                try:
                    ne.evaluate(text, local_dict=given, promotion="numexpr")
                except (NotImplementedError, ValueError, TypeError, OverflowError, ZeroDivisionError):
                    pass
                continue
            try:
                made = ne.evaluate(text, local_dict=given, promotion="numexpr")
            except Exception as error:
                pytest.fail(f"{text}: {error}")
        assert made.dtype == expected.dtype and made.shape == expected.shape, (text, made.dtype, expected.dtype)
        if not (np.isfinite(made).all() and np.isfinite(expected).all()):
            continue  # numexpr has answers of its own for these; see the guide
        single = any(name in text for name in "fi") or expected.dtype == "f4"
        close = np.allclose(made, expected, rtol=2e-4 if single else 1e-9, atol=1e-4 if single else 1e-9, equal_nan=True)
        compared += 1
        assert close, (text, given, made, expected)
    assert compared > 20


PANDAS = """
import sys
if {first!r} == "simulcast":
    import simulcast.numexpr
    simulcast.numexpr.install()
import numpy as np, pandas as pd
if {first!r} == "pandas":
    import simulcast.numexpr
    assert {installed!r} or not pd.core.computation.check.NUMEXPR_INSTALLED
    simulcast.numexpr.install()
from pandas.core.computation import expressions
import simulcast.numexpr as own
assert pd.core.computation.check.NUMEXPR_INSTALLED and expressions.ne is own and sys.modules["numexpr"] is own

calls = []
evaluate = own.evaluate
def counted(*args, **options):
    calls.append(args[0])
    return evaluate(*args, _frame_depth=4, **options)
own.evaluate = counted

frame = pd.DataFrame({{"a": np.arange(6.0), "b": np.arange(6)[::-1], "c": np.float32(2), "t": list("xyzxyz")}})
k = 2
for text in ("a + b * 2", "(a > 1) & (b < 4)", "sin(a) / (c + 1)", "a ** 2 - @k", "-a", "~(a > 2)", "a // 2", "b % 3"):
    by_us, by_python = frame.eval(text, engine="numexpr"), frame.eval(text, engine="python")
    pd.testing.assert_series_equal(by_us, by_python, check_exact=False, rtol=1e-6)
assert len(calls) == 8, calls
pd.testing.assert_frame_equal(frame.query("a > @k and b < 5"), frame[(frame.a > k) & (frame.b < 5)])
pd.testing.assert_frame_equal(frame.query("t == 'x' and a < 3"), frame[(frame.t == "x") & (frame.a < 3)])
assigned = frame.eval("d = a + b\\ne = d * 2")
assert (assigned.e == (frame.a + frame.b) * 2).all()
assert pd.eval("frame.a.sum() + 1") == 16
del calls[:]
large = pd.DataFrame(np.arange(2_400_000.0).reshape(-1, 2))
total, product = large + large, large * 0.5
assert calls and (total == 2 * large.to_numpy()).all().all() and (product.to_numpy() == large.to_numpy() / 2).all()
narrow = large.astype("float32")
assert ((narrow + narrow).dtypes == "float32").all() and ((large > 3).to_numpy() == (large.to_numpy() > 3)).all()
print("done")
"""


@pytest.mark.parametrize("first", ["simulcast", "pandas"])
@pytest.mark.parametrize("installed", [True, False])
def test_pandas_evaluates_with_it(first, installed, tmp_path):
    # Without numexpr: an import of it fails, until ours stands in its place.
    hidden = "" if installed else "import sys\nsys.modules['numexpr'] = None\n"
    script = tmp_path / "frames.py"
    script.write_text(hidden + PANDAS.format(first=first, installed=installed))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stdout + done.stderr
