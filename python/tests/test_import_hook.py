"""`install_import_hook`: packages whose operators ask the policy."""

import ast
import importlib
import runpy
import subprocess
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest

import simulcast
from simulcast import _places

COLUMN, ROW = np.arange(4.0).reshape(4, 1), np.arange(4.0)
SOURCE = '''\
"""A package."""
from __future__ import annotations

import numpy as np

LIMIT: int | None = 60 * 60


def loss(pred, target):
    return ((pred - target) ** 2).mean()


def outer(x):
    return x[:, None] * x


def table(pred, target):
    return pred * target


def chosen(mask, a, b):
    return np.where(mask, a, b)


def within(a, b):
    return np.mean(a < b), a == b, 0 < a.ndim < 3


def changed(a, b):
    a -= b
    return a


def text(name, values):
    return "%s: %d" % (name, len(values)) + name * 2


def by_entries(batch):
    return batch["pred"] + batch["target"].T


class Own:
    shape = "round"

    def __add__(self, other):
        return "added"


def kinds(x: float | None = None) -> list[int | str]:
    return [1 + 2j, {1} | {2}, Own() + Own(), [1] * 3]
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "hooked_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .steps import *\n")
    (folder / "steps.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    with simulcast.install_import_hook("hooked_package"):
        yield importlib.import_module("hooked_package.steps")
    for name in [own for own in sys.modules if own.startswith("hooked_package")]:
        del sys.modules[name]


def line(text):
    return SOURCE.splitlines().index(text) + 1


def test_a_loss_is_warned_of_with_the_operands_names(package):
    with pytest.warns(simulcast.BroadcastWarning, match="pred repeats along axis 1, target along axis 0") as caught:
        assert package.loss(COLUMN, ROW) == 2.5
    assert caught[0].filename == package.__file__
    assert caught[0].lineno == line("    return ((pred - target) ** 2).mean()")


def test_one_size_is_possible_two_are_confirmed_and_what_is_written_out_is_meant(package):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        package.table(COLUMN, ROW), package.table(COLUMN, ROW)
        for size in (3, 4):
            package.outer(np.ones(size))
    with pytest.warns(simulcast.BroadcastWarning, match="SC102"):
        package.table(COLUMN[:3], ROW[:3])


def test_policies_and_records(package):
    with simulcast.using("SC102=deny"), pytest.raises(simulcast.BroadcastError) as caught:
        package.loss(COLUMN, ROW)
    assert caught.value.names == ("pred", "target")
    if sys.version_info >= (3, 11):
        assert "^^^^^^^^^^^^^" in caught.value.__notes__[0]
    with simulcast.record() as broadcasts, simulcast.allow("SC102"):
        package.loss(np.ones((3, 4)), ROW), package.chosen(ROW > 0, ROW, 0.0), package.within(np.ones((2, 4)), ROW)
    assert [own.function for own in broadcasts] == ["subtract", "where", "less", "equal"][:1] + ["less", "equal"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from Python 3.11 on")
def test_errors_are_explained(package):
    with pytest.raises(ValueError, match="operands could not be broadcast") as caught:
        package.by_entries({"pred": np.ones((3, 4)), "target": np.ones(3)})
    (note,) = caught.value.__notes__
    for part in ("batch['pred']", "batch['target'].T[:, None] is (3, 1)", "^^^^", "axis 1 (-1)"):
        assert part in note, note
    with pytest.raises(ValueError) as caught:
        package.chosen(np.ones(3) > 0, np.ones((3, 4)), 0.0)
    assert "mask" in caught.value.__notes__[0]


def test_values_are_those_without_the_hook(package):
    plain = types.ModuleType("plain")
    exec(SOURCE, plain.__dict__)
    assert package.text("a", [1]) == plain.text("a", [1]) and package.LIMIT == 3600
    assert str(package.kinds()) == str(plain.kinds()) and package.kinds.__annotations__ == plain.kinds.__annotations__
    for a, b in ((package.within, plain.within), (package.chosen, plain.chosen)):
        own = (ROW, COLUMN * 0 + 1)[: a.__code__.co_argcount] if a is package.within else (ROW > 0, ROW, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x, y in zip(a(*own), b(*own)):
                assert np.array_equal(x, y)
    array = np.ones(3)
    assert package.changed(array, 1) is array and array.sum() == 0
    with pytest.raises(TypeError, match="unsupported operand"):
        package.table({}, None)


def test_libraries_with_labels_keep_their_own_rule(package):
    xarray = pytest.importorskip("xarray")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = package.loss(xarray.DataArray(COLUMN, dims=("a", "b")), xarray.DataArray(ROW, dims="a"))
    assert float(made) == 0


def test_other_modules_are_left_alone(tmp_path):
    (tmp_path / "beside.py").write_text("def f(a, b):\n    return a - b\n")
    code = textwrap.dedent("""
        import sys, warnings
        warnings.simplefilter("error")
        import numpy, simulcast
        hook = simulcast.install_import_hook("none_such", "hooked.inner")
        import beside
        beside.f(numpy.ones((3, 1)), numpy.ones(3)).mean()
        hook.uninstall(), hook.uninstall()
        assert "@simulcast" not in vars(beside)
    """)
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def imported(folder, name, text):
    """A module of this text, under the hook."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, simulcast.install_import_hook(name):
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)


def test_a_hooked_module_runs_as_a_script_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "hooked_script.py").write_text("a, b = 2, 3\nprint(a - b, __name__)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with simulcast.install_import_hook("hooked_script"):
        runpy.run_module("hooked_script", run_name="__main__")
        importlib.import_module("hooked_script")
    assert capsys.readouterr().out == "-1 __main__\n-1 hooked_script\n"


class Odd:
    """An operand that is no array, whatever its `shape` is."""

    def __init__(self, shape):
        self.own = shape

    @property
    def shape(self):
        if self.own is None:
            raise RuntimeError("there is no shape yet")
        return self.own

    def __add__(self, other):
        return "added"


@pytest.mark.parametrize("shape", [None, np.array([3, 4]), [3, 4], "round"])
def test_operands_whose_shape_is_no_tuple_are_left_alone(tmp_path, shape):
    module = imported(tmp_path, "hooked_odd", "def add(a, b):\n    return a + b\n")
    assert module.add(Odd(shape), Odd(shape)) == "added" == module.add(Odd(shape), ROW)


@pytest.mark.parametrize("terms", [400, 900])
def test_a_long_sum_is_imported(tmp_path, terms):
    module = imported(tmp_path, f"hooked_sum_{terms}", f"def f(a):\n    return {' + '.join(['a'] * terms)}\n")
    assert module.f(2) == 2 * terms


def test_what_is_too_long_for_a_name_is_not_written_out(monkeypatch):
    def names(terms):
        return _places.written(ast.parse("-" * terms + "a", mode="eval").body)

    assert names(57) == f"({'-' * 57}a)" and names(58) is None
    monkeypatch.setattr(ast, "unparse", lambda node: pytest.fail("it is written out"))
    assert names(80) is None


def test_lines_end_where_they_do_for_python(tmp_path):
    text = 'WORDS = "\u2028\x85"\n\f\ndef f(pred, target):\r\n    return ((pred - target) ** 2).mean()\n'
    module = imported(tmp_path, "hooked_lines", text)
    with simulcast.using("SC102=deny"), pytest.raises(simulcast.BroadcastError) as caught:
        module.f(COLUMN, ROW)
    if sys.version_info >= (3, 11):
        assert "    return ((pred - target) ** 2).mean()\n             ^^^^" in caught.value.__notes__[0]


@pytest.mark.parametrize("bad", [(), ("my package",), ("",), (3,)])
def test_bad_names_are_refused(bad):
    with pytest.raises(ValueError, match="names of packages"):
        simulcast.install_import_hook(*bad)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes")
def test_products_and_operations_in_place_are_explained(tmp_path):
    text = "def grow(a, b):\n    a += b\ndef product(a, b):\n    return a @ b\ndef multiply(a, b):\n    a @= b\n    return a\n"
    module = imported(tmp_path, "hooked_products", text)
    for call, said in [
        (lambda: module.grow(np.ones(4), COLUMN), ["the result is (4, 4), and it is stored in a, which is (4,)", "a += b"]),
        (lambda: module.product(np.ones((2, 3)), np.ones((2, 3))), ["axis -1 of a has 3, axis -2 of b has 2", "a @ b"]),
        (lambda: module.product(np.ones((3, 2, 2)), np.ones((4, 2, 2))), ["a has 3, b has 4"]),
        (lambda: module.multiply(np.ones((2, 3)), np.ones((2, 3))), ["axis -1 of a has 3"]),
    ]:
        with simulcast.using("all=allow"), pytest.raises(ValueError) as caught:
            call()
        (note,) = caught.value.__notes__
        assert all(own in note for own in said), note
    with simulcast.strict("exact"):
        assert module.product(np.ones((2, 3)), np.ones(3)).tolist() == [3.0, 3.0]


def test_a_package_that_is_imported_already_is_told(tmp_path, monkeypatch):
    (tmp_path / "hooked_late").mkdir()
    (tmp_path / "hooked_late" / "__init__.py").write_text("")
    (tmp_path / "hooked_self").mkdir()
    (tmp_path / "hooked_self" / "__init__.py").write_text("import simulcast\nHOOK = simulcast.install_import_hook(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("hooked_late")
    with pytest.warns(RuntimeWarning, match="too late for hooked_late:"), simulcast.install_import_hook("hooked_late"):
        pass
    # A package may call it for its own parts.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module("hooked_self").HOOK.uninstall()
