"""`broadcast_shapes`, `broadcast_to` and `broadcast_arrays` against NumPy, and what NumPy does not do."""

import pickle

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simulcast

sizes = st.sampled_from([0, 1, 1, 1, 2, 3])


@st.composite
def shapes(draw, most=64):
    """Shapes that mostly broadcast: of one result, each with ones, and missing axes on the left."""
    rank = draw(st.one_of(st.integers(0, 5), st.integers(0, most)))
    result = [draw(sizes) if k >= rank - 6 else 1 for k in range(rank)]
    some = []
    for _ in range(draw(st.integers(0, 4))):
        own = [draw(st.sampled_from([size, size, 1])) if size != 1 else 1 for size in result]
        own = own[draw(st.integers(0, rank)) :]
        if own and draw(st.integers(0, 9)) == 0:
            own[draw(st.integers(0, len(own) - 1))] = draw(st.integers(0, 3))
        some.append(tuple(own))
    return some


@st.composite
def arrays(draw, shape):
    """An array of distinct values that are not zero, with any strides."""
    step = [draw(st.sampled_from([1, 1, -1, 2, -2])) if k >= len(shape) - 4 else 1 for k in range(len(shape))]
    whole = [size * abs(own) for size, own in zip(shape, step)]
    order = draw(st.sampled_from("CF"))
    dtype = draw(st.sampled_from(["f8", "i2", ">i4", "c16", "U3", "O", "V5"]))
    values = np.arange(1, int(np.prod(whole)) + 1)
    if dtype == "V5":
        base = np.zeros(len(values), dtype=[("a", "i1"), ("b", "i4")])
        base["b"] = values
        base = base["b"]
    else:
        base = values.astype(dtype)
    return base.reshape(whole, order=order)[(..., *[slice(None, None, own) for own in step])]


def outcome(function, *args):
    try:
        return function(*args)
    except ValueError:
        return ValueError


def numpys_shape(*shapes):
    """The shape of NumPy's operators, which take 64 axes; its `broadcast_shapes` takes 32."""
    result = np.zeros((), bool)
    for shape in shapes:
        result = result | np.zeros(shape, bool)
    return result.shape


@given(shapes())
def test_shapes_are_numpys(shapes):
    ours = outcome(simulcast.broadcast_shapes, *shapes)
    assert ours == outcome(numpys_shape, *shapes)
    if all(len(shape) <= 32 for shape in shapes):
        assert ours == outcome(np.broadcast_shapes, *shapes)


@pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
@given(st.data())
def test_arrays_are_numpys(data):
    xs = [data.draw(arrays(shape)) for shape in data.draw(shapes())]
    ours = outcome(simulcast.broadcast_arrays, *xs)
    shape = outcome(numpys_shape, *[x.shape for x in xs])
    if shape is ValueError:
        assert ours is ValueError
        return
    theirs = [np.broadcast_to(x, shape) for x in xs]
    assert isinstance(ours, tuple) and len(ours) == len(theirs)
    for x, own, their in zip(xs, ours, theirs):
        same(x, own, their)


@given(st.data())
def test_views_are_numpys(data):
    [target, *own] = data.draw(shapes().filter(bool))
    x = data.draw(arrays(own[0] if own else target))
    theirs, ours = outcome(np.broadcast_to, x, target), outcome(simulcast.broadcast_to, x, target)
    if theirs is ValueError:
        assert ours is ValueError
        return
    same(x, ours, theirs)


def same(x, ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert not ours.flags.writeable and ours.flags.aligned == theirs.flags.aligned
    assert (ours == theirs).all()
    if ours.size:
        assert np.shares_memory(ours, x)
        moved = [(own, their) for own, their, size in zip(ours.strides, theirs.strides, ours.shape) if size > 1]
        assert all(own == their for own, their in moved)


@pytest.mark.parametrize(
    "x",
    [
        np.array(["long enough to live on the heap of the dtype", "b"], dtype=np.dtypes.StringDType()),
        np.array(["ab", "c"]),
        np.array([{"a": 1}, (2,)], dtype=object),
        np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i1"), ("b", "f8")]),
        np.array([1.5, 2.5], dtype=ml_dtypes.bfloat16),
        np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"),
        np.array([b"x", b"yz"]),
        np.array([True, False]),
        np.array([1, 2], dtype="longdouble"),
    ],
    ids=lambda x: str(x.dtype),
)
def test_any_dtype_is_shown_and_outlives_its_array(x):
    expected = np.broadcast_to(x, (3, 2)).copy()
    ours = simulcast.broadcast_to(x, (3, 2))
    assert ours.dtype == x.dtype and np.shares_memory(ours, x)
    del x
    assert (ours == expected).all()
    assert (ours.copy() == expected).all()


def test_ints_and_nothing_are_shapes():
    assert simulcast.broadcast_shapes() == ()
    assert simulcast.broadcast_shapes(2, (3, 2)) == np.broadcast_shapes(2, (3, 2)) == (3, 2)
    assert simulcast.broadcast_shapes(np.int64(2), [3, np.int8(2)]) == (3, 2)
    assert simulcast.broadcast_arrays() == ()
    assert simulcast.broadcast_to(5, 3).tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("shapes", "error"),
    [
        ([(-1,)], ValueError),
        ([(2, -1), (3,)], ValueError),
        ([(2**63,)], ValueError),
        ([(2.0,)], TypeError),
        ([2.0], TypeError),
        ([("3",)], TypeError),
    ],
)
def test_bad_shapes_are_numpys_errors(shapes, error):
    for function in (simulcast.broadcast_shapes, np.broadcast_shapes):
        with pytest.raises(error):
            function(*shapes)


def test_what_is_no_shape_is_a_type_error():
    for bad in ["3", None, 1j, object()]:
        with pytest.raises(TypeError):
            simulcast.broadcast_shapes(bad)
    with pytest.raises(TypeError):
        simulcast.broadcast_to([1], (None,))
    with pytest.raises(TypeError, match="a shape must be given"):
        simulcast.broadcast_to([1])


def test_what_an_index_raises_is_raised():
    class Size:
        def __index__(self):
            raise RuntimeError("not yet")

    for call in (simulcast.broadcast_shapes, np.broadcast_shapes):
        with pytest.raises(RuntimeError, match="not yet"):
            call((Size(), 2))


def test_size_0_takes_1_with_it_and_nothing_else():
    assert simulcast.broadcast_shapes((1,), (0,)) == (0,)
    with pytest.raises(simulcast.BroadcastError):
        simulcast.broadcast_shapes((0,), (3,))


def test_more_axes_than_an_array_has_are_still_a_shape():
    assert simulcast.broadcast_shapes((1,) * 100, (2,)) == (1,) * 99 + (2,)
    with pytest.raises(ValueError):
        simulcast.broadcast_to([1], (1,) * 65)


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        ([(None,), (1,)], (None,)),
        ([(None,), (4,)], (4,)),
        ([(None, 3), (None, 1)], (None, 3)),
        ([(0,), (None,)], (0,)),
        ([(None,), ()], (None,)),
    ],
)
def test_unknown_sizes_hold_for_every_size(shapes, result):
    assert simulcast.broadcast_shapes(*shapes) == result
    for size in range(4):
        known = [tuple(size if own is None else own for own in shape) for shape in shapes]
        theirs = outcome(np.broadcast_shapes, *known)
        if theirs is not ValueError:
            assert all(own in (None, their) for own, their in zip(result, theirs))


def test_rules():
    a, b = np.arange(1, 7).reshape(2, 3), np.array([10, 20])
    x, y = simulcast.broadcast_arrays(a, b, rule="pdpd:0")
    assert (x == a).all() and (y == b[:, None].repeat(3, 1)).all()
    assert (simulcast.broadcast_to(b, (2, 3), rule=simulcast.pdpd(0)) == y).all()
    assert (simulcast.broadcast_to(b, rule=simulcast.axes((2, 3), (1,))) == y).all()
    assert (simulcast.broadcast_to(b, (2, 3), rule=simulcast.mapping((2, 3), (0,))) == y).all()
    assert simulcast.broadcast_to(a, (4, 1, 1), rule=simulcast.bidirectional((4, 1, 1))).shape == (4, 2, 3)
    (x, y) = simulcast.broadcast_arrays(a, a.T, rule=simulcast.named(("h", "w"), ("w", "h")))
    assert (x == a).all() and (y == a).all()
    with pytest.raises(simulcast.BroadcastError):
        simulcast.broadcast_arrays(a, a[:1], rule="exact")
    with pytest.raises(simulcast.BroadcastError):
        simulcast.broadcast_shapes((1, 3), (2, 3), rule=simulcast.unidirectional())
    with pytest.raises(ValueError, match="needs names"):
        simulcast.broadcast_shapes((1,), rule="named")
    with pytest.raises(ValueError, match="there is no rule"):
        simulcast.broadcast_shapes((1,), rule="nosuch")
    with pytest.raises(ValueError, match="there is no axis -1"):
        simulcast.mapping((2, 3), (-1,))
    with pytest.raises(TypeError):
        simulcast.broadcast_shapes((1,), rule=3)


@pytest.mark.parametrize(
    "rule",
    [simulcast.Rule("numpy"), simulcast.pdpd(1), simulcast.axes((2, 3), (0,)), simulcast.named(("b",), ("b", "c"))],
    ids=repr,
)
def test_rules_pickle_compare_and_read_back(rule):
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert eval(repr(rule)) == rule and hash(eval(repr(rule))) == hash(rule)


def test_a_rule_that_is_suggested_works_as_it_is_written():
    for call in [
        lambda **rule: simulcast.broadcast_shapes((1, 2), (4,), **({"rule": "pdpd:0"} | rule)),
        lambda **rule: simulcast.broadcast_shapes((2,), (4, 3, 1, 1), **({"rule": "pdpd:2"} | rule)),
        lambda **rule: simulcast.broadcast_shapes((2, 3), (3,), **({"rule": "exact"} | rule)),
        lambda **rule: simulcast.broadcast_to(np.ones(4), (1,), **rule).shape,
    ]:
        with pytest.raises(simulcast.BroadcastError) as caught:
            call()
        words = [text.split(maxsplit=3) for text in caught.value.suggestions if text.startswith("rule ")]
        assert words, caught.value
        for _, rule, gives, shape in words:
            assert gives == "gives" and call(rule=rule) == eval(shape)


def test_nobody_is_told_to_change_a_rule_that_is_not_theirs():
    for call, name in [
        (lambda: simulcast.vjp("add", (np.ones(3), np.ones(3)), 1.0), "gradient"),
        (lambda: simulcast.add(np.ones((2, 3)), np.ones(3), out=np.ones(3)), "result"),
        (lambda: simulcast.sum_to(np.ones((2, 3)), (3, 2)), "shape"),
    ]:
        with pytest.raises(simulcast.BroadcastError) as caught:
            call()
        assert caught.value.suggestions == () and name in caught.value.names


def test_the_first_axis_comes_first():
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.broadcast_shapes((2, 1), (3, 0, 1), (0, 4, 3, 2))
    assert caught.value.axis == 1


def test_the_error_is_the_commands_and_pickles():
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.broadcast_arrays(np.ones((2, 3, 4)), np.ones((2, 4)))
    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, ValueError) and type(error) is simulcast.BroadcastError
    assert str(error) == str(caught.value)
    assert str(error).startswith("E1: A (2, 3, 4) and B (2, 4) do not broadcast under rule numpy: axis 1 (-2)")
    assert (error.code, error.axis, error.operands, error.rule) == ("E1", 1, (0, 1), "numpy")
    assert error.shapes == ((2, 3, 4), (2, 4)) and error.names == ("A", "B")
    assert error.suggestions[0] == "B[:, None, :] is (2, 1, 4), result (2, 3, 4)"
    # The suggestion does work.
    assert np.broadcast_shapes((2, 3, 4), np.ones((2, 4))[:, None, :].shape) == (2, 3, 4)
