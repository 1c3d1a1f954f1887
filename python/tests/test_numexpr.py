"""`simulcast.numexpr`: numexpr's interface. numexpr's own tests are run by `cargo xtask test numexpr`."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import simulcast.numexpr as ne
from simulcast.numexpr import E, NumExpr, expressions

N, L, F, D = np.arange(5, dtype="i4"), np.arange(5), np.linspace(0.5, 2, 5, dtype="f4"), np.linspace(-1, 1, 5)
C, B = D + 1j, D > 0


@pytest.fixture(autouse=True)
def numexpr_types():
    before = ne.set_promotion("numexpr")
    yield
    ne.set_promotion(before)


def test_operands_are_what_the_caller_sees():
    a = np.array([1.0, 2.0])
    assert ne.evaluate("a * 2").tolist() == [2, 4]
    assert (ne.evaluate("D + 1") == D + 1).all()  # a global
    assert ne.evaluate("a + b", {"a": a}, {"b": 1.0}).tolist() == [2, 3]
    assert ne.evaluate("a + b", local_dict={"a": 1, "b": 2}) == 3

    def called(expr):
        return ne.evaluate(expr, _frame_depth=4)

    assert (called("a * 3") == a * 3).all()
    with pytest.raises(KeyError):
        ne.evaluate("a + nothing")
    assert isinstance(ne.validate("a + nothing"), KeyError)
    assert ne.validate("a + 1") is None and ne.re_evaluate().tolist() == [2, 3]


def test_re_evaluate_belongs_to_the_thread():
    a = 1.0
    ne.evaluate("a + 1")
    seen = []

    def other():
        try:
            ne.re_evaluate()
        except RuntimeError as error:
            seen.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert "previous evaluate" in seen[0] and ne.re_evaluate(local_dict={"a": a + 4}) == 6


@pytest.mark.parametrize("expr, dtype", [
    ("N * 2", "i4"), ("L * 2", "i8"), ("N * L", "i8"), ("F * 2", "f4"), ("F * 2.0", "f8"), ("F + N", "f4"), ("F + D", "f8"),
    ("N / 2", "f8"), ("N // 2", "i4"), ("N % 3", "i4"), ("N ** 2", "i4"), ("N > 1", "?"), ("B & (N > 1)", "?"), ("~N", "i4"),
    ("B * B", "?"), ("where(B, N, L)", "i8"), ("sum(N)", "i4"), ("prod(F)", "f4"), ("min(L)", "i8"), ("2", "i4"),
    ("2**40", "i8"), ("sqrt(N)", "f8"), ("sqrt(F)", "f4"), ("maximum(F, F)", "f8"), ("abs(N)", "f8"), ("abs(C)", "c16"),
    ("C.real", "f8"), ("complex(F, D)", "c16"), ("conj(F)", "c16"), ("round(N)", "i4"), ("ceil(F)", "f4"), ("copy(F)", "f4"),
    ("isnan(F)", "?"), ("signbit(D)", "?"), ("ones_like(F)", "f4"), ("1.5j", "c16"), ("N << 2", "i4"), ("arctan2(F, F)", "f4"),
    ("copysign(F, -1)", "f8"), ("u + u", "i4"), ("h + h", "f4"),
])
def test_kinds_are_those_of_numexpr(expr, dtype):
    u, h = np.arange(5, dtype="u2"), np.ones(5, "f2")
    made = ne.evaluate(expr, {"u": u, "h": h, **globals()})
    assert made.dtype == np.dtype(dtype), made.dtype
    functions = {name: getattr(np, name) for name in expressions.functions if hasattr(np, name)}
    functions |= {"complex": lambda re, im: re + 1j * im}
    with np.errstate(all="ignore"):
        assert np.allclose(made, eval(expr, {**functions, **globals(), "u": u, "h": h}))


@pytest.mark.parametrize("expr, dtype", [
    ("F * 2.0", "f4"), ("small + small", "i1"), ("h * 2", "f2"), ("where(B, 1, 2)", "i8"), ("sum(N)", "i8"), ("2", "i8"),
    ("maximum(F, F)", "f4"), ("abs(C)", "f8"), ("ones_like(F)", "f4"), ("copysign(F, -1)", "f4"), ("single * 2", "c8"),
])
def test_types_are_those_of_numpy_where_that_is_asked(expr, dtype):
    given = {"small": np.int8([1, 2]), "h": np.float16([1.5]), "single": np.complex64([1j]), **globals()}
    assert ne.evaluate(expr, given, promotion="numpy").dtype == np.dtype(dtype)
    with pytest.raises(ValueError, match="promotion"):
        ne.evaluate("N", promotion="pandas")


def test_results_go_where_and_how_they_are_wanted():
    out = np.empty(5, "f4")
    assert ne.evaluate("F + 1", out=out) is out and (out == F + 1).all()
    with pytest.raises(TypeError):
        ne.evaluate("D", out=np.empty(5, int))
    ne.evaluate("D * 2", out=out, casting="unsafe")
    assert (out == 2 * D).all()
    x = np.arange(6.0).reshape(2, 3)
    assert ne.evaluate("x + 1", order="F").flags.f_contiguous and ne.evaluate("x", order="C").flags.c_contiguous
    own = x.copy()
    ne.evaluate("own + 3", out=own)
    assert (own == x + 3).all()
    alone = ne.evaluate("x")
    alone[0, 0] = 9
    assert x[0, 0] == 0
    with pytest.raises(TypeError, match="casting"):
        ne.evaluate("big + 1", {"big": np.array([1], "u8")}, casting="safe")
    with pytest.raises(ValueError, match="order"):
        ne.evaluate("x", order="Z")


def test_text():
    names = np.array([b"hand", b"foot", b""])
    assert ne.evaluate("contains(names, parts)", {"names": names, "parts": np.array([b"an", b"", b"x"])}).tolist() == [True, True, False]
    assert ne.evaluate("startswith(names, b'ha') | endswith(names, 'ot')").tolist() == [True, True, False]
    assert ne.evaluate("(names >= b'foot') & (names != b'hand')").tolist() == [False, True, False]
    assert ne.evaluate("where(contains(names, b'o'), 1, 0) + 1").tolist() == [1, 2, 1]
    assert ne.evaluate("names").tolist() == names.tolist()
    for wrong in ("names + names", "names > 3", "contains(D, b'x')", "sum(names)", "sum(B)", "B - B", "D & D", "C > C"):
        with pytest.raises((NotImplementedError, TypeError)):
            ne.evaluate(wrong)
    # Formatting makes text of any length, repeating too.
    for wrong in ("'%900000000d' % 5", "b'%900000000d' % 5", "'a' * 900000000", "3 * 'a'", "names % names", "names * names"):
        with pytest.raises(TypeError, match="text has no operation"):
            ne.evaluate(wrong)
    with pytest.raises(TypeError, match="text has no operation"):
        expressions.node("%900000000d") % 5
    assert ne.evaluate("names == b'fo' + b'ot'").tolist() == [False, True, False]
    with pytest.raises(ValueError, match="Unicode"):
        ne.evaluate("unicode", {"unicode": np.array(["a"])})


@pytest.mark.parametrize("expr, error", [
    ("(D > 0) and (D < 1)", TypeError), ("0 < D < 1", TypeError), ("not B", TypeError), ("D if B else D", TypeError),
    ("D < [0, 0]", ValueError), ("__import__('os')", ValueError), ("D.shape", ValueError), ("2 +", SyntaxError),
    ("open('x')", TypeError), ("(lambda: D)()", ValueError), ("sum(D, axis=-1)", ValueError), ("sum(D, axis=1)", ValueError),
    ("9**9**9**9", ValueError), ("1 << 10**9", ValueError), ("N ** -1", ValueError), ("D; D", ValueError), ("sin(D, D)", NotImplementedError),
    ("(" * 500 + "D" + ")" * 500, (ValueError, SyntaxError)), ("+".join(["D"] * 20000), ValueError),
])
def test_what_is_refused(expr, error):
    with pytest.raises(error):
        ne.evaluate(expr)
    assert isinstance(ne.validate(expr), (Exception, type(None)))


def test_nothing_of_a_text_is_run():
    for expr in ("__import__('os').system('true')", "D.__class__", "(1).bit_length()", "[D for D in (1,)]"):
        for clean in (True, False):
            with pytest.raises((TypeError, ValueError)):
                ne.evaluate(expr, sanitize=clean)


def test_programs_of_nodes():
    program = NumExpr((E.a + 2.0 * E.b) / (1 + E.a), [("b", np.double), ("a", np.double)])
    assert program.input_names == ("b", "a") and program(1.0, 3.0) == 5 / 4 == program.run(1.0, 3.0)
    assert NumExpr("(a + 1) * (a - 1)", [("a", np.int32)]).constants == (1,)
    assert "a" in repr(NumExpr(E.a * 2))
    with pytest.raises(ValueError, match="inputs"):
        program(1.0)
    with pytest.raises(NotImplementedError, match="byte code"):
        ne.disassemble(program)
    with pytest.raises(TypeError):
        bool(E.a > 1)
    with pytest.raises(ValueError, match="don't match"):
        NumExpr("a + b", [("a", float)])


def test_options_are_taken():
    for options in ({"truediv": True}, {"optimization": "moderate"}, {"ex_uses_vml": False}, {"disable_cache": True}):
        assert (ne.evaluate("N / 2 + N ** 3", **options) == N / 2 + N**3).all()
    for wrong in ({"optimization": "most"}, {"truediv": 3}, {"speed": 1}):
        with pytest.raises(ValueError):
            ne.evaluate("D", **wrong)


def test_threads():
    before = ne.set_num_threads(2)
    assert ne.get_num_threads() == 2 and ne.detect_number_of_cores() >= 1
    assert ne.set_num_threads(before) == 2
    for wrong in (0, 10**6, 2**70):
        with pytest.raises(ValueError):
            ne.set_num_threads(wrong)
    script = "import simulcast.numexpr as ne; print(ne.nthreads, ne.MAX_THREADS)"
    settings = {"NUMEXPR_MAX_THREADS": "4", "NUMEXPR_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", script], env=settings, capture_output=True, text=True)
    assert done.stdout == "3 4\n", done.stderr
    for settings, said in [
        ({"OMP_NUM_THREADS": "32"}, "32 64\n"),  # numexpr's most, if its variable is not set
        ({"OMP_NUM_THREADS": "96"}, "64 64\n"),
        ({"OMP_NUM_THREADS": "4,2"}, "4 64\n"),
        ({"NUMEXPR_NUM_THREADS": "96", "NUMEXPR_MAX_THREADS": "8"}, "8 8\n"),
        ({"NUMEXPR_MAX_THREADS": "9" * 20, "OMP_NUM_THREADS": "3"}, "3 1024\n"),
    ]:
        done = subprocess.run([sys.executable, "-c", script], env=settings, capture_output=True, text=True)
        assert done.stdout == said, done.stderr
    done = subprocess.run([sys.executable, "-c", script], env={"NUMEXPR_NUM_THREADS": "many"}, capture_output=True, text=True)
    assert "NUMEXPR_NUM_THREADS is a number of threads, not 'many'" in done.stderr


def test_it_stands_in_for_numexpr():
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "numexpr"}
    ne.install()
    try:
        import numexpr
        from numexpr.expressions import ConstantNode
        from numexpr.utils import detect_number_of_cores

        assert numexpr is ne and ConstantNode(np.float32(1)).astKind == "float" and detect_number_of_cores() == ne.ncores
        assert numexpr.evaluate("D + 1").tolist() == (D + 1).tolist()
    finally:
        ne.uninstall()
    assert {name: module for name, module in sys.modules.items() if name.split(".")[0] == "numexpr"} == before


def test_an_out_that_is_no_array_is_named():
    for wrong in (5, [1.0], "D"):
        with pytest.raises(TypeError, match="argument 'out' is an array"):
            ne.evaluate("D + 1", out=wrong)


@pytest.mark.parametrize("threads, kind", [(1.5, TypeError), ("2", TypeError), (None, TypeError), (0, ValueError), (2**70, ValueError)])
def test_a_wrong_number_of_threads_is_refused_where_it_is_set(threads, kind):
    before = ne.get_num_threads()
    with pytest.raises(kind, match="the number of threads is"):
        ne.set_num_threads(threads)
    assert ne.get_num_threads() == before and ne.evaluate("a + 1", local_dict={"a": 1}) == 2
