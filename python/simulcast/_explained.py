"""`explain_error`: broadcasting errors of array libraries, from text or from an exception.

The extension reads the messages. An exception knows more than its message: the line that failed, how the operands are
written there, and their shapes, where they are plain variables.
"""

from __future__ import annotations

import ast
import traceback
from typing import TYPE_CHECKING, Any

from . import _fixes, _places
from ._errors import BroadcastError
from ._simulcast import Explanation, _read_messages, explain

if TYPE_CHECKING:
    from types import FrameType

_MODULES_OF_LIBRARIES = (
    "numpy", "torch", "jax", "jaxlib", "cupy", "tensorflow", "keras", "onnxruntime", "openvino", "simulcast", "numexpr",
    "dask",
)  # fmt: skip


class ExplainedError:
    """A broadcasting error, explained: prints as text, shows as a picture in a notebook."""

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self._text, self._data = text, data

    @property
    def library(self) -> str:
        """Whose message it is: `NumPy`, `PyTorch`, …"""
        return str(self._data["library"])

    @property
    def operation(self) -> str | None:
        """The operation, where it is known."""
        return self._data.get("operation")

    @property
    def names(self) -> tuple[str, ...]:
        """What the operands are called."""
        return tuple(self._data["names"])

    @property
    def shapes(self) -> tuple[tuple[int | str | None, ...], ...]:
        """The shapes that met; empty where neither message nor exception has them."""
        return tuple(tuple(own) for own in self._data["shapes"])

    @property
    def missing(self) -> str | None:
        """What is missing for an explanation, and how to get it; `None` where nothing is."""
        return self._data.get("missing")

    @property
    def place(self) -> tuple[str, int, str] | None:
        """The file, the line and the source of what failed, where a traceback shows them."""
        place = self._data.get("place")
        return None if place is None else (place["file"], place["line"], place["source"])

    @property
    def explanation(self) -> Explanation | None:
        """The explanation, as `explain` gives it; `None` where shapes are missing."""
        if not self.shapes:
            return None
        names = list(self.names) if len(self.names) == len(self.shapes) else None
        return explain(*self.shapes, names=names, rule=self._data["rule"])

    def to_dict(self) -> dict[str, Any]:
        """The message and its explanation as data, as `simulcast explain - --json` prints it."""
        return self._data

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text.rstrip("\n")

    def _repr_html_(self) -> str | None:
        explanation = self.explanation
        return None if explanation is None else explanation._repr_html_()


def explain_error(error: str | BaseException) -> list[ExplainedError]:
    """The broadcasting errors in a text (a traceback, a log, an issue), or in an exception, each explained.

    Messages of NumPy, CuPy, PyTorch, JAX, TensorFlow, ONNX Runtime and OpenVINO are read. An exception that was caught
    gives the operands' names and shapes too, where its message carries none.

    >>> import simulcast
    >>> text = "ValueError: operands could not be broadcast together with shapes (2,3,4) (2,4) "
    >>> print(simulcast.explain_error(text)[0])
    NumPy, line 1 of the text
      axis     0   1   2     '.' = no such axis
      A        2   3   4     (2, 3, 4)
      B        .   2   4     (2, 4)
                   ^ axis 1 (-2): A has 3, B has 2
      rule     numpy
      error    E1: sizes must be equal, or the one that stretches must be 1
      help     B[:, None, :] is (2, 1, 4), result (2, 3, 4)
      help     A.transpose(1, 0, 2) is (3, 2, 4), result (3, 2, 4)
    <BLANKLINE>
    >>> import numpy as np
    >>> pred, target = np.ones((4, 3)), np.ones(4)
    >>> try:
    ...     loss = pred - target
    ... except ValueError as error:
    ...     simulcast.explain_error(error)[0].shapes
    ((4, 3), (4,))
    """
    if isinstance(error, str):
        return [ExplainedError(*own) for own in _read_messages(error)]
    if not isinstance(error, BaseException):
        raise TypeError(f"explain_error takes a text or an exception, not {type(error).__name__}")
    found: list[ExplainedError] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        found += _of_exception(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return found


def _of_exception(error: BaseException) -> list[ExplainedError]:
    message = "".join(traceback.format_exception_only(type(error), error))
    if isinstance(error, BroadcastError) and error.shapes and None not in error.shapes:
        return [_explained({"library": "Simulcast", "operation": None, "node": None, "rule": error.rule or "numpy",
                            "shapes": [list(own) for own in error.shapes if own is not None],
                            "names": list(error.names)}, None)]  # fmt: skip
    read = _read_messages(message)
    failed = _failed(error) if read or isinstance(error, (ValueError, TypeError, RuntimeError)) else None
    if not read:
        return [] if failed is None else _of_product(*failed)
    if failed is None:
        return [ExplainedError(*own) for own in read]
    frame, operation = failed
    return [_with_place(text, data, frame, operation) for text, data in read[:1]]


def _failed(error: BaseException) -> tuple[FrameType, _places.Operation] | None:
    """The innermost frame of the program, past those of the libraries."""
    for frame, instruction in _places.traceback_frames(error.__traceback__):
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module not in _MODULES_OF_LIBRARIES:
            return frame, _places.operation(frame, instruction)
    return None


def _with_place(
    text: str, data: dict[str, Any], frame: FrameType, operation: _places.Operation
) -> ExplainedError:
    """A message with what its exception knows beside."""
    place = operation.place
    own = {
        **data,
        "place": {"file": place.file, "line": place.line, "source": place.snippet.partition("\n")[0].strip()},
    }
    text = text.replace(", line 1 of the text", f" ({place})", 1)
    count = len(data["shapes"]) or 2
    nodes = _places.arguments(operation.node, count)
    if not data["shapes"] and isinstance(operation.node, ast.Call):
        nodes = _arrays(operation.node, frame)
    if nodes is None:
        return _explained(own, place) if data["shapes"] else ExplainedError(text, own)
    names = [None if node is None else _places.written(node) for node in nodes]
    shapes = [_shape_of(node, frame) for node in nodes]
    known = [tuple(own) for own in data["shapes"]]
    if known and all(shape in (None, met) for shape, met in zip(shapes, known)):
        return _explained({**own, "names": [name or "" for name in names]}, place)
    if not known and None not in shapes:
        rest = {"names": [name or "" for name in names], "shapes": [list(shape) for shape in shapes if shape is not None]}
        return _explained({**own, **rest, "missing": None}, place)
    return _explained(own, place) if known else ExplainedError(text, own)


def _arrays(call: ast.Call, frame: FrameType) -> list[ast.AST | None] | None:
    """The arguments of a call, and the receiver of a method, that are arrays; `None` where these do not clash."""
    given = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    given += [*call.args, *(own.value for own in call.keywords)]
    nodes = [own for own in given if _shape_of(own, frame)]
    shapes = [_shape_of(own, frame) for own in nodes]
    if len(nodes) < 2 or explain(*[shape for shape in shapes if shape is not None]).shape is not None:
        return None
    return list(nodes)


_LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX", "cupy": "CuPy", "tensorflow": "TensorFlow"}


def _of_product(frame: FrameType, operation: _places.Operation) -> list[ExplainedError]:
    """A product of matrices whose sizes do not fit, whatever its message says."""
    node, place = operation.node, operation.place
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or not isinstance(node.op, ast.MatMult):
        return []
    nodes = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.target, node.value]
    names = [_places.written(own) or letter for own, letter in zip(nodes, "AB")]
    shapes = [shape for shape in (_shape_of(own, frame) for own in nodes) if shape is not None]
    lines = _fixes.product(names, shapes) if len(shapes) == 2 else []
    if not lines:
        return []
    roots = (type(_places.variable(own, frame)).__module__.partition(".")[0] for own in nodes)
    library = next((_LIBRARIES[own] for own in roots if own in _LIBRARIES), "NumPy")
    picture = "\n".join(line[2:] for line in place.picture().split("\n")) if place.picture() else ""
    sizes = [f"  {name} is {shape}" for name, shape in zip(names, shapes)]
    text = "\n".join([f"{library}, matmul ({place})", *([picture] if picture else []), *sizes, *lines, ""])
    source = place.snippet.partition("\n")[0].strip()
    data = {
        "library": library, "operation": "matmul", "node": None, "rule": "numpy", "shapes": [], "names": names, "warning": False,
        "line": 1, "place": {"file": place.file, "line": place.line, "source": source}, "missing": None,
    }  # fmt: skip
    return [ExplainedError(text, data)]


def _shape_of(node: ast.AST | None, frame: FrameType) -> tuple[int, ...] | None:
    """The shape of an expression of variables, as far as their shapes tell; nothing of the program is run."""
    found = _shape(_places.variable(node, frame))
    if found is not None:
        return found
    if isinstance(node, ast.Constant):
        return () if isinstance(node.value, (int, float, complex)) else None
    if isinstance(node, ast.UnaryOp):
        return _shape_of(node.operand, frame)
    if isinstance(node, (ast.BinOp, ast.Compare)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return None
        shapes = [_shape_of(own, frame) for own in _places.arguments(node, 2) or ()]
        met = [shape for shape in shapes if shape is not None]
        whole = explain(*met).shape if len(met) == 2 else None
        return None if whole is None else tuple(size for size in whole if isinstance(size, int))
    if isinstance(node, ast.Subscript):
        shape = _shape_of(node.value, frame)
        return None if shape is None else _part(shape, node.slice)
    return None


def _part(shape: tuple[int, ...], index: ast.AST) -> tuple[int, ...] | None:
    """The shape of a part, where its index is of constants."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    left, made = list(shape), []
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            made.append(1)
            continue
        try:
            given = ast.literal_eval(part) if not isinstance(part, ast.Slice) else slice(
                *(None if own is None else ast.literal_eval(own) for own in (part.lower, part.upper, part.step))
            )
            size = left.pop(0)
            if isinstance(given, slice):
                made.append(len(range(*given.indices(size))))
            elif type(given) is not int:
                return None
        except (ValueError, TypeError, IndexError, MemoryError, RecursionError):
            return None
    return (*made, *left)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array of any library; `()` of a number."""
    if isinstance(value, (int, float, complex)):
        return ()
    shape = getattr(value, "shape", None)
    try:
        return tuple(int(size) for size in shape) if shape is not None else None
    except (TypeError, ValueError):
        return None


def _explained(data: dict[str, Any], place: _places.Place | None) -> ExplainedError:
    """What is known of an error, with its explanation made anew."""
    shapes = [tuple(own) for own in data["shapes"]]
    names = data["names"] if len(data["names"]) == len(shapes) else None
    explained = explain(*shapes, names=names, rule=data["rule"])
    operation = f", {data['operation']}" if data.get("operation") else ""
    node = f" of node {data['node']}" if data.get("node") else ""
    lines = [f"{data['library']}{operation}{node}" + (f" ({place})" if place else "")]
    if place is not None and place.picture():
        lines.append("\n".join(line[2:] for line in place.picture().split("\n")))
    whole = {"warning": False, "line": 1, "place": None, "missing": None, **data, "explanation": explained.to_dict()}
    return ExplainedError("\n".join([*lines, str(explained)]), whole)
