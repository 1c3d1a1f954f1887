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


def test_calls_and_products_are_explained_by_their_operands():
    pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")
    cells = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
run = lambda text: (print("CELL"), shell.run_cell(text, store_history=True))
run("import torch, numpy as np\\nimage, mask, table = torch.ones(2, 3), torch.ones(4), np.ones((2, 3))")
run("%load_ext simulcast")
for text in ("torch.where(image > 0, mask, 1)", "torch.nn.functional.mse_loss(image, mask[:2])", "image.mul(mask)",
             "image @ mask", "table @ table", "torch.zeros(2).expand(3)"):
    run(text)
"""
    said = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True).stdout
    where, loss, method, product, numpys, other = said.split("CELL")[3:]
    assert "mask" in where and "(image > 0) has 3, mask has 4" in where, where
    assert "image has 3, mask[:2] has 2" in loss and "image has 3, mask has 4" in method, loss + method
    assert "PyTorch, matmul" in product and "axis -1 of image has 3, axis -1 of mask has 4" in product, product
    assert "NumPy, matmul" in numpys and "axis -1 of table has 3, axis -2 of table has 2" in numpys, numpys
    assert "line 1 of the text" not in said


def test_with_pytorch():
    pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")
    cells = CELLS.replace("import numpy as np", "import torch as np")
    said = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True).stdout
    assert "mask[:, None, :] is (2, 1, 4)" in said.partition("A:")[2].partition("B:")[0], said
