"""Notes under PyTorch's errors of shapes: the table of the operands by name, and fixes.

`The size of tensor a (3) must match the size of tensor b (2)` carries no shapes; the mode, which has the tensors,
adds them. The error itself is raised as it is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .. import _fixes, _places
from .._errors import BroadcastError
from .._simulcast import _read_messages
from .._simulcast import explain as explain_shapes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ._functions import Meeting
    from ._watch import Watch

# Words of the messages that are about sizes.
_WORDS = ("size", "shape", "broadcast", "dimension")
_HEAD = "simulcast:"


def explain(
    error: Exception, watch: Watch, meeting: Meeting | None, function: Any, args: Sequence[Any],
    kwargs: dict[str, Any],
) -> None:
    """Adds a note to an error of a call that is about shapes; nothing otherwise."""
    if not isinstance(error, (RuntimeError, ValueError)) or isinstance(error, BroadcastError):
        return
    text = str(error)
    if not any(word in text for word in _WORDS) or any(own.startswith(_HEAD) for own in _notes(error)):
        return
    try:
        if meeting is None:
            note = _of_message(text)
        else:
            note = _of_call(watch, meeting, function, args, kwargs, sys._getframe(2))
    except Exception:  # The program's own error is what has to be seen.
        return
    if note:
        _places.add_note(error, f"{_HEAD} {note}")


def _notes(error: BaseException) -> Sequence[str]:
    found = getattr(error, "__notes__", ())
    return [own for own in found if isinstance(own, str)]


def _of_message(text: str) -> str | None:
    """What a message says by itself, if it carries shapes."""
    said = [explained for explained, data in _read_messages(text) if data["shapes"]]
    return said[0].rstrip() if said else None


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


def _stored(shapes: Sequence[tuple[int, ...]], names: Sequence[str], result: tuple[int, ...]) -> str:
    """An operation in place, whose result does not fit into the tensor it is stored in."""
    fixes = _fixes.of_finding(shapes, names, "SC102", torch=True)
    lines = [f"the result is {result}, and it is stored in {names[0]}, which is {shapes[0]} and cannot grow"]
    lines += [f"  {name} is {shape}" for name, shape in zip(names, shapes)]
    return "\n".join([*lines, *_helps([own for own in fixes if own.fix.result == shapes[0]])])


def _table(explained: str, fixes: Sequence[_fixes.OperandFix], head: str) -> str:
    lines = [line for line in explained.rstrip().splitlines() if not line.startswith("  help ")]
    return "\n".join([head, *lines, *_helps(fixes)])


def _helps(fixes: Sequence[_fixes.OperandFix]) -> list[str]:
    return [f"  help     {own.fix}" for own in fixes]
