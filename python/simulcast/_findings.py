"""Findings at places of a program: kept place by place, told once, written as reports.

A place is an expression of the program. What it does with shapes of one size may be a coincidence; with two sizes, or
where the result is reduced to one number, it is not. So findings of a place are kept together, and are told when they
are confirmed.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _baseline, _fixes, _places, _policy
from ._errors import BroadcastError, BroadcastWarning, Fix
from ._simulcast import _report, _weigh, explain
from ._suppress import is_ignored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._fixes import OperandFix
    from ._simulcast import Policy, _FindingDict, _FixDict

    Shape = tuple[int, ...]
    Shapes = tuple[Shape, ...]

_MEMO_MAX = 1 << 16
_SHAPES_MAX = 8


class Judged(NamedTuple):
    """What a policy says of shapes."""

    code: str
    axes: tuple[int, ...]
    result: Shape
    message: str
    confirmed: str
    """What is done once it is confirmed: `allow`, `warn` or `raise`."""
    possible: str
    """What is done before."""


class Site(NamedTuple):
    """Where a call is made."""

    place: _places.Place
    names: tuple[str, ...]
    """The operands, as they are written."""
    spans: tuple[_places.Place | None, ...]
    """Where each is written, in the file of the place."""
    deliberate: bool
    """Whether the expression itself writes an axis of size 1."""
    inside: str
    """The file and line inside of the library where the operands have these names, if it is not the place."""


class PlacedFinding:
    """A suspicious broadcast at one place of a program. It prints as text; `to_dict` gives the same as data."""

    def __init__(self, judged: Judged, function: str, site: Site, shapes: Shapes, fixes: Sequence[OperandFix]) -> None:
        self.code = judged.code
        """The stable code, such as `SC102`."""
        self.certainty: str | None = None
        """`possible` while nothing speaks against a coincidence of sizes, then `confirmed`."""
        self.place = site.place
        """The file, the line and the span."""
        self.function = function
        """The function in which the operands met."""
        self.names = site.names
        """The operands, as they are written."""
        self.shapes: list[Shapes] = [shapes]
        """Different shapes of the operands that were seen, the first ones."""
        self.result = judged.result
        """The result's shape, when it was first seen."""
        self.reduced_by: str | None = None
        """The function that reduces the result to one number, where one does."""
        self.deliberate = site.deliberate
        """Whether the expression itself writes an axis of size 1."""
        self.inside = site.inside
        """The file and line inside of the library where the operands have these names, if it is not the place."""
        self.times = 0
        """How often it was seen."""
        explained = explain(*shapes, names=list(site.names))
        messages = (own.message for own in explained.findings if own.code == judged.code)
        self.message = next(messages, judged.message)
        """What was found."""
        self.fixes: tuple[Fix, ...] = tuple(own.fix for own in fixes)
        """What could be meant instead, in the library's spelling; each was checked to work."""
        self._edits = [(own.fix, site.spans[own.operand]) for own in fixes]
        self._sizes: set[tuple[int, ...]] = set()
        self._judged = judged
        self._told = False
        self._key: tuple[object, ...] = ()
        self._is_new: bool | None = None

    def __repr__(self) -> str:
        return f"<{self.code} {self.certainty}: {self.place}>"

    def __str__(self) -> str:
        return _report([self.to_dict()], "text").rstrip("\n")

    def text(self) -> str:
        """The finding in one line: operands with their shapes, the axes, the result."""
        met = " and ".join(f"{name} {shape}" for name, shape in zip(self.names, self.shapes[0]))
        reduced = f", which {self.reduced_by} reduces to one number" if self.reduced_by else ""
        inside = f" (in {self.inside})" if self.inside else ""
        return f"{self.message}; {met} make {self.result}{reduced}{inside}"

    def details(self) -> str:
        """The source line with marks, and the fixes."""
        lines = [self.place.picture()] if self.place.picture() else []
        lines += [f"    help: {fix}" for fix in self.fixes]
        return "\n".join(lines)

    def to_dict(self) -> _FindingDict:
        """The finding as data: what the formats of a report are made of."""
        place = self.place
        edits: list[_FixDict] = [
            {
                "description": str(fix),
                "line": span.line,
                "column": span.column,
                "end_line": span.end_line,
                "end_column": span.end_column,
                "text": fix.expression,
            }
            for fix, span in self._edits
            if span is not None and span.column is not None and span.end_column is not None
        ]
        return {
            "code": self.code,
            "certainty": self.certainty,
            "message": self.text(),
            "help": [str(fix) for fix in self.fixes],
            "file": place.file,
            "line": place.line,
            "end_line": place.end_line,
            "column": place.column,
            "end_column": place.end_column,
            "snippet": place.snippet,
            "operands": list(self.names),
            "fixes": edits,
            "denied": self._action() == "deny",
        }

    def _action(self) -> str:
        """What the policy does about it."""
        return self._judged.confirmed if self.certainty == "confirmed" else self._judged.possible


class Findings:
    """What was found, in order of discovery."""

    def __init__(
        self, *, torch: bool = False, baseline: str | os.PathLike[str] | None = None, policy: Policy | None = None
    ) -> None:
        """`torch`: whether fixes are PyTorch's; `policy`: the one that judges, by default the one that holds."""
        self._torch, self._policy = torch, policy
        self._baseline = None if baseline is None else _baseline.read(baseline)
        # What the baseline was asked about, and how many of it are new.
        self._asked: list[_FindingDict] = []
        self._news = 0
        self._lock = threading.RLock()
        self._found: dict[tuple[object, ...], PlacedFinding] = {}
        self._memos: dict[str, dict[Shapes, Judged | None]] = {}
        self._memo: tuple[Policy | None, dict[Shapes, Judged | None]] = (None, {})

    @property
    def findings(self) -> list[PlacedFinding]:
        """What was found, in order of discovery: possible findings too."""
        return [own for own in list(self._found.values()) if own.certainty is not None and self._is_new(own)]

    @property
    def confirmed(self) -> list[PlacedFinding]:
        """The findings that cannot be coincidences."""
        return [own for own in self.findings if own.certainty == "confirmed"]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.confirmed)} confirmed, {len(self.findings)} findings>"

    def __str__(self) -> str:
        return self.report()

    def report(self, format: str = "text") -> str:
        """The findings as `text`, `concise`, `github`, `gitlab`, `sarif`, `junit` or `json`."""
        return _report([own.to_dict() for own in self.findings], format)

    def write_baseline(self, path: str | os.PathLike[str]) -> None:
        """Writes everything that was found as a baseline, for `Watch(baseline=...)`."""
        found = [own.to_dict() for own in list(self._found.values()) if own.certainty is not None]
        _baseline.write(path, found)

    def _is_new(self, finding: PlacedFinding) -> bool:
        """Whether the baseline has no more findings like this one, but for those that were seen before it."""
        if self._baseline is None:
            return True
        with self._lock:
            if finding._is_new is None:
                self._asked.append(finding.to_dict())
                news = len(self._baseline.news(self._asked))
                finding._is_new, self._news = news > self._news, news
            return finding._is_new

    def look(self, shapes: Shapes) -> Judged | None:
        """What the policy that holds says of operands of these shapes, which are not all the same."""
        policy = self._policy or _policy._policy.get() or _policy._default
        if policy is not self._memo[0]:
            with self._lock:
                self._memo = policy, self._memos.setdefault(str(policy), {})
        memo = self._memo[1]
        try:
            return memo[shapes]
        except KeyError:
            judged = _judge(policy, tuple(tuple(own) for own in shapes))
            if len(memo) >= _MEMO_MAX:
                memo.clear()
            memo[shapes] = judged
            return judged

    def seen(
        self, judged: Judged, function: str, site: Site, shapes: Shapes, *, reduced: bool = False
    ) -> PlacedFinding | None:
        """A finding is seen at a place. It is given back where it may still be confirmed."""
        place = site.place
        if is_ignored(place.file, place.line, judged.code):
            return None
        shapes = tuple(tuple(own) for own in shapes)
        key = (place.file, place.line, place.column, judged.code, function)
        with self._lock:
            finding = self._found.get(key)
            if finding is None:
                fixes = _fixes.of_finding(shapes, site.names, judged.code, torch=self._torch)
                finding = self._found[key] = PlacedFinding(judged, function, site, shapes, fixes)
                finding._key = key
            finding.times += 1
            finding._judged = judged
            if shapes not in finding.shapes and len(finding.shapes) < _SHAPES_MAX:
                finding.shapes.append(shapes)
            if len(finding._sizes) < 2:
                finding._sizes.add(tuple(judged.result[axis] for axis in judged.axes) or judged.result)
            if reduced and finding.reduced_by is None:
                finding.reduced_by = function
        self._act(finding, shapes)
        return finding if finding.reduced_by is None else None

    def reduced(self, finding: PlacedFinding, name: str) -> None:
        """The result of a finding is reduced to one number."""
        if finding.reduced_by is None:
            finding.reduced_by = name
            self._act(finding, finding.shapes[-1])

    def _act(self, finding: PlacedFinding, shapes: Shapes) -> None:
        finding.certainty = _weigh(
            finding.code,
            varied=len(finding._sizes) > 1,
            reduced=finding.reduced_by is not None,
            deliberate=finding.deliberate,
        )
        action = "allow" if finding.certainty is None else finding._action()
        if action == "allow" or (action == "warn" and finding._told) or not self._is_new(finding):
            return
        if action == "deny":
            raise _error(finding, shapes)
        finding._told = True
        if not self._is_told_within(finding):
            _warn(finding)

    def _is_told_within(self, finding: PlacedFinding) -> bool:
        """Whether others that see the same call tell of it."""
        return False


def _judge(policy: Policy, shapes: Shapes) -> Judged | None:
    try:
        result, _, refused, warned, unconfirmed = policy._judge(shapes)
    except BroadcastError:
        # The library refuses it too.
        return None
    found = [*([] if refused is None else [refused]), *warned, *unconfirmed]
    if result is None or not found:
        return None
    finding = found[0]
    shape = tuple(size for size in result if isinstance(size, int))
    confirmed: str = policy.actions[finding.code]
    possible: str = policy.possible_actions[finding.code]
    if refused is not None and confirmed != "deny":
        # A strictness refuses whatever the actions are.
        confirmed = possible = "deny"
    return Judged(finding.code, tuple(finding.axes), shape, finding.message, confirmed, possible)


def _error(finding: PlacedFinding, shapes: Shapes) -> BroadcastError:
    help = "".join(f"; help: {fix}" for fix in finding.fixes)
    data = {
        "code": finding.code,
        "shapes": shapes,
        "names": finding.names,
        "rule": "numpy",
        "suggestions": finding.fixes,
        "operands": tuple(range(len(shapes))),
    }
    error = BroadcastError(f"{finding.code}: {finding.text()}{help}", data)
    picture = finding.place.picture()
    if picture:
        _places.add_note(error, f"{finding.place}\n{picture}")
    return error


def _warn(finding: PlacedFinding) -> None:
    """Warns at the user's line."""
    place = finding.place
    module = sys.modules.get("__main__")
    registry: dict[Any, Any] = {}
    text = f"{finding.code}: {finding.text()}\n{finding.details()}".rstrip()
    name = getattr(module, "__name__", "") if getattr(module, "__file__", None) == place.file else place.file
    warnings.warn_explicit(text, BroadcastWarning, place.file, place.line, name, registry)
