"""The examples of the guides that need PyTorch print what the guides say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")

import simulcast
import simulcast.torch

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def blocks(page):
    """The blocks of code of a page: language and text."""
    return re.findall(r"```(\w+)\n(.*?)```", (GUIDE / page).read_text(), re.S)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="operands are named from Python 3.11 on")
def test_the_first_example_of_the_guide_prints_the_text_after_it(tmp_path):
    (_, program), (_, printed) = blocks("pytorch.md")[:2]
    (tmp_path / "train.py").write_text(program)
    ran = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    lines = [line.replace(f"{tmp_path}/", "").rstrip() for line in ran.stderr.splitlines()]
    for line in printed.splitlines():
        assert any(own.strip() == line.strip() for own in lines), (line, ran.stderr)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes are shown from Python 3.11 on")
def test_the_error_of_the_guide_has_the_note_that_it_shows():
    error = next(text for language, text in blocks("pytorch.md") if text.startswith("RuntimeError"))
    image, mask = torch.zeros(3, 4), torch.zeros(3)
    with simulcast.torch.guard(), pytest.raises(RuntimeError) as caught:
        image - mask
    told = [f"RuntimeError: {caught.value}", *"\n".join(caught.value.__notes__).splitlines()]
    for line in error.splitlines():
        assert any(own.strip() == line.strip() for own in told), (line, told)


def test_the_dry_run_of_the_guide_finds_the_accident():
    program = next(text for _, text in blocks("pytorch.md") if "dry_run(step, sizes" in text)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(10, 1)

        def loss(self, x, target):
            return ((self.layer(x) - target) ** 2).mean()

    with pytest.raises(simulcast.BroadcastError, match="SC102"):
        exec(compile(program, "step.py", "exec"), {"torch": torch, "simulcast": simulcast, "Net": Net})


def test_the_gradient_of_the_guide_of_python():
    program = next(text for _, text in blocks("python.md") if "simulcast.torch.evaluate" in text)
    code, said = re.sub(r"(loss\.backward\(\)).*", r"\1", program), re.search(r"m\.grad is (.*)", program)[1]
    names = {"torch": torch, "simulcast": simulcast}
    exec(code, names)
    assert repr(names["m"].grad) == said
