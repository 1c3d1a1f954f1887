"""Policies: strict blocks, checks, records, guarded arrays, the environment variable and the pytest plugin."""

import ast
import asyncio
import copy
import pickle
import subprocess
import sys
import threading
import warnings

import dask.array
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulcast

COLUMN, ROW = np.ones((4, 1)), np.ones(4)


def test_the_square_outer_is_warned_of_once_a_line():
    with warnings.catch_warnings(record=True) as caught, simulcast.using("SC102=warn"):
        warnings.simplefilter("default")
        for _ in range(3):
            simulcast.broadcast_arrays(COLUMN, ROW)
        simulcast.broadcast_arrays(COLUMN, ROW)
    assert len(caught) == 2 and all(own.filename == __file__ for own in caught)
    assert issubclass(caught[0].category, simulcast.BroadcastWarning)
    assert str(caught[0].message).startswith("SC102: a column meets a row") and "help: " in str(caught[0].message)


def caught_in(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(own.message)[:5] for own in caught]


def test_by_default_only_what_is_confirmed_is_warned_of():
    def subtract(n):
        return simulcast.subtract(np.ones((n, 1)), np.ones(n))

    def elsewhere(n):
        return simulcast.subtract(np.ones((n, 1)), np.ones(n))

    assert [caught_in(lambda: subtract(n)) for n in (4, 4, 7, 4)] == [[], [], ["SC102"], []]
    assert caught_in(lambda: elsewhere(5)) == [], "another place"
    # A batch and a length that agree in one step of many.
    assert [caught_in(lambda: simulcast.add(np.ones((n, 1)), np.ones(m))) for n, m in [(4, 7), (7, 7), (3, 7)]] == [[]] * 3
    # The result is one number.
    loss = "mean((pred - target) ** 2)"
    assert caught_in(lambda: simulcast.evaluate(loss, pred=COLUMN, target=ROW)) == ["SC102"]
    assert caught_in(lambda: simulcast.evaluate("mean((pred - target) ** 2, axis=0)", pred=COLUMN, target=ROW)) == []
    # The column was written out in the expression.
    assert caught_in(lambda: simulcast.evaluate("mean((pred[:, None] - target) ** 2)", pred=ROW, target=ROW)) == []
    # A symbol stands on both axes.
    assert caught_in(lambda: simulcast.check("batch,1", "batch")) == ["SC102"]


def test_strict_refuses_what_is_only_possible():
    with simulcast.strict(), pytest.raises(simulcast.BroadcastError, match="SC102"):
        simulcast.add(COLUMN, ROW)
    with simulcast.using("SC102:confirmed=deny"):
        simulcast.add(COLUMN, ROW)
        with pytest.raises(simulcast.BroadcastError, match="SC102"):
            simulcast.evaluate("sum(pred - target)", pred=COLUMN, target=ROW)


def test_a_guarded_loss_is_confirmed_by_its_reduction():
    pred, target = simulcast.guard(COLUMN), ROW
    line = sys._getframe().f_lineno + 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Warned of where the shapes met.
        difference = pred - target
        squares = (difference * 2).T ** 2
        loss = squares.mean()
    assert (loss, [own.lineno for own in caught], caught[0].filename) == (0.0, [line], __file__)
    assert caught_in(lambda: (pred - target).sum(axis=0)) == []
    assert caught_in(lambda: (pred - target).sum(axis=0).max()) == ["SC102"]
    assert caught_in(lambda: (pred - target)[0].sum()) == [], "a part of it"
    if sys.version_info >= (3, 11):
        # What the expression inserts is meant, and operands are called as they are written.
        assert caught_in(lambda: (target[:, None] - simulcast.guard(target)).sum()) == []
        assert "target[:, None] is (4, 1)" in str(caught[0].message)
    assert caught_in(lambda: (pred[:, 0] - target).sum()) == []
    with simulcast.using("SC102:confirmed=deny"), pytest.raises(simulcast.BroadcastError, match="SC102"):
        (pred - target).mean()


def test_suppressions():
    with simulcast.strict():
        simulcast.add(COLUMN, ROW)  # simulcast: ignore[SC102, SC103]
        simulcast.add(
            COLUMN,
            ROW,
        )  # simulcast: ignore
        with simulcast.allow("SC102", "sc103"):
            simulcast.add(COLUMN, ROW)
            with simulcast.using("exact"), simulcast.allow("all"):
                simulcast.add(COLUMN, ROW)
        with pytest.raises(simulcast.BroadcastError, match="SC103"):
            simulcast.add(COLUMN, ROW)  # simulcast: ignore[SC102]
        with pytest.raises(simulcast.BroadcastError, match="SC102"):
            simulcast.add(COLUMN, ROW)  # simulcast: keep[SC102]
    pred = simulcast.guard(COLUMN)
    assert caught_in(lambda: (pred - ROW).mean()) == ["SC102"]
    assert caught_in(lambda: (pred - ROW).mean()) == []  # simulcast: ignore[SC102]
    with simulcast.record() as broadcasts:
        simulcast.add(COLUMN, ROW)  # simulcast: ignore[SC102]
        simulcast.add(COLUMN, ROW)
    assert [own.findings for own in broadcasts] == [(), ("SC102",)]
    assert [[own.certainty for own in one.details] for one in broadcasts] == [[], ["possible"]]
    assert pickle.loads(pickle.dumps(broadcasts)) == broadcasts
    with pickle.loads(pickle.dumps(simulcast.allow("SC102", "SC103"))), simulcast.strict():
        simulcast.add(COLUMN, ROW)
    for bad in [("SC99",), ("square",), ()]:
        with pytest.raises(ValueError, match="SC102"):
            simulcast.allow(*bad)


def test_nothing_else_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulcast.broadcast_arrays(COLUMN, np.ones((1, 4)))
        simulcast.broadcast_arrays(np.ones((3, 3)), np.ones(3))
        simulcast.broadcast_to(ROW, (4, 4))


SIZES = st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4).map(tuple)


@given(st.lists(SIZES, min_size=2, max_size=3))
def test_what_is_warned_of_is_what_explain_finds(shapes):
    try:
        simulcast.broadcast_shapes(*shapes)
    except simulcast.BroadcastError:
        return
    said = [own.code for own in simulcast.explain(*shapes).findings if own.code == "SC102"]
    arrays = [np.ones(shape, bool) for shape in shapes]
    calls = [lambda: simulcast.broadcast_arrays(*arrays)]
    if len(arrays) == 2:
        calls.append(lambda: simulcast.logical_and(*arrays))
        calls.append(lambda: simulcast.evaluate("a & b", a=arrays[0], b=arrays[1]))
    else:
        calls.append(lambda: simulcast.where(*arrays))
    for call in calls:
        with simulcast.using("SC102=warn"):
            assert caught_in(call) == said


@pytest.mark.parametrize("policy", ["numpy", "SC102=deny"])
def test_columns_that_an_expression_makes_are_meant(policy):
    with simulcast.using(policy), warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in ("x[:, None] - y", "sum(x[:, None] - y, axis=0)", "x[:, None] * y + sum(y)", "-x[:, None] * 2 - y"):
            simulcast.evaluate(text, x=ROW, y=ROW)
        simulcast.evaluate("sum(x, axis=1, keepdims=True) - y", x=np.ones((4, 3)), y=ROW)
    with simulcast.using("SC102=deny"), pytest.raises(simulcast.BroadcastError):
        simulcast.evaluate("x - sum(y[:, None], axis=1)", x=COLUMN, y=ROW)


def test_strict_refuses_within_its_block_only():
    with simulcast.strict():
        with pytest.raises(simulcast.BroadcastError) as caught:
            simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3))
        # Written-out ones and scalars stretch.
        simulcast.broadcast_arrays(np.ones((2, 3)), np.ones((1, 3)), 1.0)
        # A shape that was asked for by name is no accident.
        simulcast.broadcast_to(np.ones(3), (2, 3))
        with simulcast.using("numpy"):
            simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.code, error.shapes, error.operands) == ("SC103", ((2, 3), (3,)), (1,))
    simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3))


def test_threads_and_tasks_share_a_setting():
    shared, refused = simulcast.strict(), []

    def use():
        with shared, shared:
            inside.wait()
            with pytest.raises(simulcast.BroadcastError):
                simulcast.add(COLUMN, ROW)
            refused.append(True)

    inside = threading.Barrier(4)
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 4

    async def task(seconds):
        with shared:
            await asyncio.sleep(seconds)
            with pytest.raises(simulcast.BroadcastError):
                simulcast.add(COLUMN, ROW)

    async def tasks():
        await asyncio.gather(task(0.01), task(0.03), task(0.02))

    asyncio.run(tasks())
    simulcast.add(COLUMN, ROW)


def test_settings_and_what_they_decorate_pickle():
    for setting in (simulcast.strict(), simulcast.using("SC102=deny")):
        with pickle.loads(pickle.dumps(setting)), pytest.raises(simulcast.BroadcastError):
            simulcast.add(COLUMN, ROW)
    with pickle.loads(pickle.dumps(simulcast.record())) as broadcasts:
        simulcast.add(np.ones((2, 3)), np.ones(3))
    assert len(broadcasts) == 1


def test_a_guarded_array_leaves_other_classes_alone():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for made in (simulcast.guard(np.ones(2)) + masked, masked + simulcast.guard(np.ones(2))):
        assert isinstance(made, np.ma.MaskedArray) and made.sum() == 2.0


def test_strictness_and_actions():
    with simulcast.strict("exact"), pytest.raises(simulcast.BroadcastError, match="SC100"):
        simulcast.broadcast_arrays(ROW, 1.0)
    with simulcast.strict("scalar-only"):
        simulcast.broadcast_arrays(ROW, 1.0)
        with pytest.raises(simulcast.BroadcastError, match="SC100"):
            simulcast.broadcast_arrays(ROW, np.ones(1))
    with simulcast.strict(SC101="deny"), pytest.raises(simulcast.BroadcastError, match="SC101"):
        simulcast.broadcast_arrays(np.ones((4, 1)), np.ones((1, 3)))


def test_strict_as_decorator():
    @simulcast.strict()
    def shape(a, b):
        return simulcast.broadcast_arrays(a, b)[0].shape if a.ndim else shape(b, b)

    assert shape(COLUMN, COLUMN) == (4, 1) and shape(np.ones(()), COLUMN) == (4, 1)
    with pytest.raises(simulcast.BroadcastError):
        shape(COLUMN, ROW)


def test_strict_as_decorator_of_a_coroutine():
    @simulcast.strict()
    async def shape(a, b):
        """A coroutine."""
        await asyncio.sleep(0)
        return simulcast.broadcast_arrays(a, b)[0].shape

    assert shape.__name__ == "shape" and shape.__doc__ and asyncio.run(shape(COLUMN, COLUMN)) == (4, 1)
    with pytest.raises(simulcast.BroadcastError):
        asyncio.run(shape(np.ones((2, 3)), np.ones(3)))
    with pytest.raises(TypeError, match="yields"):

        @simulcast.strict()
        def shapes():
            yield


def test_a_policy_belongs_to_its_context():
    seen = []

    def other():
        seen.append(simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3))[1].shape)

    async def task():
        with simulcast.strict():
            await asyncio.sleep(0.01)
            with pytest.raises(simulcast.BroadcastError):
                other()

    async def both():
        running = asyncio.ensure_future(task())
        await asyncio.sleep(0)
        other()
        await running

    asyncio.run(both())
    with simulcast.strict():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [(2, 3), (2, 3)]


def test_check():
    assert simulcast.check((32, 1), (1, 8), policy="same-rank") == (32, 8)
    assert simulcast.check("N,3", (3,)) == ("N", 3)
    with pytest.warns(simulcast.BroadcastWarning):
        simulcast.check((32, 1), (32,), policy="SC102=warn")
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.check((32, 1), (32,), policy=simulcast.Policy(SC102="deny"), names=["pred", "target"])
    assert caught.value.suggestions[0].startswith("target[:, None]") and caught.value.names == ("pred", "target")
    with pytest.raises(simulcast.BroadcastError, match="SC105"):
        simulcast.check((1000, 1), (1, 1000), policy="SC105=deny,bytes=1000")
    with simulcast.using("SC104=deny"), pytest.raises(simulcast.BroadcastError, match="SC104"):
        simulcast.check((3, 3), (3,))


def test_policies_are_values():
    policy = simulcast.Policy("same-rank", SC104="warn", growth=8)
    assert str(policy) == "same-rank,SC104=warn,growth=8"
    assert pickle.loads(pickle.dumps(policy)) == policy == eval(repr(policy))
    assert simulcast.Policy("strict") == simulcast.Policy("same-rank,SC102=deny") != simulcast.Policy()
    for text in ["all=deny", "all=warn", "exact,all=warn", "same-rank,all=allow"]:
        policy = simulcast.Policy(text)
        assert policy == simulcast.Policy(str(policy)) == copy.deepcopy(policy)
    # What the strictness forbids is denied; nobody is left to think otherwise.
    for bad in ["SC100=warn", "exact,SC100=allow", "same-rank,SC103=warn", "strict,SC103=allow", "SC103=warn,same-rank"]:
        with pytest.raises(ValueError, match="no action to choose for SC10[03] at strictness"):
            simulcast.Policy(bad)
    assert simulcast.Policy("exact,SC100=deny") == simulcast.Policy("exact")
    for bad in ["nosuch", "SC999=warn", "SC102=shout", "growth=x", "growth=-1", "bytes=1.5"]:
        with pytest.raises(ValueError):
            simulcast.Policy(bad)


def test_records_name_the_place():
    with simulcast.record() as broadcasts:
        simulcast.broadcast_arrays(np.ones((2, 3)), np.ones((2, 3)))
        line = sys._getframe().f_lineno + 1
        simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3), rule="numpy")
        simulcast.broadcast_to(ROW, (2, 4))
        simulcast.guard(np.ones((2, 3))) * np.ones((2, 1))
        simulcast.add(ROW, ROW, out=np.ones((2, 4)))
        np.add(ROW, ROW, out=simulcast.guard(np.ones((2, 4))))
    assert [(own.function, own.shapes, own.result) for own in broadcasts] == [
        ("broadcast_arrays", ((2, 3), (3,)), (2, 3)),
        ("broadcast_to", ((4,),), (2, 4)),
        ("multiply", ((2, 3), (2, 1)), (2, 3)),
        ("out", ((4,),), (2, 4)),
        ("out", ((4,),), (2, 4)),
    ]
    assert [own.line for own in broadcasts] == [line, line + 1, line + 2, line + 3, line + 4]
    assert all(own.file == __file__ for own in broadcasts)
    assert str(broadcasts[0]) == f"{__file__}:{line}: broadcast_arrays (2, 3), (3,) -> (2, 3)"
    simulcast.broadcast_to(ROW, (2, 4))
    assert len(broadcasts) == 5


def test_guarded_arrays_ask():
    x = np.arange(12.0).reshape(4, 3)
    guarded = simulcast.guard(x)
    assert np.shares_memory(guarded, x) and isinstance(guarded, np.ndarray)
    with simulcast.strict():
        assert type(guarded + x) is type(guarded) and (guarded + x == 2 * x).all()
        assert type(guarded * 2) is type(guarded)
        for operation in (lambda: guarded - x[:, 0], lambda: x[0] * guarded, lambda: np.maximum(guarded, x[0])):
            with pytest.raises(ValueError):
                operation()
        with pytest.raises(simulcast.BroadcastError):
            guarded += x[0]
        # What the operators of a guarded array give is guarded too; reductions are no broadcasts.
        with pytest.raises(simulcast.BroadcastError):
            (guarded * 2) / x[0]
        assert guarded.sum() == x.sum() and np.add.reduce(guarded, 0).tolist() == x.sum(0).tolist()
        assert (guarded @ np.ones(3)).tolist() == x.sum(1).tolist()
    out = np.empty_like(x)
    assert np.add(guarded, x[0], out=out) is out and (out == x + x[0]).all()
    quotient, rest = np.divmod(guarded, 5)
    assert (quotient == x // 5).all() and (rest == x % 5).all()
    guarded += 1
    assert x[0, 0] == 1


def test_the_environment_sets_the_policy():
    program = "import numpy as np, simulcast; simulcast.broadcast_arrays(np.ones((2, 3)), np.ones(3))"
    run = lambda policy: subprocess.run(
        [sys.executable, "-c", program], env={"SIMULCAST_POLICY": policy}, capture_output=True, text=True
    )
    assert run("numpy").returncode == 0
    strict = run("strict")
    assert strict.returncode != 0 and "BroadcastError: SC103" in strict.stderr
    assert "there is no strictness" in run("nosuch").stderr


def test_the_pytest_plugin(pytester):
    pytester.makepyfile(
        """
        import numpy as np, simulcast
        def test_broadcast():
            simulcast.guard(np.ones((2, 3))) + np.ones(3)
        """
    )
    file = next(pytester.path.glob("test_*.py"))
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--simulcast-strict").assert_outcomes(failed=1)
    # It is a flag: what follows it are files.
    pytester.runpytest_inprocess("--simulcast-strict", file).assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--simulcast-policy=numpy", file).assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--simulcast-policy", "exact", file).assert_outcomes(failed=1)
    assert pytester.runpytest_inprocess("--simulcast-policy=nosuch").ret == pytest.ExitCode.USAGE_ERROR


def test_fixtures_are_under_the_policy_too(pytester):
    pytester.makepyfile(
        """
        import numpy as np, pytest, simulcast
        @pytest.fixture
        def table():
            return simulcast.add(np.ones((2, 3)), np.ones(3))
        def test_table(table):
            assert table.shape == (2, 3)
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--simulcast-strict").assert_outcomes(errors=1)


def test_contexts_of_their_own_and_threads_are_under_the_policy_too(pytester):
    pytester.makepyfile(
        """
        import threading, unittest
        import numpy as np, pytest, simulcast
        def outer():
            simulcast.add(np.ones((3, 1)), np.ones(3))
        class Test(unittest.IsolatedAsyncioTestCase):
            async def test_outer(self):
                with pytest.raises(simulcast.BroadcastError):
                    outer()
        def test_thread():
            caught = []
            def run():
                with pytest.raises(simulcast.BroadcastError):
                    outer()
                caught.append(True)
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            assert caught
        """
    )
    pytester.runpytest_inprocess("--simulcast-strict").assert_outcomes(passed=2)


def test_expressions_are_refused_by_their_names():
    image, bias = np.ones((3, 4)), np.ones(4)
    for text, part, name in [
        ("image * 2 - bias", "bias", "bias"),
        ("image - (bias + 1)", "(bias + 1)", "(bias + 1)"),
        ("image - sqrt(bias)", "sqrt(bias)", "sqrt(bias)"),
        ("image - (bias) * (bias)", "(bias) * (bias)", "((bias) * (bias))"),
        ("image - (bias).clip(0, 1)", "(bias).clip(0, 1)", "(bias).clip(0, 1)"),
        ("image - -(bias)", "-(bias)", "(-(bias))"),
        ("image - clip(bias + 1, None, None)", "clip(bias + 1, None, None)", "clip(bias + 1, None, None)"),
    ]:
        # What is written behind the name is about all of it: Python reads it so.
        named = ast.parse(f"{name}[None, :]", mode="eval").body
        assert ast.dump(named.value) == ast.dump(ast.parse(part, mode="eval").body)
        with simulcast.strict(), pytest.raises(simulcast.BroadcastError) as caught:
            simulcast.evaluate(text, image=image, bias=bias)
        assert caught.value.names[1] == name and caught.value.shapes == ((3, 4), (4,))
        # The suggestion, written out, is what NumPy shows for it, and is accepted.
        expected = f"{name}[None, :] is {bias[None, :].shape}, result {np.broadcast_shapes(image.shape, bias.shape)}"
        assert caught.value.suggestions == (expected,) and expected in str(caught.value)
        with simulcast.strict():
            simulcast.evaluate(text.replace(part, f"{name}[None, :]"), image=image, bias=bias)


def test_numbers_that_are_given_are_operands():
    with simulcast.using("exact"):
        for call in [
            lambda: simulcast.multiply(np.ones(3), 2),
            lambda: simulcast.evaluate("b * c", b=np.ones(3), c=2),
            lambda: simulcast.evaluate("b * ( c )", b=np.ones(3), c=2),
            lambda: simulcast.evaluate("b * c", b=np.ones(3), c=np.float64(2)),
        ]:
            with pytest.raises(simulcast.BroadcastError, match="SC100"):
                call()
        # One that stands in the text repeats nothing that was given.
        simulcast.evaluate("b * 2", b=np.ones(3))
    with simulcast.record() as broadcasts:
        simulcast.evaluate("b * c", b=np.ones(3), c=2)
    assert len(broadcasts) == 1


def test_sizes_that_are_not_known_are_said_as_they_are():
    with pytest.raises(simulcast.BroadcastError, match=r"B \(3,\) is repeated to \(N, 3\)"):
        simulcast.check("N,3", "3", policy="exact")


def test_dask_arrays_are_no_arrays_to_guard():
    with pytest.raises(TypeError, match="in memory"):
        simulcast.guard(dask.array.ones(3))


def test_comments_that_do_not_say_what_they_ignore_are_told(tmp_path):
    from simulcast import _suppress

    def ignored(comment):
        file = tmp_path / f"{abs(hash(comment))}.py"
        file.write_text(f"a - b  # simulcast: {comment}\n")
        return _suppress.ignored(str(file), 1)

    for wrong, what, codes in [
        ("ignore[SC999]", "there is no finding SC999", set()),
        ("ignore[SC102, squares]", "there is no finding SQUARES", {"SC102"}),
        ("ignore[SC102", "the bracket is not closed", {"SC102"}),
        ("ignore[]", "there is no code", set()),
    ]:
        with pytest.warns(UserWarning, match=what):
            assert ignored(wrong) == codes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ignored("ignore[sc102 SC103]  # as in [1]") == {"SC102", "SC103"}
        assert ignored("ignore") == ignored("ignore[all]") == ignored("ignore: they are meant") == {"all"}


def test_allow_takes_codes_that_there_are():
    for wrong in [("SC999",), ("SC102", "SC10"), ()]:
        with pytest.raises(ValueError, match="SC102"):
            simulcast.allow(*wrong)
    for wrong in [5, None, ["SC102"]]:
        with pytest.raises(TypeError, match="codes of findings as text"):
            simulcast.allow(wrong)


def test_a_policy_that_is_none_is_named():
    for call in (lambda: simulcast.using(None), lambda: simulcast.check((3,), policy=5)):
        with pytest.raises(TypeError, match=r"policy is a simulcast\.Policy or its text, not (None|5)"):
            call()
