"""Reports: findings of recorded broadcasts, one for each place, in the formats of editors and continuous integration."""

from __future__ import annotations

import linecache
import os
from typing import TYPE_CHECKING

from . import _baseline, _suppress
from ._simulcast import _report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._policy import Broadcast
    from ._simulcast import _FindingDict


FORMATS = ("text", "concise", "github", "gitlab", "sarif", "junit", "json")


class Record(list["Broadcast"]):
    """Every broadcast of a block, in order, and its findings as a report."""

    def report(self, format: str = "text", *, baseline: str | os.PathLike[str] | None = None) -> str:
        """The findings as `text`, `concise`, `github`, `gitlab`, `sarif`, `junit` or `json`: one for each place, as
        certain as it ever was there. What is in the file `baseline` is left out.

        >>> import numpy as np, simulcast
        >>> with simulcast.record() as broadcasts:
        ...     for n in (4, 3):
        ...         difference = simulcast.subtract(np.ones((n, 1)), np.ones(n))
        >>> print(broadcasts.report("concise"))
        <doctest ...>:3: SC102 confirmed: a column meets a row of the same length: ...
        """
        return report(findings(self), format, baseline)

    def write_baseline(self, path: str | os.PathLike[str]) -> None:
        """Writes the findings to a file that `report(baseline=...)` and `--baseline` read."""
        _baseline.write(path, findings(self))


def report(
    found: Sequence[_FindingDict], format: str = "text", baseline: str | os.PathLike[str] | None = None
) -> str:
    """Findings in a format, but for those that a baseline knows."""
    if baseline is not None:
        found = _baseline.read(baseline).news(found)
    return _report(found, format)


def findings(broadcasts: Iterable[Broadcast]) -> list[_FindingDict]:
    """The findings of broadcasts, one for each place, operation and code."""
    found: dict[tuple[object, ...], _FindingDict] = {}
    for own in broadcasts:
        for finding in own.details:
            key = (own.file, own.line, own.span, own.function, finding.code)
            known = found.get(key)
            if known is None or (finding.certainty == "confirmed" and known.get("certainty") != "confirmed"):
                found[key] = _finding_dict(own, finding.code, finding.certainty, finding.message, finding.suggestions)
    return list(found.values())


def merged(found: list[_FindingDict]) -> list[_FindingDict]:
    """Findings of several processes, one for each place and code."""
    one: dict[tuple[object, ...], _FindingDict] = {}
    for own in found:
        key = (own["code"], own["file"], own.get("line"), own.get("column"), *(own.get("operands") or ()))
        known = one.setdefault(key, own)
        if own.get("certainty") == "confirmed" != known.get("certainty"):
            one[key] = own
    return list(one.values())


def _finding_dict(
    own: Broadcast, code: str, certainty: str, message: str, suggestions: Sequence[str]
) -> _FindingDict:
    first, last = _suppress.statement(own.file, own.line)
    column = end_column = None
    if own.span is not None and own.span[1] is not None:
        first, (last, column, end_column) = own.line, own.span
    lines = [linecache.getline(own.file, line).rstrip("\r\n") for line in range(first, last + 1)]
    return {
        "code": code,
        "certainty": certainty,
        "message": message,
        "help": list(suggestions),
        "file": own.file,
        "line": first,
        "end_line": last,
        "column": column,
        "end_column": end_column,
        "snippet": "\n".join(lines),
        "operands": list(own.names),
        "denied": own.denied == code,
    }
