"""Dask arrays: lazy, right whatever the chunks, and never blown up."""

import pickle
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulcast
from simulcast import _dask


@st.composite
def chunked(draw, shape):
    """An array of distinct values that are not zero, and the same in chunks of any size."""
    x = np.arange(1, int(np.prod(shape)) + 1).reshape(shape)
    return x, da.from_array(x, chunks=[draw(st.integers(1, max(size, 1))) for size in shape])


@pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
@given(st.data())
def test_arrays_are_numpys(data):
    result = data.draw(st.lists(st.integers(0, 6), max_size=3))
    pairs = []
    for _ in range(2):
        own = [data.draw(st.sampled_from([size, size, 1])) for size in result]
        pairs.append(data.draw(chunked(own[data.draw(st.integers(0, len(own))) :])))
    (x, lazy_x), (y, lazy_y) = pairs
    ours = simulcast.broadcast_arrays(lazy_x, data.draw(st.sampled_from([y, lazy_y])))
    for own, their in zip(ours, np.broadcast_arrays(x, y)):
        assert isinstance(own, da.Array) and own.shape == their.shape and own.dtype == their.dtype
        assert (own.compute(scheduler="sync") == their).all()
    shown = simulcast.broadcast_to(lazy_x, (2, *ours[0].shape))
    assert (shown.compute(scheduler="sync") == np.broadcast_to(x, (2, *ours[0].shape))).all()


@given(st.data())
def test_sums_are_numpys(data):
    whole = data.draw(st.lists(st.integers(1, 6), max_size=3))
    own = [data.draw(st.sampled_from([size, 1])) for size in whole]
    own = tuple(own[data.draw(st.integers(0, len(own))) :])
    x, lazy = data.draw(chunked(whole))
    ours = simulcast.sum_to(lazy, own)
    assert isinstance(ours, da.Array) and ours.shape == own and ours.dtype == x.dtype
    assert (ours.compute(scheduler="sync") == simulcast.sum_to(x, own)).all()


def test_halves_are_summed_in_float32():
    x = da.ones(8192, chunks=100, dtype="f2")
    ours = simulcast.sum_to(x, ())
    assert ours.dtype == np.float16 and float(ours.compute(scheduler="sync")) == 8192


def test_other_rules():
    x = np.arange(1, 7).reshape(2, 3)
    lazy = da.from_array(x, chunks=(1, 2))
    bias = np.array([10, 20])
    for rule, operands in [
        ("pdpd:0", (x, bias)),
        (simulcast.named(("h", "w"), ("w", "h")), (x, x.T)),
        (simulcast.pdpd(1), (x, np.array([[10], [20], [30]]))),
    ]:
        ours = simulcast.broadcast_arrays(lazy, *operands[1:], rule=rule)
        for own, their in zip(ours, simulcast.broadcast_arrays(*operands, rule=rule)):
            assert (own.compute(scheduler="sync") == their).all()
    shown = simulcast.broadcast_to(lazy[:, 0], rule=simulcast.axes((2, 3), (1,)))
    assert shown.compute(scheduler="sync").tolist() == [[1] * 3, [4] * 3]
    assert simulcast.sum_to(lazy, (2,), rule="pdpd:0").compute(scheduler="sync").tolist() == [6, 15]
    turned = simulcast.sum_to(lazy, (3, 2), rule=simulcast.named(("h", "w"), ("w", "h")))
    assert turned.compute(scheduler="sync").tolist() == x.T.tolist()


def test_shapes_are_checked_at_once():
    with pytest.raises(simulcast.BroadcastError, match="axis 1"):
        simulcast.broadcast_arrays(da.ones((3, 1, 5)), da.ones((4, 4, 5)), da.ones((2, 5)))
    with pytest.raises(simulcast.BroadcastError):
        simulcast.broadcast_to(da.ones(3), (2,))
    with simulcast.strict(), pytest.raises(simulcast.BroadcastError):
        simulcast.broadcast_arrays(da.ones((2, 3)), np.ones(3))
    unknown = da.ones(10)[da.ones(10) > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        simulcast.broadcast_arrays(unknown, da.ones(10))


def test_names_are_deterministic():
    x = da.from_array(np.arange(6).reshape(2, 3), chunks=1)
    twice = [simulcast.broadcast_arrays(x, np.arange(3))[1].name for _ in range(2)]
    twice += [simulcast.sum_to(x, (3,)).name for _ in range(2)]
    assert twice[0] == twice[1] and twice[2] == twice[3] and twice[0] != twice[2]


def test_blocks_of_an_outer_result_stay_small():
    column, row = da.ones((100_000, 1), chunks=50_000), da.ones((1, 100_000), chunks=50_000)
    for shown in simulcast.broadcast_arrays(column, row):
        assert shown.shape == (100_000, 100_000)
        assert max(shown.chunks[0]) * max(shown.chunks[1]) * 8 <= _dask.LIMIT


def _product(x, y):
    return x * y


def _negative(x):
    return -x


def test_blockwise_is_ready_for_functions_of_blocks():
    x, y = np.arange(1, 13).reshape(3, 4), np.arange(1, 4)
    lazy = da.from_array(x, chunks=(2, 3))
    product = _dask.blockwise(_product, [lazy, y], "pdpd:0", "product", dtype=x.dtype)
    assert (product.compute(scheduler="sync") == x * y[:, None]).all()
    again = _dask.blockwise(_product, [lazy, y], "pdpd:0", "product", dtype=x.dtype)
    assert product.name == again.name and product.name.startswith("simulcast-product-")
    column, row = da.ones((40_000, 1), chunks=40_000), da.ones((1, 40_000), chunks=40_000)
    outer = _dask.blockwise(_product, [column, row], "numpy", "product", dtype="f8")
    assert outer.shape == (40_000, 40_000)
    assert max(outer.chunks[0]) * max(outer.chunks[1]) * 8 <= _dask.LIMIT
    assert (outer[:2, -2:].compute(scheduler="sync") == 1).all()
    grown = _dask.blockwise(_negative, [lazy], simulcast.to((2, 3, 4)), "negative", dtype=x.dtype)
    assert (grown.compute(scheduler="sync") == np.broadcast_to(-x, (2, 3, 4))).all()


def test_graphs_pickle():
    x = simulcast.sum_to(da.from_array(np.arange(6).reshape(2, 3), chunks=1), (3,))
    assert pickle.loads(pickle.dumps(x)).compute(scheduler="sync").tolist() == [3, 5, 7]


def test_worker_processes_compute():
    x = simulcast.sum_to(da.from_array(np.arange(6).reshape(2, 3), chunks=1), (3,))
    with dask.config.set(scheduler="processes", num_workers=2):
        assert x.compute().tolist() == [3, 5, 7]


def test_xarray_stays_lazy():
    import xarray

    x = xarray.DataArray(da.ones((4, 6), chunks=2), dims=("h", "w"))
    ours = xarray.apply_ufunc(
        lambda x: simulcast.sum_to(x, (4, 1)),
        x,
        input_core_dims=[["h", "w"]],
        output_core_dims=[["h", "one"]],
        dask="allowed",
    )
    assert isinstance(ours.data, da.Array) and ours.compute().values.tolist() == [[6]] * 4


def test_dask_is_never_imported_by_us():
    program = (
        "import sys, numpy as np, simulcast\n"
        "simulcast.broadcast_arrays([1], [2]); simulcast.sum_to(np.ones(3), ())\n"
        "assert 'dask' not in sys.modules and 'xarray' not in sys.modules and 'pytest' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


FUNCTIONS = ["add", "subtract", "maximum", "less", "where", "clip", "hypot"]


@pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
@settings(max_examples=60)
@given(st.data())
def test_functions_are_numpys(data):
    name = data.draw(st.sampled_from(FUNCTIONS))
    whole = data.draw(st.lists(st.integers(0, 6), max_size=3))
    eager, lazy = [], []
    for _ in range(3 if name in ("where", "clip") else 2):
        own = [data.draw(st.sampled_from([size, size, 1])) for size in whole]
        x, chunks = data.draw(chunked(own[data.draw(st.integers(0, len(own))) :]))
        eager.append(x), lazy.append(data.draw(st.sampled_from([x, chunks, chunks])))
    if not any(isinstance(x, da.Array) for x in lazy):
        lazy[0] = da.from_array(eager[0], chunks=-1)
    ours, theirs = getattr(simulcast, name)(*lazy), getattr(np, name)(*eager)
    assert isinstance(ours, da.Array) and ours.shape == np.shape(theirs) and ours.dtype == theirs.dtype
    computed = ours.compute(scheduler="sync")
    assert computed.dtype == theirs.dtype and (computed == theirs).all()


EXPRESSIONS = [
    "a * 2 + b",
    "where(a > b, a, 0.5) - b",
    "1 < a <= b",
    "a if a > 3 else b",
    "clip(a, 2, 5) * pi",
    "float32(a) / 3",
    "a - mean(b, axis=0)",
    "sum(a) + b.T.T",
    "max(a, axis=-1, keepdims=True) * b + 2 * 3",
    "a[None] + b[..., None].sum(axis=-1)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_are_those_of_arrays(text):
    a, b = np.arange(1.0, 13).reshape(3, 4), np.arange(1.0, 5)
    own, lazy = {"a": a, "b": b}, {"a": da.from_array(a, chunks=(2, 3)), "b": da.from_array(b, chunks=3)}
    if "b" not in simulcast.compile(text).operands:
        del own["b"], lazy["b"]
    with simulcast.using("numpy"):
        theirs = simulcast.evaluate(text, **own)
        ours = simulcast.evaluate(text, **lazy)
        again = simulcast.evaluate(text, **lazy)
    assert isinstance(ours, da.Array) and ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert np.allclose(ours.compute(scheduler="sync"), theirs) and ours.name == again.name


PARTS = [
    ("(abs(-3) * i).T", "i", np.array([[100, 1]], np.int8)),
    ("(sqrt(2) * f).T", "f", np.array([[2.5, 1]], np.float32)),
    ("(h * h / h).T + h.max()", "h", np.array([[300, 2]], np.float16)),
    ("uint8(x).T", "x", np.array([[-1.5, 300.0]])),
    ("clip(u, -1, 300).sum(axis=0)", "u", np.array([[255], [1]], np.uint8)),
    ("(i * (7 // 2) + 2 ** 70 / 2 ** 69).T", "i", np.array([[1, 2]], np.int8)),
    ("(1 < x <= 3 < 4).T", "x", np.array([[0.5, 2, 3, 4]])),
    ("where(s == 'bc', 'long text', s).T", "s", np.array([["a", "bc"]])),
    (" + ".join(["x.T"] * 100), "x", np.array([[0.1, 0.2]])),
    ("(" + " + ".join(["1"] * 60) + ") * i.T", "i", np.array([[1, 2, 3]], np.int8)),
    ("(x < (x < (x < 2 < 3) < 2) < 5).T", "x", np.array([[0.5, 1.5, 2.5]])),
    ("sqrt(mean(h * h)) + sum(h * 2)", "h", np.array([[300, 2]], np.float16)),
    ("(e * 2).T + e.sum()", "e", np.array([[1.0, 2.0]])),
    ("sum(pi * 2)", "pi", np.array([[1.0, 2.0]])),
    ("string(s).T + 'x'", "s", np.array([["a", "bcd"]])),
    ("sum(2) * x.T + nan * 0 * -1e300 * 2j", "x", np.array([[1.0, 2.0]])),
]


@pytest.mark.parametrize("text, name, x", PARTS)
def test_expressions_in_parts_are_computed_as_those_in_one(text, name, x):
    theirs = simulcast.evaluate(text, **{name: x})
    ours = simulcast.evaluate(text, **{name: da.from_array(x, chunks=1)})
    assert ours.dtype == theirs.dtype
    computed = ours.compute(scheduler="sync")
    assert computed.dtype == theirs.dtype and computed.shape == theirs.shape
    assert (computed == theirs).all() if x.dtype.kind in "Uiu" else np.allclose(computed, theirs, equal_nan=True)


def test_the_dtype_of_an_expression_is_the_engines():
    x = np.array([[-1.5, 300.0, np.nan, 2e10]])
    for text in ("x.T", "x.T + 0", "x"):
        for dtype in ("u1", "i4"):
            own = {"dtype": dtype, "casting": "unsafe"}
            ours = simulcast.evaluate(text, x=da.from_array(x, chunks=1), **own).compute(scheduler="sync")
            assert ours.dtype == dtype and (ours == simulcast.evaluate(text, x=x, **own)).all()
    with pytest.raises(TypeError):
        simulcast.evaluate("x.T", x=da.from_array(x, chunks=1), dtype="i4")


def test_text_is_not_cut():
    s = np.array(["a", "bcd", "wxyz"])
    lazy = da.from_array(s, chunks=1)
    for text in ("s + t", "string(s)", "s + t + '!'", "where(s == 'a', 'many letters', t)", "'y' if s == 'a' else s"):
        own = {name: s for name in simulcast.compile(text).operands}
        made = simulcast.evaluate(text, **{**own, "s": lazy})
        theirs = simulcast.evaluate(text, **own)
        computed = made.compute(scheduler="sync")
        assert computed.dtype == made.dtype and (computed == theirs).all()
        assert np.can_cast(theirs.dtype, made.dtype, "safe")
    words = np.array(["a", "bcd"], object)
    joined = simulcast.add(da.from_array(words, chunks=1), "x").compute(scheduler="sync")
    assert joined.tolist() == ["ax", "bcdx"]


def test_masked_arrays_are_refused():
    masked = da.ma.masked_array(da.from_array(np.arange(4.0), chunks=2), mask=[False, True, False, False])
    for call in (
        lambda: simulcast.add(masked, 1),
        lambda: simulcast.sum_to(masked, ()),
        lambda: simulcast.broadcast_to(masked, (2, 4)),
        lambda: simulcast.broadcast_arrays(masked, np.ones((2, 1))),
        lambda: simulcast.evaluate("sum(m)", m=masked),
    ):
        with pytest.raises(TypeError, match="mask"):
            call()


def test_decorated_functions_go_to_workers():
    @simulcast.strict()
    def doubled(block):
        return simulcast.multiply(block, 2)

    made = da.ones(4, chunks=2).map_blocks(doubled, dtype=float).compute(scheduler="processes")
    assert (made == 2).all()


def test_numbers_stay_weak_and_options_hold():
    x = da.ones((4, 6), chunks=(2, 4), dtype="f4")
    assert simulcast.multiply(x, 2.0).dtype == np.float32
    assert simulcast.multiply(2.0, x).compute(scheduler="sync").dtype == np.float32
    assert simulcast.multiply(x, np.float64(2)).dtype == np.float64
    assert simulcast.multiply(x, da.from_array(np.array(2.0))).dtype == np.float64
    assert simulcast.evaluate("x * k + 1", x=x, k=2.5).compute(scheduler="sync").dtype == np.float32
    assert simulcast.add(x, 1, dtype="f8").compute(scheduler="sync").dtype == np.float64
    assert simulcast.evaluate("x + 1", x=x, dtype="f8").compute(scheduler="sync").dtype == np.float64
    by_row = simulcast.add(x, np.arange(4), rule="pdpd:0").compute(scheduler="sync")
    assert (by_row == 1 + np.arange(4)[:, None]).all()
    by_row = simulcast.evaluate("x * 2 + y", x=x, y=np.arange(4), rule="pdpd:0").compute(scheduler="sync")
    assert (by_row == 2 + np.arange(4)[:, None]).all()
    scaled = simulcast.multiply(x, 3, rule="exact").compute(scheduler="sync")
    assert (scaled == 3).all()
    for call in [
        lambda: simulcast.add(x, 1, out=np.ones((4, 6))),
        lambda: simulcast.bitwise_and(x, 1),
        lambda: simulcast.evaluate("x & 1", x=x),
    ]:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(simulcast.BroadcastError):
        simulcast.add(x, da.ones(4))
    with pytest.raises(simulcast.BroadcastError):
        simulcast.evaluate("x + y", x=x, y=da.ones(4))
    with pytest.raises(simulcast.ExpressionError, match="no operand"):
        simulcast.evaluate("x + y", x=x)
    unknown = da.ones(10)[da.ones(10) > 0]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        simulcast.add(unknown, da.ones(10))
    with simulcast.strict(), pytest.raises(simulcast.BroadcastError):
        simulcast.add(x, np.ones(6))
    outer = simulcast.multiply(da.ones((50_000, 1), chunks=50_000), da.ones((1, 50_000), chunks=50_000))
    assert max(outer.chunks[0]) * max(outer.chunks[1]) * 8 <= _dask.LIMIT


def test_policies_are_asked_once_and_of_the_whole():
    x, row = da.ones((4, 6), chunks=3), da.ones(6, chunks=2)
    own = np.ones((4, 6)), np.ones(6)
    calls = {
        "add": lambda x, row: simulcast.add(x, row),
        "clip": lambda x, row: simulcast.clip(x, 0, row),
        "evaluate": lambda x, row: simulcast.evaluate("x * 2 + row", x=x, row=row),
        "steps": lambda x, row: simulcast.evaluate("(x * 2 + row).sum()", x=x, row=row),
        "arrays": lambda x, row: simulcast.broadcast_arrays(x, row),
    }
    for call in calls.values():
        with simulcast.record() as expected:
            call(*own)
        with simulcast.record() as broadcasts:
            dask.compute(call(x, row), scheduler="sync")
        assert [tuple(own)[:4] for own in broadcasts] == [tuple(own)[:4] for own in expected]
        with simulcast.strict():
            with pytest.raises(simulcast.BroadcastError) as theirs:
                call(*own)
            with pytest.raises(simulcast.BroadcastError) as ours:
                call(x, row)
        assert str(ours.value) == str(theirs.value) and ours.value.shapes == theirs.value.shapes
    lazy = simulcast.add(x, row[None])
    with simulcast.using("exact"):
        assert (lazy.compute(scheduler="sync") == 2).all()


def test_errors_of_expressions_are_those_of_arrays():
    x, row, truth = np.ones((4, 6)), np.ones(4), np.ones(6, bool)
    lazily = lambda own: da.from_array(own, chunks=3)
    for text, operands in [
        ("x - row", {"x": x, "row": row}),
        ("(x - row).sum(axis=0)", {"x": x, "row": row}),
        ("(t - t).sum()", {"t": truth}),
        ("x.sum(axis=2)", {"x": x}),
        ("x + nosuch", {"x": x}),
        ("x[:, :, :]", {"x": x}),
    ]:
        with pytest.raises(ValueError) as theirs:
            simulcast.evaluate(text, **operands)
        with pytest.raises(ValueError) as ours:
            simulcast.evaluate(text, **{name: lazily(own) for name, own in operands.items()})
        assert type(ours.value) is type(theirs.value) and str(ours.value) == str(theirs.value)


def test_what_has_no_gradient_is_said_at_once():
    x = da.ones((4, 6), chunks=3)
    for name, operands in [
        ("nosuch", (x, x)),
        ("add", (x,)),
        ("less", (x, x)),
        ("multiply", (x.astype("c16"), x)),
        ("multiply", (x.astype(int), x.astype(int))),
    ]:
        with pytest.raises((TypeError, ValueError)) as theirs:
            simulcast.vjp(name, [own.compute() for own in operands], np.ones((4, 6)))
        with pytest.raises(type(theirs.value)) as ours:
            simulcast.vjp(name, operands, np.ones((4, 6)))
        assert str(ours.value) == str(theirs.value)


def test_gradients_are_lazy():
    x, w, grad = np.arange(1.0, 13).reshape(3, 4), np.arange(1.0, 5), np.arange(12.0).reshape(3, 4)
    for name, own in [("multiply", (x, w)), ("divide", (x, w)), ("where", (x > 4, x, w)), ("clip", (x, None, w))]:
        lazy = [da.from_array(own[0], chunks=2), *own[1:]]
        for ours, theirs in zip(simulcast.vjp(name, lazy, grad), simulcast.vjp(name, own, grad)):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                assert isinstance(ours, da.Array) and np.allclose(ours.compute(scheduler="sync"), theirs)
    with simulcast.record() as broadcasts:
        simulcast.vjp("multiply", (da.from_array(x, chunks=2), w), grad)
    assert [(own.function, own.shapes) for own in broadcasts] == [("multiply", ((3, 4), (4,)))]
    with simulcast.strict(), pytest.raises(simulcast.BroadcastError):
        simulcast.vjp("multiply", (da.from_array(x, chunks=2), w), grad)
    half = simulcast.vjp("multiply", (da.ones((64, 64), chunks=8, dtype="f2"), np.float16(1)), np.ones((64, 64), "f2"))[1]
    assert half.dtype == np.float16 and float(half.compute(scheduler="sync")) == 4096


def test_xarray_calls_functions():
    import xarray

    x = xarray.DataArray(da.ones((4, 6), chunks=(2, 6)), dims=("h", "w"))
    y = xarray.DataArray(np.arange(4.0), dims=("h",))
    ours = xarray.apply_ufunc(simulcast.add, x, y, dask="allowed")
    assert isinstance(ours.data, da.Array) and (ours.compute() == x.compute() + y).all()


def test_functions_on_worker_processes():
    x = da.from_array(np.arange(6.0).reshape(2, 3), chunks=1)
    with dask.config.set(scheduler="processes", num_workers=2):
        assert simulcast.evaluate("x * 2 + 1", x=x).compute().tolist() == [[1, 3, 5], [7, 9, 11]]
        assert simulcast.add(x, 1).compute().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_truths_of_other_bytes_are_truths():
    x = np.resize(np.array([2, 0, 1, 255], np.uint8), (6, 7))
    lazy, truth = da.from_array(x.view(bool), chunks=(4, 3)), x != 0
    assert simulcast.logical_xor(lazy, lazy[::-1]).compute().tobytes() == (truth ^ truth[::-1]).tobytes()
    assert simulcast.where(lazy, 1.5, 2.5).compute().tobytes() == np.where(truth, 1.5, 2.5).tobytes()
    assert simulcast.evaluate("x + 1", x=lazy).compute().tobytes() == (truth + 1).tobytes()


def test_threads_are_numbers_from_one_on():
    with pytest.raises(ValueError, match="argument 'threads' is 0"):
        simulcast.add(da.ones(3), 1, threads=0)
