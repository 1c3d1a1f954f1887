"""`%load_ext simulcast` in IPython itself."""

import subprocess
import sys

import pytest

pytest.importorskip("IPython", reason="IPython is not installed: cargo xtask test torch")

CELLS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
run = lambda text: shell.run_cell(text, store_history=True)
run("import numpy as np\\nimage, mask = np.ones((2, 3, 4)), np.ones((2, 4))")
run("%load_ext simulcast")
run("%load_ext simulcast")
print("A:")
run("image * mask")
print("B:")
run("1 / 0")
run("%unload_ext simulcast")
print("C:")
run("image * mask")
"""


def test_an_error_in_a_cell_is_explained():
    ran = subprocess.run([sys.executable, "-c", CELLS], capture_output=True, text=True)
    said = ran.stdout
    a, b, c = said.partition("A:")[2].partition("B:")[0], said.partition("B:")[2].partition("C:")[0], said.partition("C:")[2]
    assert "mask[:, None, :] is (2, 1, 4)" in a, said + ran.stderr
    assert "ZeroDivisionError" in b and "help" not in b and "help " not in c


def test_with_pytorch():
    pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")
    cells = CELLS.replace("import numpy as np", "import torch as np")
    said = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True).stdout
    assert "mask[:, None, :] is (2, 1, 4)" in said.partition("A:")[2].partition("B:")[0], said
