"""What a guard has seen: where in the program a call of PyTorch was made, and what was found there."""

from __future__ import annotations

import ast
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import _places
from .._findings import Findings, Site
from ._load import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType

    from .._findings import Judged, PlacedFinding, Shapes
    from ._functions import Meeting

_SITES_MAX = 1 << 14
# Files of PyTorch that only hand a call on.
_WRAPPERS = ("_tensor.py", "overrides.py", "functional.py")


class Watch(Findings):
    """What a guard has seen: `guard` gives it, `findings` lists what was found, `report` prints it.

    Several guards may share one, so that what one of them found is confirmed by another.
    """

    def __init__(self, exclude: Iterable[str] = (), *, baseline: str | os.PathLike[str] | None = None) -> None:
        """`exclude` are patterns of files whose broadcasts are passed over; `baseline` is a file of known findings,
        which are neither told nor listed.
        """
        super().__init__(torch=True, baseline=baseline)
        folder = os.path.dirname(os.path.abspath(load().__file__)) + os.sep
        self._files = _places.Files(folder, exclude)
        self._wrappers = tuple(folder + name for name in _WRAPPERS) + (os.path.join(folder, "nn", "functional.py"),)
        self._sites: dict[tuple[object, ...], Site | None] = {}

    def found(
        self, judged: Judged, meeting: Meeting, function: Any, args: Sequence[Any], shapes: Shapes,
        reduced: bool, frame: FrameType,
    ) -> PlacedFinding | None:
        """A finding in a call that is about to be made. It is given back where it may still be confirmed."""
        site = self._site(meeting, function, args, frame)
        return None if site is None else self.seen(judged, meeting.name, site, shapes, reduced=reduced)

    def _site(self, meeting: Meeting, function: Any, args: Sequence[Any], frame: FrameType) -> Site | None:
        """Where a call is made; `None` where it is passed over."""
        inner = self._inner(function, frame)
        user = self._user(inner)
        key = (inner.f_code, inner.f_lasti, user.f_code, user.f_lasti, meeting.name)
        try:
            return self._sites[key]
        except KeyError:
            site = None
            if not self._files.is_excluded(user.f_code.co_filename):
                site = self._describe(meeting, args, inner, user)
            if len(self._sites) >= _SITES_MAX:
                self._sites.clear()
            self._sites[key] = site
            return site

    def is_internal(self, frame: FrameType) -> bool:
        """Whether a frame is PyTorch's, ours or the interpreter's."""
        return self._files.is_internal(frame.f_code.co_filename)

    def is_of_torch(self, frame: FrameType) -> bool:
        """Whether a frame is PyTorch's."""
        return self.is_internal(frame) and not frame.f_code.co_filename.startswith(_places._OWN)

    def _inner(self, function: Any, frame: FrameType) -> FrameType:
        """The frame that calls the function, past what only hands the call on."""
        own = getattr(function, "__code__", None)
        for outer in _places.frames(frame):
            code = outer.f_code
            # Another mode hands calls on too.
            if code is own or code.co_name == "__torch_function__" or code.co_filename in self._wrappers:
                continue
            if not code.co_filename.startswith(_places._OWN):
                return outer
        return frame

    def _user(self, frame: FrameType) -> FrameType:
        """The first frame outside PyTorch."""
        for outer in _places.frames(frame):
            if not self._files.is_internal(outer.f_code.co_filename):
                return outer
        return frame

    def _describe(self, meeting: Meeting, args: Sequence[Any], inner: FrameType, user: FrameType) -> Site:
        deepest = _places.operation(inner)
        outermost = deepest if inner is user else _places.operation(user)
        own = _operands(meeting, deepest.node, len(args))
        deliberate = any(_places.makes_ones(node) for node in own if node is not None)
        nodes = own if inner is user else _as_the_user_has_it(meeting, outermost.node, args, user)
        names, inside = [], ""
        for node, inner_node, parameter in zip(nodes, own, meeting.parameters):
            name = None if node is None else _places.written(node)
            if name is None and inner is not user and inner_node is not None:
                name = _places.written(inner_node)
                inside = str(deepest.place).rpartition("site-packages" + os.sep)[2]
            names.append(name or parameter)
        file = user.f_code.co_filename
        spans = tuple(_places.span_in(node, file, user.f_globals) for node in nodes)
        return Site(outermost.place, tuple(names), spans, deliberate, inside)

    def _is_told_within(self, finding: PlacedFinding) -> bool:
        """Whether a guard within the one that saw the call tells of it: it is below us on the stack, in the same call."""
        for outer in _places.frames(sys._getframe(1)):
            if outer.f_code.co_name != "__torch_function__":
                continue
            mode: Any = outer.f_locals.get("self")
            watch = getattr(mode, "watch", None)
            other = watch._found.get(finding._key) if isinstance(watch, Watch) and watch is not self else None
            if other is not None and (other._told or any(held is other for _, held in mode.followed.values())):
                return True
        return False

    def named(self, meeting: Meeting, function: Any, args: Sequence[Any], frame: FrameType) -> tuple[str, ...]:
        """What the operands of a call are called where it was made."""
        inner = self._inner(function, frame)
        return self._describe(meeting, args, inner, self._user(inner)).names


def _as_the_user_has_it(
    meeting: Meeting, call: ast.AST | None, args: Sequence[Any], user: FrameType
) -> list[ast.AST | None]:
    """What the user's call has for the operands of a call inside of PyTorch: the same variables, or as many arguments."""
    nodes: list[ast.AST | None] = []
    for place in meeting.order:
        operand = args[place] if place < len(args) else None
        variables = (own for own in (() if call is None else ast.walk(call)) if _places.variable(own, user) is operand)
        nodes.append(next(variables, None) if operand is not None else None)
    given = _places.arguments(call, len(nodes))
    if not any(nodes) and given is not None and isinstance(call, ast.Call) and len(call.args) == len(nodes):
        # Numbers and lists of sizes are no tensors: `dist.expand((4,))` expands what the user does not name.
        sizes = (ast.Constant, ast.Tuple, ast.List)
        return nodes if any(isinstance(own, sizes) for own in given) else given
    return nodes


def _operands(meeting: Meeting, node: ast.AST | None, given: int) -> list[ast.AST | None]:
    """The expressions of the operands of a call that got so many arguments by position."""
    last = max(meeting.order, default=0) + 1
    names = [""] * last
    for name, place in zip(meeting.parameters, meeting.order):
        names[place] = name
    found = _places.arguments(node, last, given=given, names=names)
    if not found:
        return [None] * len(meeting.parameters)
    if meeting.name.startswith("__r"):
        found = found[::-1]
    return [found[place] for place in meeting.order]
