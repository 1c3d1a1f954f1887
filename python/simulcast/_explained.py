"""`explain_error`: broadcasting errors of array libraries, from text or from an exception.

The extension reads the messages. An exception knows more than its message: the line that failed, how the operands are
written there, and their shapes, where they are plain variables.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from . import _places
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
    if not read:
        return []
    failed = _failed(error)
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
    count = len(data["shapes"]) or 2
    nodes = _places.arguments(operation.node, count)
    if nodes is None:
        return _explained(own, place) if data["shapes"] else ExplainedError(text, own)
    names = [None if node is None else _places.written(node) for node in nodes]
    shapes = [_shape(_places.variable(node, frame)) for node in nodes]
    known = [tuple(own) for own in data["shapes"]]
    if known and all(shape in (None, met) for shape, met in zip(shapes, known)):
        return _explained({**own, "names": [name or "" for name in names]}, place)
    if not known and None not in shapes:
        rest = {"names": [name or "" for name in names], "shapes": [list(shape) for shape in shapes if shape is not None]}
        return _explained({**own, **rest, "missing": None}, place)
    return _explained(own, place) if known else ExplainedError(text, own)


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
