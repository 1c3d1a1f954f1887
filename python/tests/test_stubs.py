"""Types: the stubs are what the module has, and a program that uses all kinds of calls passes a strict check."""

import subprocess
import sys
from pathlib import Path

import simulcast

PROGRAM = """
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
joint: simulcast.JointExpression = simulcast.compile(["x", "x + 1"])
loss = simulcast.value_and_grad("mean(x * w)", wrt=["w"], fast_math=True)
slope: simulcast.JointExpression = expression.grad("x", gradient="g").grad(["g"], gradient="h")
values = simulcast.grad(["sum(x)", "sum(x * w)"], "w")(x=x, w=1.0, out=None, threads=1)
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

with simulcast.strict("exact", SC101="raise") as policy, simulcast.record() as broadcasts, simulcast.using("numpy"):
    simulcast.check((2, 1), (2, 1), policy=policy, names=["pred", "target"])
    number: int = checked(1)
    lines: list[int] = [broadcast.line for broadcast in broadcasts]
try:
    simulcast.guard(x) + x
except simulcast.BroadcastError as error:
    axis: int | None = error.axis
    fixes: tuple[simulcast.Fix, ...] = error.suggestions
    expressions: list[str] = [fix.expression for fix in fixes]
rule: simulcast.Rule = simulcast.rules.pdpd(axis=1)
kind: str = rule.kind
target: tuple[int, ...] | None = simulcast.rules.to((2, 3)).target
strictness: str = simulcast.Policy("strict").strictness
actions: dict[str, str] = {code: action for code, action in simulcast.Policy().actions.items()}
"""

MODELS = """
import numpy as np
from simulcast import onnx

session = onnx.Session("model.onnx", threads=2, limit=1 << 30)
names: tuple[str, ...] = session.inputs + session.outputs
fused: tuple[int, ...] = session.fused
for name, result in session.run({"x": np.ones(3, np.float32)}, out={"y": np.empty(3)}).items():
    size: int = result.size
found = onnx.check("model.onnx", sizes={"N": 3}, allow="SC103", deny=["SC110"])
ok: bool = found.ok
errors: tuple[str, ...] = found.errors
page: str = found.html("model")
nodes = found.to_dict()["schema"]
upgraded: bytes = onnx.upgrade(b"")
wrong: type[ValueError] = onnx.ModelError
missing: type[NotImplementedError] = onnx.UnsupportedError
"""

WRONG = [
    "simulcast.broadcast_shapes('2,3')",
    "simulcast.add(1)",
    "simulcast.add(1, 2, casting='maybe')",
    "simulcast.evaluate(1)",
    "simulcast.grad('x')",
    "simulcast.compile(['x']).strategy(x=1)",
    "simulcast.evaluate('x', fast_math='yes')",
    "simulcast.sum_to([1.0], rule=3)",
    "simulcast.strict(strictness=3)",
    "simulcast.check((1,), policy=3)",
    "simulcast.explain((1,)).nothing",
    "simulcast.exp(1.0).nothing",
    "simulcast.evaluate('x', x=1.0).nothing",
    "simulcast.where(True, 1, 2, casting='maybe')",
    "simulcast.sum([1], axis='rows')",
]


def run(*args, **options):
    return subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True, **options)


def test_stubs_are_what_the_module_has(tmp_path):
    # `__call__` has no signature at run time; what simulcast.onnx is made of has no types of its own.
    (tmp_path / "allowed").write_text(r"simulcast\._simulcast\.(__all__|(Joint)?Expression\.__call__|Onnx.*)")
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n")
    options = ["--allowlist", "allowed", "--ignore-unused-allowlist", "--ignore-disjoint-bases", "--mypy-config-file", "mypy.ini"]
    done = run("mypy.stubtest", "simulcast._simulcast", "--concise", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_passes_a_strict_check_and_mistakes_do_not(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "wrong.py").write_text("import simulcast\n" + "\n".join(WRONG) + "\n")
    done = run("mypy", "--strict", "--no-incremental", "right.py", "models.py", "wrong.py", cwd=tmp_path)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {name for name, *_ in errors} == {"wrong.py"}, done.stdout + done.stderr
    assert {int(line) for _, line, *_ in errors} == set(range(2, 2 + len(WRONG))), done.stdout


def test_the_program_runs():
    exec(PROGRAM, {})
    assert (Path(simulcast.__file__).parent / "py.typed").exists()
