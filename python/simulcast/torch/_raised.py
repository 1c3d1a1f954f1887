"""Notes under errors of shapes that PyTorch's own Python code raises, where no call fails that the mode sees.

`Normal(loc, scale).log_prob(value)` checks the sizes of its value, `torch.broadcast_shapes` compares shapes without
tensors, `torch.nn.LSTM` checks its input. What they were called with stands in the frames of the traceback, which are read
once the error leaves the guard. An error that is caught before has no note.
"""

from __future__ import annotations

import ast
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _explained, _fixes, _places
from .._simulcast import explain as explain_shapes
from . import _notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from ._watch import Watch

    # A frame of the traceback, and the instruction that it was at.
    Step = tuple[FrameType, int]


def explain(error: BaseException | None, watch: Watch) -> None:
    """Adds a note to an error of shapes that has none and that PyTorch's Python code raised; nothing otherwise."""
    if not _notes.is_of_sizes(error):
        return
    try:
        note = _note(error, watch)
    except Exception:  # The program's own error is what has to be seen.
        return
    if note:
        _notes.add(error, note)


@contextmanager
def hooks(watch: Watch) -> Iterator[None]:
    """While it is entered, errors that end the program or a thread are explained before they are shown."""
    is_on = True

    def explained(error: BaseException | None) -> None:
        if is_on:
            explain(error, watch)

    def main(kind: Any, error: BaseException, trace: Any) -> None:
        explained(error)
        before_main(kind, error, trace)

    def thread(args: Any) -> None:
        explained(args.exc_value)
        before_thread(args)

    before_main, before_thread = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = main, thread
    try:
        yield
    finally:
        is_on = False
        # A hook that was set later, and calls ours, stays.
        if sys.excepthook is main:
            sys.excepthook = before_main
        if threading.excepthook is thread:
            threading.excepthook = before_thread


def _note(error: BaseException, watch: Watch) -> str | None:
    # The innermost first.
    steps = list(_places.traceback_frames(error.__traceback__))
    if not steps or not watch.is_of_torch(steps[0][0]):
        return None
    for place, (frame, _) in enumerate(steps[:-1]):
        module, name = frame.f_globals.get("__name__"), frame.f_code.co_name
        if (module, name) == ("torch.functional", "broadcast_shapes"):
            return _of_shapes(frame.f_locals["shapes"], steps[place + 1])
        if (module, name) == ("torch.distributions.distribution", "_validate_sample"):
            user = next((own for own in steps if not watch.is_internal(own[0])), None)
            return _of_sample(frame.f_locals, steps[place + 1][0].f_code.co_name, user)
    user = next((own for own in steps if not watch.is_internal(own[0])), None)
    return None if user is None else _of_call(user)


def _of_shapes(given: Sequence[Any], caller: Step) -> str | None:
    """`torch.broadcast_shapes` of shapes that do not broadcast: no tensors are there."""
    shapes = [(own,) if isinstance(own, int) else tuple(int(size) for size in own) for own in given]
    nodes = _places.arguments(_places.operation(*caller).node, len(shapes)) or [None] * len(shapes)
    names = [(_places.written(node) if node else None) or f"shape {at}" for at, node in enumerate(nodes)]
    # The shape of an operand is called as the operand, which can be given another one.
    tensors = [name.removesuffix(".shape") for name in names]
    explained = explain_shapes(*shapes, names=tensors)
    if explained.shape is not None:
        return None
    fixes = _fixes.of_error(explained.to_dict(), tensors, torch=True)
    kept = [own for own in fixes if names[own.operand] != tensors[own.operand]]
    return _notes._table(str(explained), kept, "broadcast_shapes of shapes that do not broadcast")


def _of_sample(local: dict[str, Any], method: str, user: Step | None) -> str | None:
    """A value whose sizes are not those of a distribution: `log_prob`, `cdf`, `icdf`."""
    distribution = local["self"]
    value, batch, event = map(tuple, (local["value"].shape, distribution._batch_shape, distribution._event_shape))
    names = _of_user(user, method, value, (*batch, *event)) or ("value", type(distribution).__name__)
    head = f"{type(distribution).__name__}.{method}"
    whole = [f"  {names[1]} has batch_shape {batch} and event_shape {event}"] if event else []
    if value[len(value) - len(event) :] != event or len(value) < len(event):
        last = f"the last axis of {names[0]}" if len(event) == 1 else f"the last {len(event)} axes of {names[0]}"
        return "\n".join([f"{head} of a value that has other events", f"  {names[0]} is {value}", *whole,
                          f"  {last} must be event_shape: {event}"])  # fmt: skip
    explained = explain_shapes(value, (*batch, *event), names=list(names))
    if explained.shape is not None:
        return None
    fixes = _fixes.of_error(explained.to_dict(), names, torch=True)
    # A distribution is given other sizes where it is made.
    table = _notes._table(str(explained), [own for own in fixes if own.operand == 0], f"{head} of shapes that do not broadcast")
    return "\n".join([table, *whole])


def _of_user(user: Step | None, method: str, value: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[str, str] | None:
    """What the user calls the value and the distribution, if it is the user who called its method."""
    if user is None:
        return None
    frame, _ = user
    node = _places.operation(*user).node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return None
    given = [*node.args, *(own.value for own in node.keywords)]
    # Of what is no plain variable nothing is known but its text.
    owner = _places.variable(node.func.value, frame)
    batch, event = getattr(owner, "_batch_shape", None), getattr(owner, "_event_shape", None)
    if len(given) != 1 or (batch is not None and event is not None and (*batch, *event) != sizes):
        return None
    if _explained._shape_of(given[0], frame) not in (None, value):
        return None
    return _places.written(given[0]) or "value", _places.written(node.func.value) or type(owner).__name__


def _of_call(user: Step) -> str | None:
    """What the user gave to a call that failed in PyTorch's Python code."""
    frame, _ = user
    node = _places.operation(*user).node
    if not isinstance(node, ast.Call):
        return None
    given = [*node.args, *(own.value for own in node.keywords)]
    known = [(_places.written(own) or "a tensor", _places.variable(own, frame)) for own in given]
    lines = [f"  {name} is {_notes._shape(own)}" for name, own in known if _notes._shape(own) is not None]
    return "\n".join([f"{_places.written(node.func) or 'the call'} was called with", *lines]) if lines else None
