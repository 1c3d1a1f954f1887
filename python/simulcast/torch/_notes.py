"""Notes under PyTorch's errors of shapes: the table of the operands by name, and fixes.

`The size of tensor a (3) must match the size of tensor b (2)` carries no shapes; the mode, which has the tensors,
adds them. The error itself is raised as it is.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from .. import _fixes, _places
from .._errors import BroadcastError
from .._simulcast import _read_messages, to
from .._simulcast import explain as explain_shapes
from ._functions import Meeting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ._watch import Watch

# Words of the messages that are about sizes.
_WORDS = ("size", "shape", "broadcast", "dimension")
_HEAD = "simulcast:"


def explain(
    error: Exception, watch: Watch, meeting: Meeting | None, function: Any, args: Sequence[Any],
    kwargs: dict[str, Any],
) -> None:
    """Adds a note to an error of a call that is about shapes; nothing otherwise."""
    if not is_of_sizes(error):
        return
    text = str(error)
    frame = sys._getframe(2)
    try:
        note = None if meeting is None else _of_call(watch, meeting, function, args, kwargs, frame)
        note = note or _of_tensors(watch, function, args, kwargs, frame) or _of_message(text)
    except Exception:  # The program's own error is what has to be seen.
        return
    if note:
        add(error, note)


def is_of_sizes(error: BaseException | None) -> TypeGuard[Exception]:
    """Whether an error is about sizes, and has no note of ours."""
    if not isinstance(error, (RuntimeError, ValueError, IndexError)) or isinstance(error, BroadcastError):
        return False
    text = str(error)
    if isinstance(error, IndexError) and "shape" not in text:
        return False
    return any(word in text for word in _WORDS) and not any(own.startswith(_HEAD) for own in _notes(error))


def add(error: BaseException, note: str) -> None:
    """Adds a note to an error."""
    _places.add_note(error, f"{_HEAD} {note}")


def _notes(error: BaseException) -> Sequence[str]:
    found = getattr(error, "__notes__", ())
    return [own for own in found if isinstance(own, str)]


def _of_message(text: str) -> str | None:
    """What a message says by itself, if it carries shapes."""
    said = [explained for explained, data in _read_messages(text) if data["shapes"]]
    # Where the message stands in a text is nothing that a reader of the note can look up.
    return said[0].rstrip().replace(", line 1 of the text", "", 1) if said else None


_PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "linear", "mv", "dot", "addmm", "baddbmm"))


def _of_tensors(
    watch: Watch, function: Any, args: Sequence[Any], kwargs: dict[str, Any], frame: FrameType
) -> str | None:
    """What the tensors of any call are called, and their shapes."""
    name = getattr(function, "__name__", None) or "the call"
    if name == "__get__":
        return None
    inner = watch._inner(function, frame)
    node = _places.operation(inner).node
    if name in ("__setitem__", "__getitem__") and isinstance(node, ast.Subscript):
        own, index = args[0], args[1]
        if name == "__setitem__":
            return _assigned(own, index, args[2], node, inner)
        is_tuple = isinstance(index, tuple) and isinstance(node.slice, ast.Tuple)
        parts = list(zip(index, cast("ast.Tuple", node.slice).elts)) if is_tuple else [(index, node.slice)]
        return _listed(f"the index of {_places.written(node.value) or 'the tensor'}", [(own, node.value), *parts])
    given = [(place, f"argument {place + 1}", own) for place, own in enumerate(args)]
    given += [(len(args) + place, key, own) for place, (key, own) in enumerate(kwargs.items())]
    kept = [(place, called, own) for place, called, own in given if _shape(own) is not None or _shapes(own)]
    if not kept:
        return None
    meeting = Meeting(name, tuple(called for _, called, _ in kept), tuple(place for place, _, _ in kept))
    names = list(watch.named(meeting, function, args, frame))
    tensors: list[tuple[str, tuple[int, ...]]] = []
    for called, (_, _, own) in zip(names, kept):
        shape = _shape(own)
        tensors += [(called, shape)] if shape is not None else zip(_parts(called, len(own)), _shapes(own))
    shapes = [shape for _, shape in tensors]
    if name in ("expand", "broadcast_to") and len(tensors) == 1:
        sizes = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
        target = [size if size != -1 else shapes[0][place - len(sizes)] for place, size in enumerate(sizes)]
        explained = explain_shapes(shapes[0], names=[tensors[0][0]], rule=to(target))
        return _table(str(explained), (), f"{name} to {tuple(target)}, which {tensors[0][0]} does not stretch to")
    if name == "copy_" and len(tensors) == 2:
        return _stored(shapes, [own for own, _ in tensors], None)
    lines = [f"{name} of sizes that do not fit" if len(tensors) > 1 else f"{name} was called with"]
    lines += [f"  {called} is {shape}" for called, shape in tensors]
    if name in _PRODUCTS and len(tensors) > 1 and all(shapes[:2]):
        lines += _product(name, tensors)
    return "\n".join(lines)


def _parts(called: str, count: int) -> list[str]:
    """What the tensors of a list are called."""
    try:
        node = ast.parse(called, mode="eval").body
    except SyntaxError:
        node = None
    if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == count:
        return [_places.written(own) or f"tensor {at}" for at, own in enumerate(node.elts)]
    return [f"{called}[{at}]" for at in range(count)]


def _product(name: str, tensors: Sequence[tuple[str, tuple[int, ...]]]) -> list[str]:
    """Which axes of a product of matrices do not fit."""
    (a, left), (b, right) = tensors[-2:] if name in ("addmm", "baddbmm") else tensors[:2]
    if name == "__rmatmul__":
        (a, left), (b, right) = (b, right), (a, left)
    if name == "linear" and left[-1] != right[-1]:
        return [f"  axis -1 of {a} has {left[-1]}, axis -1 of {b} has {right[-1]}: they are summed over, and must be equal"]
    return [] if name == "linear" else _fixes.product((a, b), (left, right))


def _assigned(own: Any, index: Any, value: Any, node: ast.Subscript, frame: FrameType) -> str | None:
    """A value that does not fit into a part of a tensor."""
    shape = _shape(value)
    if shape is None:
        return None
    nodes = _places._nodes(frame.f_code.co_filename, frame.f_globals).values()
    holders = [held.value for held in nodes if isinstance(held, ast.Assign) and any(part is node for part in held.targets)]
    names = [_places.written(node) or "the part", (_places.written(holders[0]) if holders else None) or "the value"]
    return _stored([tuple(own[index].shape), shape], names, None)


def _listed(what: str, operands: Sequence[tuple[Any, ast.AST]]) -> str:
    lines = [f"{what} does not fit"]
    for own, node in operands:
        shape = _shape(own)
        if shape is not None:
            lines.append(f"  {_places.written(node) or 'it'} is {shape}")
    return "\n".join(lines)


def _shape(own: Any) -> tuple[int, ...] | None:
    try:
        shape = getattr(own, "shape", None)
        return None if shape is None else tuple(int(size) for size in shape)
    except (RuntimeError, TypeError, ValueError):
        # A nested tensor has none.
        return None


def _shapes(own: Any) -> list[tuple[int, ...]]:
    """The shapes of a list of tensors; none of anything else."""
    if not isinstance(own, (list, tuple)):
        return []
    shapes = [_shape(part) for part in own]
    return [shape for shape in shapes if shape is not None] if None not in shapes else []


def _of_call(
    watch: Watch, meeting: Meeting, function: Any, args: Sequence[Any], kwargs: dict[str, Any], frame: FrameType
) -> str | None:
    """What the operands of a call say."""
    shapes = meeting.shapes(args, kwargs)
    meeting = meeting.without(shapes)
    present = [tuple(own) for own in shapes if own is not None]
    if len(set(present)) < 2:
        return None
    names = watch.named(meeting, function, args, frame)
    explained = explain_shapes(*present, names=list(names))
    if explained.shape is not None and meeting.in_place and tuple(explained.shape) != present[0]:
        return _stored(present, names, tuple(size for size in explained.shape if isinstance(size, int)))
    if explained.shape is None:
        fixes = _fixes.of_error(explained.to_dict(), names, torch=True)
        wanted = fixes or _fixes.as_another(present, names)
        return _table(str(explained), wanted, f"{meeting.name} of operands that do not broadcast")
    if not meeting.one_shape:
        return None
    codes = [finding.code for finding in explained.findings[:1]]
    fixes = [fix for code in codes for fix in _fixes.of_finding(present, names, code, torch=True)]
    fixes = fixes or _fixes.as_another(present, names)
    lines = [f"{meeting.name} takes operands of one shape"]
    lines += [f"  {name} is {shape}" for name, shape in zip(names, present)]
    return "\n".join([*lines, *_helps(fixes)])


def _stored(shapes: Sequence[tuple[int, ...]], names: Sequence[str], result: tuple[int, ...] | None) -> str:
    """An operation in place, whose result does not fit into the tensor it is stored in; without a result, a copy."""
    fixes = _fixes.of_finding(shapes, names, "SC102", torch=True)
    what = f"{names[1]} is" if result is None else f"the result is {result}, and it is"
    lines = [f"{what} stored in {names[0]}, which is {shapes[0]} and cannot grow"]
    lines += [f"  {name} is {shape}" for name, shape in zip(names, shapes)]
    return "\n".join([*lines, *_helps([own for own in fixes if own.fix.result == shapes[0]])])


def _table(explained: str, fixes: Sequence[_fixes.OperandFix], head: str) -> str:
    lines = [line for line in explained.rstrip().splitlines() if not line.startswith("  help ")]
    return "\n".join([head, *lines, *_helps(fixes)])


def _helps(fixes: Sequence[_fixes.OperandFix]) -> list[str]:
    return [f"  help     {own.fix}" for own in fixes]
