"""Types: the stubs are what the module has, and a program that uses all kinds of calls passes a strict check."""

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import simulcast

HERE = Path(__file__).parent
TYPED = [HERE / "typed" / name for name in ("program.py", "models.py", "names.py")]

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
    for path in TYPED:
        shutil.copy(path, tmp_path)
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n")
    (tmp_path / "wrong.py").write_text("import simulcast\n" + "\n".join(WRONG) + "\n")
    done = run("mypy", "--strict", "--no-incremental", "program.py", "models.py", "names.py", "wrong.py", cwd=tmp_path)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {name for name, *_ in errors} == {"wrong.py"}, done.stdout + done.stderr
    assert {int(line) for _, line, *_ in errors} == set(range(2, 2 + len(WRONG))), done.stdout


def test_the_program_runs():
    exec(TYPED[0].read_text(), {})
    assert (Path(simulcast.__file__).parent / "py.typed").exists()


def test_the_names_are_all_that_are_public():
    tree = ast.parse(TYPED[2].read_text())
    [names] = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    for module, used in zip(names.keys, names.values):
        public = importlib.import_module(module.value).__all__
        assert sorted(own.attr for own in used.elts) == sorted(public), module.value
