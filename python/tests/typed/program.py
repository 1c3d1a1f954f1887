"""A program that passes strict checks of types, and runs: all kinds of calls."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
import simulcast

x = np.ones((2, 3))
shape: tuple[int | None, ...] = simulcast.broadcast_shapes((2, 1), 3, rule="numpy")
view = simulcast.broadcast_to(x, (4, 2, 3), rule=simulcast.Rule("numpy"))
first, second = simulcast.broadcast_arrays(x, [1.0])
total = simulcast.add(x, 2.0, out=np.empty((2, 3)), casting="same_kind", dtype="f8", threads=1)
simulcast.add(x, 1, out=(x,))
simulcast.broadcast_to(x, (np.int64(4), 2, 3))
simulcast.broadcast_shapes(np.int64(3), np.array([2, 3]))
value = simulcast.evaluate("x * k", x=x, k=2, local_dict={"x": x}, fast_math=True)
expression: simulcast.Expression = simulcast.compile("x + 1", fast_math=False)
names: tuple[str, ...] = expression.operands
again = expression(x=x, out=None)
both: tuple[NDArray[Any], ...] = simulcast.evaluate(["x + k", "sum(x)"], x=x, k=2, out=[None, np.empty(())])
joint: simulcast.JointExpression[tuple[NDArray[Any], ...]] = simulcast.compile(["x", "x + 1"])
loss = simulcast.value_and_grad("mean(x * w)", wrt=["w"], fast_math=True)
slope: simulcast.JointExpression[tuple[NDArray[Any], ...]] = expression.grad("x", gradient="g").grad(["g"], gradient="h")
values: NDArray[Any] = simulcast.grad(["sum(x)", "sum(x * w)"], "w")(x=x, w=1.0, out=None, threads=1)
meaned, (of_w,) = loss(x=x, w=1.0)
reached: NDArray[Any] = meaned + of_w
visited: list[tuple[int, ...]] = loss.passes(x=x, w=1.0)
gradients = simulcast.vjp(simulcast.clip, (x, None, 1.0), x, rule=simulcast.pdpd(axis=0))
sums = simulcast.sum_to(x, (3,))
totals: NDArray[Any] = simulcast.add(simulcast.exp(x), x) + simulcast.where(x > 0, x, 1)
mean = simulcast.mean(x, axis=(0, 1), keepdims=True, where=x > 0, dtype="f8", rule="numpy")
before: int = simulcast.set_num_threads(simulcast.get_num_threads())
released: int = simulcast.release_memory()
text: str = simulcast.explain(x, "N,3", names=["a", "b"]).svg()

@simulcast.strict()
def checked(k: int) -> int:
    return k

with simulcast.strict("exact", SC101="deny") as policy, simulcast.record() as broadcasts, simulcast.using("numpy"):
    simulcast.check((2, 1), (2, 1), policy=policy, names=["pred", "target"])
    number: int = checked(1)
    lines: list[int] = [broadcast.line for broadcast in broadcasts]
try:
    doubled = simulcast.guard(x) + x
except simulcast.BroadcastError as error:
    axis: int | None = error.axis
    fixes: tuple[simulcast.Fix, ...] = error.suggestions
    expressions: list[str] = [fix.expression for fix in fixes]
rule: simulcast.Rule = simulcast.rules.pdpd(axis=1)
kind: str = rule.kind
target: tuple[int, ...] | None = simulcast.rules.to((2, 3)).target
strictness: str = simulcast.Policy("strict").strictness
actions: dict[str, str] = {code: action for code, action in simulcast.Policy().actions.items()}
