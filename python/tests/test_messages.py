"""What errors say: which argument, what it is, and what it should be, in plain words."""

import os
import subprocess
import sys

import numpy as np
import pytest

import simulcast

X = np.arange(3.0)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        # None as an operand
        (lambda: simulcast.add(None, X), TypeError, "argument 'a' of add: None is not an array, a number or text"),
        (lambda: simulcast.add(X, None), TypeError, "argument 'b' of add: None is not an array, a number or text"),
        (lambda: simulcast.where(X > 1, X, None), TypeError, "argument 'c' of where: None is not"),
        (lambda: simulcast.clip(None, 1, 2), TypeError, "argument 'a' of clip: None is not"),
        (lambda: simulcast.evaluate("a + b", a=X, b=None), TypeError, "operand `b`: None is not an array, a number or text"),
        (lambda: simulcast.vjp("multiply", (X, X), None), TypeError, "argument 'grad' of vjp is None: there is no gradient"),
        # other things that are no arrays
        (lambda: simulcast.add(X, {"a": 1}), TypeError, "argument 'b' of add: an array of object is an operand only where all of it is text, and {'a': 1} is not"),
        (lambda: simulcast.add(X, [[1, 2], [3]]), ValueError, "argument 'b' of add: setting an array element with a sequence"),
        (lambda: simulcast.add(X, np.array(["2020"], "M8[Y]")), TypeError, r"argument 'b' of add: arrays of dtype datetime64\[Y\] cannot be computed with"),
        (lambda: simulcast.add(np.ma.array(X, mask=X > 1), X), TypeError, r"argument 'a' of add: a masked array would lose its mask; pass x.filled"),
        # text and numbers
        (lambda: simulcast.add("a", 1), TypeError, "`add` takes text or numbers, not string and 1 together"),
        (lambda: simulcast.add(np.array(["a"]), X), TypeError, "`add` takes text or numbers, not string and float64 together"),
        (lambda: simulcast.multiply("a", X), TypeError, "`multiply` does not take text, as in string and float64; it takes"),
        (lambda: simulcast.evaluate("a + b", a=X, b="q"), TypeError, "`add` takes text or numbers, not float64 and string together"),
        # a name that is not quite one
        (lambda: simulcast.evaluate("alpha + 1", alpa=X), TypeError, "the expression has no operand `alpa`; did you mean `alpha`?"),
        (lambda: simulcast.evaluate("alpha + 1", alpha=X, thread=2), TypeError, "no operand `thread`; did you mean the option `threads`?"),
        (lambda: simulcast.evaluate("alpha + beta", alpha=X, z=2), TypeError, "no operand `z`; its operands are alpha, beta"),
        (lambda: simulcast.evaluate("squrt(a)", a=X), ValueError, "there is no function `squrt`; did you mean `sqrt`?"),
        # a matrix product: what is suggested was checked with the shapes
        (lambda: simulcast.evaluate("x @ x", x=X), ValueError, r"sum\(x \* x\)"),
        (lambda: simulcast.evaluate("1 + m @ x", m=np.ones((2, 3)), x=X), ValueError, r"1 \+ sum\(m \* x, axis=-1\)"),
        (lambda: simulcast.evaluate("m @ n", local_dict={"m": np.ones((2, 3)), "n": np.ones((3, 4))}), ValueError, r"sum\(m\[..., None\] \* n\[..., None, :, :\], axis=-2\)"),
        # a wrong out
        (lambda: simulcast.add(X, X, out=[1, 2, 3]), TypeError, "argument 'out' is a list, not an array of NumPy's"),
        (lambda: simulcast.add(X, X, out=(X, X)), TypeError, "argument 'out' is a tuple"),
        (lambda: simulcast.add(X, X, out=np.empty(2)), simulcast.BroadcastError, r"argument 'out' is \(2,\), to which the result \(3,\) does not stretch"),
        (lambda: simulcast.evaluate("x + x", x=X, out=np.empty(2)), simulcast.BroadcastError, r"argument 'out' is \(2,\), to which the result \(3,\) does not stretch"),
        (lambda: simulcast.add(X, X, out=np.empty(3, int)), TypeError, "argument 'out' is int64, to which the result, float64, is not cast under casting 'same_kind'"),
        (lambda: simulcast.evaluate("x + x", x=X, out=np.empty(3, int)), TypeError, "argument 'out' is int64, to which the result, float64, is not cast under casting 'same_kind'"),
        (lambda: simulcast.evaluate("x + x", x=X, dtype=int), TypeError, "argument 'dtype' is int64, to which the result, float64, is not cast"),
        (lambda: simulcast.add(X, X, out=np.broadcast_to(0.0, 3)), ValueError, "argument 'out' is read-only"),
        (lambda: simulcast.add(X, X, threads=0), ValueError, "argument 'threads' is 0, and threads is a number from 1 on"),
    ],
)
def test_an_error_names_the_argument(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    "name, value",
    [
        ("SIMULCAST_NUM_THREADS", "many"),
        ("SIMULCAST_NUM_THREADS", "0"),
        ("SIMULCAST_NUM_THREADS", "-1"),
        ("SIMULCAST_LEVEL", "sse9"),
        ("SIMULCAST_KEEP_BYTES", "1 GB"),
        ("SIMULCAST_POLICY", "strickt"),
    ],
)
def test_a_variable_that_cannot_be_read_is_an_error_of_the_import(name, value):
    program = [sys.executable, "-c", "import simulcast"]
    ended = subprocess.run(program, env={**os.environ, name: value}, capture_output=True, text=True)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 1 and last.startswith("ValueError: the environment variable ") and name in last and value in last


@pytest.mark.parametrize("name", ["SIMULCAST_NUM_THREADS", "SIMULCAST_LEVEL", "SIMULCAST_KEEP_BYTES", "SIMULCAST_POLICY"])
def test_an_empty_variable_is_none(name):
    program = [sys.executable, "-c", "import simulcast; simulcast.add(1, 2)"]
    assert subprocess.run(program, env={**os.environ, name: ""}).returncode == 0


def test_a_shape_too_large_for_an_array_is_a_shape():
    assert simulcast.broadcast_shapes((2**40, 1), (1, 2**40)) == (2**40, 2**40)
    assert simulcast.broadcast_shapes(*[(2**40,) + (1,) * k for k in range(5)]) == (2**40,) * 5
    one = np.broadcast_to(np.uint8(1), (2**40, 1))
    with pytest.raises(ValueError):
        simulcast.broadcast_arrays(one, one.T)


def test_what_is_suggested_for_a_matrix_product_is_the_product():
    draw = np.random.default_rng(1)
    for a, b in [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((7, 1, 3, 4), (2, 4, 5)), ((4,), (2, 4, 5))]:
        a, b = draw.normal(size=a), draw.normal(size=b)
        with pytest.raises(simulcast.ExpressionError) as caught:
            simulcast.evaluate("a @ b", a=a, b=b)
        [line] = [line[4:] for line in str(caught.value).splitlines() if line.startswith("1 + ")]
        assert np.allclose(simulcast.evaluate(line, a=a, b=b), a @ b)
    with pytest.raises(simulcast.ExpressionError) as caught:
        simulcast.evaluate("a @ b", a=np.ones((3, 4)), b=np.ones((3, 4)))
    assert "help" not in str(caught.value)
