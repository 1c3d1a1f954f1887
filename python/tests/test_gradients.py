"""Gradients of expressions, and several results of one pass: `grad`, `value_and_grad`, `evaluate("a; b")`."""

import pickle
import warnings

import numpy as np
import pytest
from random_expressions import SHAPES, expression, operands

import simulcast


def difference(text, given, name, along):
    """The slope of an expression's sum along a direction, by central differences of its values in float64; None near a kink."""
    def at(step):
        moved = {**given, name: given[name] + step * along}
        return float(np.sum(simulcast.evaluate(text, **moved)))

    slopes = [(at(step) - at(-step)) / (2 * step) for step in (1e-5, 1e-6)]
    near = abs(slopes[0] - slopes[1]) <= 1e-5 * (1 + abs(slopes[0]))
    return slopes[0] if near else None


@pytest.mark.parametrize("seed", range(60))
def test_gradients_are_what_differences_of_values_say(seed):
    random, compared = np.random.default_rng(seed), 0
    for _ in range(5):
        text = f"sum({expression(random, 4)} + 0 * a)"
        given = operands(random)
        names = simulcast.compile(text).operands
        given = {name: given[name] for name in names}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, gradients = simulcast.value_and_grad(text, wrt=names)(**given)
            assert np.allclose(value, simulcast.evaluate(text, **given), rtol=1e-12)
            for name, gradient in zip(names, gradients):
                assert np.shape(gradient) == SHAPES[name] and gradient.dtype == np.float64
                along = random.standard_normal(SHAPES[name])
                slope = difference(text, given, name, along)
                if slope is not None:
                    compared += 1
                    assert np.sum(gradient * along) == pytest.approx(slope, rel=1e-4, abs=1e-5), (text, name)
    assert compared > 5


@pytest.mark.parametrize("rule, shapes", [
    ("exact", [(3, 4), (3, 4)]),
    (simulcast.pdpd(axis=0), [(3, 4), (3,)]),
    (simulcast.paddle(axis=0), [(3, 4), (3,)]),
    (simulcast.unidirectional(), [(3, 4), (1, 4)]),
    (simulcast.named(("h", "w"), ("w",)), [(3, 4), (4,)]),
])
def test_every_rule_has_gradients(rule, shapes):
    random = np.random.default_rng(0)
    x, w, g = (random.standard_normal(shape) for shape in [*shapes, shapes[0]])
    pullback = simulcast.grad("x * w * w", wrt=["x", "w"], gradient="g")
    if isinstance(rule, simulcast.Rule) and rule.kind == "named":
        wide, back = w, 0
    else:
        wide = simulcast.broadcast_arrays(x, w, rule=rule)[1]
        back = None
    for_x, for_w = pullback(x=x, w=w, g=g, rule=rule) if back is None else pullback(x=x, w=w, g=g)
    assert np.allclose(for_x, g * wide * wide)
    whole = 2 * g * x * wide
    expected = simulcast.sum_to(whole, w.shape, rule=rule if back is None else "numpy")
    assert for_w.shape == w.shape and np.allclose(for_w, expected)


def gradient(text, **given):
    return simulcast.grad(text, wrt="x")(x=np.array(given.pop("x"), dtype=np.float64), **given)


def test_conventions_are_as_stated():
    ties = [1.0, 2.0, 2.0, 0.0]
    assert gradient("max(x)", x=ties).tolist() == [0, 0.5, 0.5, 0]
    assert gradient("min(x)", x=ties).tolist() == [0, 0, 0, 1]
    assert gradient("sum(maximum(x, 2))", x=ties).tolist() == [0, 0.5, 0.5, 0]
    assert gradient("sum(clip(x, 0.5, 2))", x=ties).tolist() == [1, 0.5, 0.5, 0]
    for_x, for_low, for_high = simulcast.vjp("clip", (np.array(ties), np.array(0.5), np.array(2.0)), np.ones(4))
    assert for_x.tolist() == [1, 0.5, 0.5, 0] and (for_low, for_high) == (1, 1)
    assert gradient("sum(abs(x))", x=[-1.0, 0.0, 2.0]).tolist() == [-1, 0, 1]
    assert gradient("prod(x)", x=[3.0, 0.0, 2.0]).tolist() == [0, 6, 0]
    assert gradient("prod(x)", x=[0.0, 0.0, 2.0]).tolist() == [0, 0, 0]
    assert gradient("sum(where(x > 1, x * 3, 0))", x=ties).tolist() == [0, 3, 3, 0]
    assert gradient("sum(floor(x) + sign(x))", x=ties).tolist() == [0, 0, 0, 0]
    assert gradient("mean(x)", x=np.ones((2, 3))).tolist() == [[1 / 6] * 3] * 2


def test_gradients_have_the_types_of_operands():
    x, k = np.ones((2, 3), np.float32), np.arange(3)
    assert simulcast.grad("sum(x * k)", "x")(x=x, k=k).dtype == np.float32
    assert simulcast.grad("sum(x * s)", "s")(x=x, s=2.0).dtype == np.float32  # as what it meets
    half = simulcast.grad("mean(x * x)", "x")(x=np.full(1000, 3, np.float16))
    assert half.dtype == np.float16 and np.allclose(half, 0.006, rtol=1e-3)
    with pytest.raises(ValueError, match="only floats have gradients"):
        simulcast.grad("sum(x * k)", "k")(x=x, k=k)
    with pytest.raises(ValueError, match="only floats have gradients"):
        simulcast.grad("sum(k)", "k")(k=k > 1)
    with pytest.raises(ValueError, match="only floats"):
        simulcast.grad("sum(x * 1j)", "x")(x=x)


def test_value_and_gradients_come_from_one_pass():
    x, m, s = np.ones((300, 200)), np.zeros(200), np.ones((300, 1))
    loss = simulcast.value_and_grad("mean((x - m) ** 2 / s + log(s))", wrt=["m", "s"])
    visited = loss.passes(x=x, m=m, s=s)
    assert visited.count((300, 200)) == 1, visited
    assert all(np.prod(shape) <= 300 for shape in visited if shape != (300, 200)), visited
    value, (for_m, for_s) = loss(x=x, m=m, s=s)
    assert value == 1 and for_m.shape == (200,) and for_s.shape == (300, 1)
    assert np.allclose(for_m, -2 / 200) and np.allclose(for_s, 0)


def test_a_result_that_is_no_number_takes_its_gradient():
    x, w = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"\(2, 3\), which is not one number.*gradient="):
        simulcast.grad("x * w", "w")(x=x, w=w)
    pullback = simulcast.compile("x * w").value_and_grad(["w"], gradient="g")
    assert pullback.operands == ("x", "w", "g")
    value, (for_w,) = pullback(x=x, w=w, g=np.ones((2, 3), np.float32))
    assert (value == x * w).all() and for_w.tolist() == [3, 5, 7]
    for wrong in ({"g": np.ones(3)}, {"g": np.ones((2, 3)) * 1j}, {}):
        with pytest.raises((ValueError, TypeError)):
            pullback(x=x, w=w, **wrong)
    both = simulcast.grad(["x * w", "sum(w)"], "w", gradient=["g", "h"])
    assert both(x=x, w=w, g=np.ones((2, 3)), h=10.0).tolist() == [13, 15, 17]


def test_gradients_of_gradients():
    x = np.array([1.0, 2.0, 3.0])
    twice = simulcast.grad("sum(x ** 3)", "x").grad("x", gradient="v")
    assert twice(x=x, v=np.array([1.0, 10.0, 0.0])).tolist() == [6, 120, 0]
    both = simulcast.grad("x * w", ["x", "w"], gradient="g").grad(["g", "w"], gradient=["p", "q"])
    for_g, for_w = both(x=x, w=2.0, g=x, p=np.ones(3), q=1.0)
    assert for_g.tolist() == [3, 4, 5] and for_w == 6


def test_several_results():
    x, m = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    added, product = simulcast.evaluate("x + m; sum(x * m)", x=x, m=m)
    assert (added == x + m).all() and product == (x * m).sum() and isinstance(product, np.float64)
    several = simulcast.compile(["x + m", "x.mean(axis=0)", "m > 1"])
    assert several.operands == ("x", "m") and str(several) == "x + m; mean(x, axis=0); m > 1"
    assert [result.dtype.char for result in several(x=x, m=m)] == ["d", "d", "?"]
    assert simulcast.evaluate(["x"], x=x)[0].tolist() == x.tolist()
    assert simulcast.evaluate("t == 'a;b'", t=np.array(["a;b", "c"])).tolist() == [True, False]
    texts = simulcast.evaluate("t + u; t == u; n + 1", t=np.array(["a", "b"]), u="b", n=[1, 2])
    assert [result.tolist() for result in texts] == [["ab", "bb"], [False, True], [2, 3]]
    assert [result.dtype for result in simulcast.evaluate("x; m", x=x, m=m, dtype=np.float32)] == [np.float32] * 2
    with pytest.raises(TypeError, match="casting"):
        simulcast.evaluate("x; m", x=x, m=m, dtype=np.int32)
    with pytest.raises(ValueError, match="as a list"):
        simulcast.compile("x; m")
    with pytest.raises(simulcast.ExpressionError, match="expected an operand"):
        simulcast.evaluate("x; ", x=x)
    with pytest.raises(simulcast.BroadcastError) as error:
        simulcast.evaluate("x; x + m", x=x, m=np.ones(2))
    assert "1 | x; x + m" in str(error.value)
    with pytest.raises(ValueError, match="negative"):
        simulcast.evaluate("k; k ** n", k=np.arange(3), n=-np.ones(3, int))


def test_out_gets_each_result():
    x, m = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    whole, total = np.empty((2, 3)), np.empty(())
    results = simulcast.evaluate("x * m; sum(x)", x=x, m=m, out=[whole, total])
    assert results[0] is whole and results[1] is total and total == 15 and (whole == x * m).all()
    stretched, strided = np.empty((4, 2, 3)), np.empty((3, 2)).T
    simulcast.evaluate("x + m; x - m", x=x, m=m, out=(stretched, strided))
    assert (stretched == x + m).all() and (strided == x - m).all()
    own = x.copy()
    simulcast.evaluate("x + 1; x * 2", x=own, out=[own, None])
    assert (own == x + 1).all()
    one = np.empty((2, 3))
    with pytest.raises(ValueError, match="are the same array"):
        simulcast.evaluate("x + 1; x * 2", x=x, out=[one, one])
    for_m = np.empty(3)
    assert simulcast.grad("sum(x * m)", "m")(x=x, m=m, out=for_m) is for_m and for_m.tolist() == [3, 5, 7]
    value, (kept,) = simulcast.value_and_grad("sum(x * m)", ["m"])(x=x, m=m, out=[None, for_m])
    assert kept is for_m and value == (x * m).sum()
    with pytest.raises(ValueError, match="2 results, but 1 arrays"):
        simulcast.evaluate("x; m", x=x, m=m, out=[one])
    with pytest.raises(TypeError, match="casting"):
        simulcast.evaluate("x; m", x=x, m=m, out=[np.empty((2, 3), int), None])
    with pytest.raises(ValueError):
        simulcast.evaluate("x; m", x=x, m=m, out=[np.empty(2), None])


def test_threads_do_not_change_bits():
    random = np.random.default_rng(1)
    x, m = random.standard_normal((700, 900)), random.standard_normal(900)
    loss = simulcast.value_and_grad("mean(tanh(x - m) ** 2)", wrt=["x", "m"])
    one, many = loss(x=x, m=m, threads=1), loss(x=x, m=m, threads=4)
    assert one[0] == many[0] and all((a == b).all() for a, b in zip(one[1], many[1]))
    with pytest.raises(ValueError, match="threads"):
        loss(x=x, m=m, threads=0)


def test_they_are_kept_and_pickled():
    text = "sum(x * m)"
    assert simulcast.grad(text, ["m"]) is simulcast.grad(text, ["m"])
    assert simulcast.grad(text, ["m"]) is not simulcast.grad(text, "m")
    for own in (
        simulcast.grad(text, ["x", "m"]), simulcast.value_and_grad([text, "m"], "m", gradient=["g", "h"], fast_math=True),
        simulcast.compile(["x + m", "'a;b' == 'c'"]), simulcast.compile("x * m").grad("x", gradient="g").grad(["g"], gradient="v"),
    ):
        again = pickle.loads(pickle.dumps(own))
        assert repr(again) == repr(own) and again.operands == own.operands and again.fast_math == own.fast_math
    assert repr(simulcast.value_and_grad("x * m", "m", gradient="g")) == (
        'simulcast.compile("x * m").value_and_grad("m", gradient="g")'
    )


def test_wrong_names_say_so():
    with pytest.raises(ValueError, match="wrt: the expression has no operand `z`, it has x, m"):
        simulcast.grad("x * m", "z")
    with pytest.raises(TypeError, match="wrt is the name of an operand or a list of names"):
        simulcast.grad("x * m", 3)
    with pytest.raises(ValueError, match="another operand has the name `x`"):
        simulcast.grad("x * m", "m", gradient="x")
    with pytest.raises(ValueError, match="there are 1 results, but 2 names"):
        simulcast.grad("x * m", "m", gradient=["g", "h"])
    with pytest.raises(TypeError, match="dtype"):
        simulcast.grad("sum(x)", "x")(x=np.ones(3), dtype=np.float32)
    with pytest.raises(TypeError, match="no operand `y`"):
        simulcast.grad("sum(x)", "x")(x=np.ones(3), y=1)


def test_policies_judge_what_they_compute():
    with simulcast.strict("exact"), pytest.raises(simulcast.BroadcastError):
        simulcast.grad("sum(x * m)", "m")(x=np.ones((2, 3)), m=np.ones(3))
    with simulcast.record() as seen:
        simulcast.evaluate("x * m; x", x=np.ones((2, 3)), m=np.ones(3))
    assert len(seen) == 1


def test_dask_arrays_stay_lazy_and_have_no_gradients():
    da = pytest.importorskip("dask.array")
    x = da.ones((4, 4), chunks=2)
    plus, total = simulcast.evaluate("x + 1; sum(x)", x=x)
    assert plus.chunks == ((2, 2), (2, 2)) and float(total.compute()) == 16
    with pytest.raises(TypeError, match="Dask"):
        simulcast.grad("sum(x)", "x")(x=x)


def test_empty_operands_have_empty_gradients():
    value, (for_x, for_m) = simulcast.value_and_grad("sum(x * m)", ["x", "m"])(x=np.ones((0, 3)), m=np.ones(3))
    assert value == 0 and for_x.shape == (0, 3) and for_m.tolist() == [0, 0, 0]


def test_linear_regression_with_normalisation_converges():
    random = np.random.default_rng(3)
    x = random.normal(5, [1.0, 3.0, 0.5], (500, 3))
    y = (x - x.mean(0)) / x.std(0) @ [2.0, -1.0, 0.5] + 4
    loss = simulcast.value_and_grad(
        "mean((y - b - sum((x - m) / s * w, axis=1)) ** 2)", wrt=["w", "b"]
    )
    w, b = np.zeros(3), np.zeros(())
    for _ in range(200):
        value, (for_w, for_b) = loss(x=x, y=y, m=x.mean(0), s=x.std(0), w=w, b=b)
        w, b = w - 0.1 * for_w, b - 0.1 * for_b
    assert value < 1e-12 and np.allclose(w, [2, -1, 0.5], atol=1e-6) and np.isclose(b, 4)


def test_gaussian_likelihood_finds_mean_and_deviation():
    random = np.random.default_rng(4)
    x = random.normal([1.0, -2.0, 3.0], [0.5, 1.0, 2.0], (4000, 3))
    loss = simulcast.value_and_grad("mean(sum(0.5 * ((x - m) / exp(t)) ** 2 + t, axis=1))", wrt=["m", "t"])
    m, t = np.zeros(3), np.zeros(3)
    for _ in range(400):
        _, (for_m, for_t) = loss(x=x, m=m, t=t)
        m, t = m - 0.2 * for_m, t - 0.2 * for_t
    assert np.allclose(m, x.mean(0), atol=1e-4) and np.allclose(np.exp(t), x.std(0), atol=1e-4)
