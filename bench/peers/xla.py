"""jax.jit: outputs are allocated by the call, which it does not let anybody else do."""

import jax
import jax.numpy as jnp

from peer import NAMES, THREADS, function, seen, serve, stored, summed_axes

jax.config.update("jax_enable_x64", True)


def call(case):
    if "string" in case["types"] or case["compile"] or case["op"] in ("broadcast_shapes", "broadcast_to"):
        return None
    kinds = [jnp.bfloat16 if kind == "bf16" else None for kind in case["types"]]
    operands = [jnp.asarray(a, dtype=kind) for a, kind in zip(stored(case), kinds)]
    if case["op"] == "copy":
        whole = lambda a: jnp.broadcast_to(a, case["result"])
    elif case["op"] == "sum_to":
        wide = jnp.float32 if case["type"] == "f16" else None
        whole = lambda a: jnp.sum(a, axis=summed_axes(case), dtype=wide)
    elif not case["grad"]:
        whole = function(case, {name: getattr(jnp, name) for name in ("exp", "tanh", "sin", "where", "sum")})
    if case["grad"]:
        own = function(case, {name: getattr(jnp, name) for name in ("log", "mean")})
        loss = jax.jit(jax.value_and_grad(own, argnums=tuple(map(NAMES.index, case["grad"]))))
        return lambda: jax.block_until_ready(loss(*operands))
    # Its arrays have no strides: the order of the axes is part of what is compiled.
    compiled = jax.jit(lambda first, *rest: whole(seen(case, first), *rest))
    return lambda: compiled(*operands).block_until_ready()


serve([("jax", THREADS, call)])
