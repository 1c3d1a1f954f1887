"""What errors say: which argument, what it is, and what it should be, in plain words."""

import os
import subprocess
import sys

import numpy as np
import pytest

import simulcast
import simulcast.torch

X = np.arange(3.0)


def a_function() -> None:
    pass


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
        # options that are none of this call
        (lambda: simulcast.compile("alpha + 1")(alpha=X, fast_math=True), TypeError, "no operand `fast_math`; `fast_math` is an option of compile and of evaluate"),
        (lambda: simulcast.compile("alpha + 1").strategy(alpha=X, threads=2), TypeError, "no operand `threads`; `threads` is an option of a call that computes it"),
        # an operand whose name is that of an option
        (lambda: simulcast.evaluate("out + 1", out=X), TypeError, r"`out=` is an option of the call: give the operand `out` in local_dict"),
        (lambda: simulcast.evaluate("rule * 2; rule", rule=X), TypeError, r"`rule=` is an option of the call: .* as in local_dict=\{\"rule\": x\}"),
        (lambda: simulcast.evaluate("a", local_dict=3), TypeError, "argument 'local_dict' is operands by name, a dictionary, not <class 'int'>"),
        (lambda: simulcast.evaluate("a", local_dict=[("a", X)]), TypeError, "argument 'local_dict' is operands by name, a dictionary, not <class 'list'>"),
        # no expressions
        (lambda: simulcast.evaluate([]), ValueError, "a list of no expressions"),
        (lambda: simulcast.evaluate(b"a", a=X), TypeError, "an expression is text, or a list of texts, not <class 'bytes'>"),
        # what comes from outside does not reach a terminal as it is
        (lambda: simulcast.evaluate("a", **{"a\x1b[31m": X}), TypeError, r"no operand `a\?\[31m`; did you|no operand `a\?\[31m`; its operands are a"),
        (lambda: simulcast.evaluate("a", a=X, **{"\x9b2J\x07": X}), TypeError, r"no operand `\?2J\?`"),
        (lambda: simulcast.grad("sum(a)", wrt="\x1b[31m"), ValueError, r"no operand `\?\[31m`"),
        (lambda: simulcast.check((2,), (3,), names=["\x1b[31m", "b"]), simulcast.BroadcastError, r"^E1: \?\[31m \(2,\) and b"),
        (lambda: simulcast.check((2, 1), (2,), names=["\x1b[31m", "b"], policy="SC102=deny"), simulcast.BroadcastError, r"^SC102: .*: \?\[31m repeats"),
        (lambda: simulcast.grad("a", "a", gradient="\x1b")(a=X), TypeError, r"^`\?`, the gradient of a result"),
        # what is no array
        (lambda: simulcast.guard(None), TypeError, "guard takes an array, not None"),
        (lambda: simulcast.guard({"a": 1}), TypeError, "guard takes an array, not {'a': 1}"),
        (lambda: simulcast.guard(a_function), TypeError, "guard takes an array, not the function a_function"),
        (lambda: simulcast.torch.dry_run(None), TypeError, "dry_run takes a step, a function that it calls, not None"),
    ],
)
def test_an_error_names_the_argument(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    "threads, kind, message",
    [
        (2**70, ValueError, "argument 'threads' is 1180591620717411303424, which is more than any machine has"),
        (-(2**70), ValueError, "argument 'threads' is -1180591620717411303424, and threads is a number from 1 on"),
        (-1, ValueError, "argument 'threads' is -1, and threads is a number from 1 on"),
        (1.5, TypeError, "argument 'threads' is 1.5, and threads is a whole number from 1 on"),
        (np.float64(2), TypeError, r"argument 'threads' is np.float64\(2.0\), and threads is a whole number"),
        (True, TypeError, "argument 'threads' is True, and threads is a whole number from 1 on"),
        (np.True_, TypeError, "argument 'threads' is np.True_, and threads is a whole number from 1 on"),
        ("2", TypeError, "argument 'threads' is '2', and threads is a whole number from 1 on"),
        ([1], TypeError, r"argument 'threads' is \[1\], and threads is a whole number from 1 on"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda threads: simulcast.add(X, 1, threads=threads),
        lambda threads: simulcast.clip(X, 0, 1, threads=threads),
        lambda threads: simulcast.round(X, 1, threads=threads),
        lambda threads: simulcast.sum(X, threads=threads),
        lambda threads: simulcast.sum_to(X, (1,), threads=threads),
        lambda threads: simulcast.evaluate("x + 1", x=X, threads=threads),
        lambda threads: simulcast.evaluate("x + 1; x", x=X, threads=threads),
        lambda threads: simulcast.set_num_threads(threads),
    ],
)
def test_threads_are_a_whole_number(call, threads, kind, message):
    with pytest.raises(kind, match=f"^{message}"):
        call(threads)


def test_threads_of_numpys_integers_are_taken():
    assert simulcast.add(X, 1, threads=np.int64(2)).tolist() == simulcast.sum(X[:, None] + 1, axis=1, threads=np.uint8(1)).tolist()


def test_arrays_for_two_results_share_no_memory():
    out, long = np.empty(3), np.empty(6)
    both = simulcast.compile(["x + 1", "x - 1"])
    for outs in [(out, out), (long[:3], long[2:5]), (long[:3], long[2::-1]), (out, out.view()), ((out, None), out)]:
        count = sum(2 if isinstance(own, tuple) else 1 for own in outs)
        call = both if count == 2 else simulcast.compile(["x + 1", "x * 2", "x - 1"])
        first, second = 0, count - 1
        with pytest.raises(ValueError, match=rf"argument 'out': out\[{first}\] and out\[{second}\] (are the same array|share memory)"):
            call(x=X, out=outs)
    # Between each other they are apart.
    ups, downs = both(x=X, out=[long[::2], long[1::2]])
    assert ups.tolist() == [1, 2, 3] and downs.tolist() == [-1, 0, 1] and long.tolist() == [1, -1, 2, 0, 3, 1]
    loss = simulcast.value_and_grad("sum(x * y)", wrt=["x", "y"])
    with pytest.raises(ValueError, match=r"out\[1\] and out\[2\] are the same array"):
        loss(x=X, y=X, out=[None, out, out])
    # An operand's memory is written once everything is read.
    x, y = X.copy(), X[::-1].copy()
    simulcast.evaluate("x + y; x - y", x=x, y=y, out=[y, x])
    assert y.tolist() == [2, 2, 2] and x.tolist() == [-2, 0, 2]


def test_decorators_need_no_brackets():
    @simulcast.strict
    def difference(a, b):
        return simulcast.subtract(a, b)

    assert difference.__name__ == "difference" and difference(X, X).tolist() == [0, 0, 0]
    with pytest.raises(simulcast.BroadcastError, match="SC102"):
        difference(X[:, None], X)


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
