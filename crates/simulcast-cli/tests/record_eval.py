"""What NumPy answers to the expressions of eval.json's test, over the files of simulcast-files' tests.

    python -m pip install numpy==2.4.6
    python record_eval.py       writes eval.json beside it
"""

import json
import math
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "simulcast-files/tests/data"

# The expression here and in NumPy's words where they differ; then the operands, likewise.
CASES = [
    ("a * b + 1", None, {"a": "(2,3)", "b": "[10, 20, 30]"}),
    ("(x - m) / s", None, {"x": "[[1, 2], [3, 6]]", "m": "[2, 4]", "s": "[[1], [2]]"}),
    ("x / 2", None, {"x": "version1.npy"}),
    ("x * x", None, {"x": "fortran.npy"}),
    ("x + 1", None, {"x": "big.npy"}),
    ("x + y", None, {"x": "numpy.npz:int8", "y": "deflated.npz:uint8"}),
    ("x + y", None, {"x": "numpy.npz:float16", "y": "deflated.npz:int16"}),
    ("x - y", None, {"x": "numpy.npz:big_float64", "y": "numpy.npz:float32"}),
    ("x == 'a'", None, {"x": "deflated.npz:text"}),
    ("where(x, y, -1)", None, {"x": "numpy.npz:bool", "y": "numpy.npz:int32"}),
    ("where(x, 1, 0)", None, {"x": "numpy.npz:odd_bool"}),
    ("-x", None, {"x": "3"}),
    ("x + k", None, {"x": "zeros(2, dtype=float32)", "k": "2.5"}),
    ("x * 2.5", None, {"x": "ones(2, dtype=float32)"}),
    ("x.sum()", None, {"x": "(100,100)"}),
    ("x.mean(axis=(0, 2), keepdims=True)", None, {"x": "(2,3,4)"}),
    ("sum((x[:, None] - y) ** 2, axis=-1)", None, {"x": "(2,3)", "y": "(4,3)"}),
    ("x[:, None] * x", None, {"x": "arange(4, dtype=int8)"}),
    ("x.T * y", None, {"x": "(2,3)", "y": "full((3, 1), 0.5)"}),
    ("exp(-x ** 2) * sin(x)", None, {"x": "linspace(-2, 2, 9)"}),
    ("maximum(x, y) // 2", None, {"x": "arange(-3, 4)", "y": "arange(3, -4, -1)"}),
    ("x * 1j", None, {"x": "[1, 2.5]"}),
    ("abs(x)", None, {"x": "array([3, 4j])"}),
    ("(x > 1) & (x < 4)", None, {"x": "arange(6)"}),
    ("x + y", None, {"x": "zeros(0, 3)", "y": "numpy.npz:scalar"}),
    ("x", None, {"x": "arange(0.5, 3, 0.25)"}),
    ("x", None, {"x": "[18446744073709551615]"}),
    ("x", None, {"x": "[-1, 9223372036854775808]"}),
    ("x", None, {"x": "[1+2j, -3, 0.5 - 1e-3j]"}),
    ("x", None, {"x": r"""['a\n', "it's", '\'\\']"""}),
    ("x", None, {"x": "arange(0, 27021597764222979, 9007199254740993)"}),
    ("x", None, {"x": "arange(9, -9, -7)"}),
    ("x * (1 / 2j) + 2j ** 2", None, {"x": "array([1+2j], dtype=complex64)"}),
    ("power(x * 10, y)", None, {"x": "[1e308+1j]", "y": "[1, 2, 3, 4]"}),
    ("power(x, 2)", None, {"x": "[1e200+1e200j, 3-4j]"}),
    ("x + int8(-3.9)", None, {"x": "[1, 2]"}),
    ("x * bool(-2.5)", None, {"x": "[1, 2]"}),
    ("clip(x, -300, 100)", None, {"x": "array([-128, 127], dtype=int8)"}),
    ("clip(x, 3, 255)", None, {"x": "arange(-1, 9, dtype=int8)"}),
    ("clip(x, None, 3) + x.clip(min=2)", None, {"x": "(2,3)"}),
    ("clip(x, max=4, min=y)", None, {"x": "(2,3)", "y": "[[1], [2]]"}),
    ("clip(x, -1, 1000)", None, {"x": "array([0, 255], dtype=uint8)"}),
    ("float32(x) / 3", "np.float32(x) / 3", {"x": "[true, false]"}),
]
NAMES = {name: getattr(np, name) for name in "where sum exp sin maximum arange linspace abs clip int8 bool power".split()}
TYPES = ("int8", "uint8", "float32", "complex64")
SHAPED = {
    "zeros": lambda *sizes, **more: np.zeros(sizes, **more),
    "ones": lambda *sizes, **more: np.ones(sizes, **more),
    "full": np.full,
    "array": np.array,
}


def operand(text):
    path, _, key = text.partition(":")
    if path.endswith((".npy", ".npz")):
        loaded = np.load(DATA / path)
        return loaded[key] if key else loaded
    value = eval(text, {"true": True, "false": False} | NAMES | SHAPED | {t: t for t in TYPES})
    if isinstance(value, tuple):
        return np.arange(math.prod(value)).reshape(value)
    return np.asarray(value)


def number(x):
    return x if math.isfinite(x) else str(x)


def values(x):
    if isinstance(x, list):
        return [values(y) for y in x]
    if isinstance(x, complex):
        return [number(x.real), number(x.imag)]
    return number(x) if isinstance(x, float) else x


def main():
    lines = []
    for text, numpy, operands in CASES:
        arrays = {name: operand(word) for name, word in operands.items()}
        with np.errstate(all="ignore"):
            y = np.asarray(eval(numpy or text, {"np": np} | NAMES | arrays))
        answer = {"dtype": "string" if y.dtype.kind == "U" else y.dtype.name, "shape": y.shape, "values": values(y.tolist())}
        lines.append(json.dumps({"expression": text, "operands": operands} | answer, allow_nan=False))
    (HERE / "eval.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
