"""Every example runs: docstrings, the README's, and those of the pages under `docs`, with their pictures."""

import doctest
import re
from pathlib import Path

import pytest

import simulcast
from simulcast import _simulcast

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS


def run(text, name, names=None):
    """Runs the examples in a text; gives back the names that they leave behind."""
    names = {} if names is None else names
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    said = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append, clear_globs=False)
    assert results.failed == 0, "".join(said)
    return results.attempted, test.globs


DOCUMENTED = [name for name in simulcast.__all__ if ">>>" in (getattr(simulcast, name).__doc__ or "")]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings(name):
    assert run(getattr(simulcast, name).__doc__, name)[0] > 0


def test_everything_public_is_documented_and_typed():
    assert run(simulcast.__doc__, "simulcast")[0] > 0
    stub = (Path(simulcast.__file__).parent / "_simulcast.pyi").read_text()
    for name in simulcast.__all__:
        assert getattr(simulcast, name).__doc__, name
        if hasattr(_simulcast, name):
            assert re.search(rf"^((class|def) {name}\b|{name}: _)", stub, re.M), name
    assert {"broadcast_to", "broadcast_arrays", "broadcast_shapes", "sum_to", "explain", "strict"} <= set(DOCUMENTED)
    assert (Path(simulcast.__file__).parent / "py.typed").exists()


def blocks(path, language="python"):
    return re.findall(rf"```{language}\n(.*?)```(.*?)(?=```|\Z)", path.read_text(), re.S)


PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if ">>>" in page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_and_their_pictures(page):
    names, pictures = {}, 0
    for block, after in blocks(page):
        names = run(block, page.name, names)[1]
        for picture in re.findall(r"\]\(((?:\.\./)?pictures/.*?\.svg)\)", after):
            explained = names["explained"] if "explained =" in block else eval(
                re.search(r">>> (simulcast\.explain.*)", block)[1], names
            )
            assert explained.svg() == (page.parent / picture).read_text(), picture
            pictures += 1
    assert pictures >= 4 or page.stem != "python"


def test_the_guide_is_among_the_pages():
    assert "python" in [page.stem for page in PAGES]


@pytest.mark.parametrize("path", ["README.md", "python/README.md"])
def test_readmes(path):
    examples = blocks(ROOT / path)
    assert examples
    for block, _ in examples:
        assert run(block, path)[0] > 0
