"""The mode that sees every call of PyTorch.

The usual call costs a set lookup and a comparison of two shapes beyond what a mode costs anyway; shapes that differ
are judged by the core once and looked up afterwards.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from .. import _policy
from . import _notes
from ._functions import Meeting, table
from ._load import load

if TYPE_CHECKING:
    from .._findings import PlacedFinding
    from ._watch import Watch

_NUMBERS = frozenset((int, float, bool, complex))
_FOLLOWED_MAX = 64

_classes: dict[Any, Any] = {}


class Switch:
    """Whether modes that share it watch. One that lies on the stack of another thread can only be switched off."""

    def __init__(self) -> None:
        self.is_on = True


def make(watch: Watch, switch: Switch) -> Any:
    """A `TorchFunctionMode` that tells a watch of what it sees."""
    torch = load()
    known = _classes.get(torch)
    if known is None:
        known = _classes[torch] = _mode_class(torch)
    return known(watch, switch)


def _mode_class(torch: Any) -> Any:
    functions = table()
    pairs, others, variadic = functions.pairs, functions.others, functions.variadic
    is_compiling, tracing_state = torch.compiler.is_compiling, torch._C._get_tracing_state
    tensor = torch.Tensor

    class GuardMode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Judges the shapes that meet in each call, and explains the errors of those that do not."""

        def __init__(self, watch: Watch, switch: Switch) -> None:
            super().__init__()
            self.watch = watch
            self.switch = switch
            # Results of findings that a reduction may confirm, by identity.
            self.followed: dict[int, tuple[weakref.ref[Any], PlacedFinding]] = {}

        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            # What is traced must not see that shapes are asked for.
            if is_compiling() or not self.switch.is_on or tracing_state() is not None:
                return func(*args, **(kwargs or {}))
            finding = None
            if func in pairs:
                if len(args) == 2 and not kwargs:
                    other = args[1]
                    if type(other) not in _NUMBERS:
                        try:
                            shapes = (args[0].shape, other.shape)
                            differ = shapes[0] != shapes[1]
                        except (AttributeError, RuntimeError):
                            differ = False
                        if differ:
                            finding = self.met(pairs[func], func, args, kwargs, shapes)
                else:
                    finding = self.met(pairs[func], func, args, kwargs, None)
            elif func in others:
                try:
                    first = args[0].shape
                    same = len(args) > 1 and all([own.shape == first for own in args[1:]])
                except (AttributeError, RuntimeError, IndexError):
                    same = False
                if not same:
                    finding = self.met(others[func], func, args, kwargs, None)
            elif func in variadic:
                finding = self.met(functions.meeting(func, args), func, args, kwargs, None)
            try:
                result = func(*args, **(kwargs or {}))
            except Exception as error:
                _notes.explain(error, self.watch, functions.meeting(func, args), func, args, kwargs or {})
                raise
            if finding is not None or self.followed:
                self.follow(func, args, result, finding)
            return result

        def met(
            self, meeting: Meeting | None, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None,
            shapes: Any,
        ) -> PlacedFinding | None:
            """Operands meet, of shapes that differ or are not looked at yet."""
            if meeting is None:
                return None
            present = shapes
            if shapes is None:
                shapes = meeting.shapes(args, kwargs or {})
                present = tuple(shape for shape in shapes if shape is not None)
                if not _differ(present):
                    return None
            try:
                judged = self.watch.look(present)
            except TypeError:
                # Sizes that are symbols have no hash.
                return None
            if _policy._record.get() is not None:
                _record(meeting, present, judged, sys._getframe(2))
            if judged is None:
                return None
            if len(present) != len(meeting.parameters):
                meeting = meeting.without(shapes)
            reduced = meeting.is_reduced(args, kwargs or {})
            return self.watch.found(judged, meeting, func, args, present, reduced, sys._getframe(2))

        def follow(self, func: Any, args: tuple[Any, ...], result: Any, finding: PlacedFinding | None) -> None:
            """Follows the result of a finding through what keeps its elements, to a reduction to one number."""
            if not isinstance(result, tensor):
                return
            if finding is None:
                source = None
                for own in args:
                    held = self.followed.get(id(own))
                    if held is not None and held[0]() is own:
                        source, finding = own, held[1]
                        break
                if finding is None or source is None:
                    return
                count = result.numel()
                if func in functions.reductions:
                    if count == 1 and source.numel() > 1:
                        self.watch.reduced(finding, getattr(func, "__name__", "a reduction"))
                        return
                elif count != source.numel() or not (func in functions.keeps or func in pairs or func in others):
                    return
            if finding.reduced_by is None and len(self.followed) < _FOLLOWED_MAX:
                key, followed = id(result), self.followed
                try:
                    followed[key] = weakref.ref(result, lambda _: followed.pop(key, None)), finding
                except TypeError:
                    return

    return GuardMode


def _differ(shapes: Any) -> bool:
    """Whether some shapes are not all the same, as far as it can be told."""
    try:
        return len(set(shapes)) > 1
    except TypeError:
        # Sizes that are symbols have no hash.
        return False


def _record(meeting: Meeting, shapes: Any, judged: Any, frame: Any) -> None:
    """Lists a broadcast where `simulcast.record` is in force."""
    import simulcast

    broadcasts = _policy._record.get()
    if broadcasts is None:
        return
    plain = tuple(tuple(own) for own in shapes)
    try:
        result = simulcast.broadcast_shapes(*plain)
    except ValueError:
        return
    codes = () if judged is None else (judged.code,)
    place = frame.f_code.co_filename, frame.f_lineno
    broadcasts.append(_policy.Broadcast(meeting.name, plain, result, "numpy", codes, *place))  # type: ignore[arg-type]
