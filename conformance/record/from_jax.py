"""JAX: `broadcast_shapes`, `add` that must not promote ranks, `broadcast_to`, `lax.broadcast_in_dim`."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from common import (
    REFUSED, ask, elements, few_pairs, lists, mappings, pairs, plainly, targets, valued, write,
)


def counted(own):
    return jnp.asarray(np.arange(elements(own), dtype=np.int32).reshape(own))


def run(case, *operands):
    if case["op"] == "add":
        with jax.numpy_rank_promotion("raise"):
            return jnp.add(*operands)
    if case["op"] == "broadcast_to":
        return jnp.broadcast_to(operands[0], case["target"])
    return lax.broadcast_in_dim(operands[0], case["shape"], case["axes_mapping"])


def answer(case):
    own = case["shapes"]
    try:
        if case["op"] == "broadcast_shapes":
            out = jnp.broadcast_shapes(*map(tuple, own))
        else:
            given = [jax.ShapeDtypeStruct(tuple(one), np.int32) for one in own]
            out = jax.eval_shape(lambda *operands: run(case, *operands), *given).shape
    except (TypeError, ValueError):
        yield {"out": REFUSED}
        return
    yield {"out": list(out)}
    if not own:
        return
    if case["op"] in ("broadcast_to", "broadcast_in_dim") and valued(case, out, 3):
        yield {"from": [np.asarray(run(case, counted(own[0]))).ravel().tolist()]}
    if case["op"] == "broadcast_in_dim" and valued(case, out, 12):
        back = jax.vjp(lambda one: run(case, one), jnp.zeros(own[0], dtype=np.float32))[1]
        delta = np.arange(elements(out), dtype=np.float32).reshape(out)
        yield {"sums": [np.asarray(back(delta)[0]).ravel().astype(int).tolist()]}
    if case["op"] == "broadcast_shapes" and valued(case, out, 9):
        yield {"from": [np.asarray(one).ravel().tolist() for one in jnp.broadcast_arrays(*map(counted, own))]}


def cases():
    for own in [[]] + pairs() + [[[2, 3]]] + lists("several", 400, 3, 5):
        yield ask("broadcast_shapes", "numpy", own)
    for own in few_pairs():
        yield ask("add", "numpy", own, level="same-rank")
    for own, target in targets():
        yield ask("broadcast_to", "to", [own], target=target)
    for own, target, axes in mappings():
        yield ask("broadcast_in_dim", "mapping", [own], shape=target, axes_mapping=axes)


write("jax", {"jax": jax.__version__}, plainly(cases(), answer))
