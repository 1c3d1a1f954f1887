"""`simulcast.jax.check`: what it finds in the jaxpr of a step, with JAX itself."""

import sys

import pytest

jax = pytest.importorskip("jax", reason="JAX is not installed: cargo xtask test torch")

import jax.numpy as jnp

import simulcast
import simulcast.jax
from simulcast.jax import check

pytestmark = pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
PRED, TARGET = jnp.ones((8, 1)), jnp.ones(8)


def square(pred, target):
    return ((pred - target) ** 2).mean()


def test_a_loss_is_found_at_its_line_with_names_and_fixes():
    def step(w, x, batch):
        pred = x @ w
        return ((pred - batch["y"]) ** 2).mean()

    with pytest.warns(simulcast.BroadcastWarning, match="SC102"):
        found = check(step, jnp.ones((3, 1)), jnp.ones((8, 3)), {"y": TARGET})
    (own,) = found.confirmed
    assert own.place.file == __file__ and own.shapes == [((8, 1), (8,))] and own.function == "subtract"
    if sys.version_info >= (3, 11):
        assert own.names == ("pred", "batch['y']")
        assert [fix.expression for fix in own.fixes] == ["batch['y'][:, None]", "pred[:, 0]"]


@pytest.mark.parametrize(
    "step",
    [
        square,
        jax.jit(square),
        jax.grad(lambda p, t: ((p - t) ** 2).mean()),
        lambda p, t: jnp.abs(p - t).sum(),
        lambda p, t: jnp.where(t > 0, p, t).sum(),
        lambda p, t: jnp.maximum(p, t).mean(),
        lambda p, t: jnp.mean(jnp.square(jnp.subtract(p, t))),
        lambda p, t: jnp.mean((p > t).astype(jnp.float32)),
        lambda p, t: jax.vmap(lambda s: ((s * p - t) ** 2).mean())(jnp.ones(2)).sum(),
        lambda p, t: jax.lax.fori_loop(0, 3, lambda _, c: c + ((p - t) ** 2).mean(), 0.0),
    ],
)
def test_kinds(step):
    assert check(step, PRED, TARGET).confirmed


def test_what_is_right_is_not_found():
    def step(w, x, y, scale):
        h = jnp.tanh(x @ w + scale)
        h = (h - h.mean(-1, keepdims=True)) / h.std(-1, keepdims=True)
        row = y[None, :]
        square = y.reshape(8, 1) * row
        return ((h[:, 0] - y) ** 2).mean() + jnp.where(y > 0, y, 0.0).sum() + square.sum()

    found = check(step, jnp.ones((3, 5)), jnp.ones((8, 3)), TARGET, jnp.ones(5))
    assert not found.findings


def test_without_a_reduction_it_is_possible_and_what_is_written_out_is_less():
    assert [own.certainty for own in check(lambda p, t: p * t, PRED, TARGET).findings] == ["possible"]
    assert not check(lambda t: t[:, None] * t, TARGET).findings
    assert not check(lambda t: (t[:, None] * t).sum(), TARGET).confirmed


def test_policies_and_shapes_without_arrays():
    given = jax.ShapeDtypeStruct((8, 1), jnp.float32), jax.ShapeDtypeStruct((8,), jnp.float32)
    with pytest.raises(simulcast.BroadcastError, match="SC102"):
        check(square, *given, policy="SC102=deny")
    with simulcast.using("all=allow"):
        check(square, *given)
    assert not check(square, *given, exclude=["tests/*"]).findings
    with pytest.raises(ValueError, match="there is no"):
        check(square, *given, policy="loud")
    assert "test_jax.py" in check(square, *given).report("github")


MANY, TARGETS = jnp.ones((4, 8, 1)), jnp.ones((4, 8))


@pytest.mark.parametrize(
    "step, operands",
    [
        (jax.vmap(square), (MANY, TARGETS)),
        (jax.vmap(square, in_axes=(0, None)), (MANY, TARGET)),
        (jax.vmap(square, in_axes=(None, 0)), (PRED, TARGETS)),
        (jax.vmap(square, in_axes=-1), (jnp.ones((8, 1, 4)), jnp.ones((8, 4)))),
        (jax.vmap(jax.vmap(square)), (MANY[None], TARGETS[None])),
        (jax.jit(jax.vmap(jax.jit(square))), (MANY, TARGETS)),
        (jax.vmap(jax.grad(square)), (MANY, TARGETS)),
        (jax.vmap(lambda p, t: jnp.where(p > t, p, t).sum()), (MANY, TARGETS)),
        (lambda p, t: jax.lax.scan(lambda c, x: (c + square(*x), 0.0), 0.0, (p, t)), (MANY, TARGETS)),
        (lambda p, t: jax.lax.cond(True, lambda p, t: (p - t) ** 2, lambda p, t: jnp.zeros((8, 8)), p, t).mean(), (PRED, TARGET)),
        (lambda p, t: jax.lax.cond(True, lambda p, t: jnp.zeros((8, 8)), lambda p, t: (p - t) ** 2, p, t).mean(), (PRED, TARGET)),
    ],
)
def test_within_transforms_shapes_are_those_of_the_program(step, operands):
    (own,) = check(step, *operands).confirmed
    assert own.shapes == [((8, 1), (8,))]


@pytest.mark.parametrize(
    "step, operands",
    [
        (jax.vmap(lambda p, t: ((p[:, 0] - t) ** 2).mean()), (MANY, TARGETS)),
        (jax.vmap(lambda p: ((p - TARGET) ** 2).mean()), (TARGET,)),
        (jax.vmap(lambda p: (p[0] - TARGET).sum()), (PRED,)),
        (lambda x: jax.vmap(lambda p: jax.vmap(lambda q: (p - q) ** 2)(x))(x).sum(), (TARGET,)),
    ],
)
def test_axes_that_vmap_maps_over_meet_nothing(step, operands):
    assert not check(step, *operands).findings
