"""Suppressions: findings that the source says are meant, in a comment or with a block.

    loss = ((pred - target) ** 2).mean()  # simulcast: ignore[SC102]

A comment is about the whole statement that it stands in, or the header of a compound statement, whichever of its
lines it is on. `# simulcast: ignore` without codes is about all of them; of one with codes that do not exist, or a bracket
that is not closed, a warning tells. What a comment or `allow` names is neither
warned of nor refused, whatever policy holds.
"""

from __future__ import annotations

import functools
import io
import linecache
import re
import tokenize
import warnings
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ._simulcast import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMMENT = re.compile(r"#\s*simulcast:\s*ignore(?:\s*\[([^\]#]*)(\]?))?", re.IGNORECASE)

EVERY = "all"
"""What stands for every code."""

_allowed: ContextVar[frozenset[str]] = ContextVar("simulcast.allowed", default=frozenset())


class _Source:
    """What is known of a file: the statement that each line is in, and what the comments in it ignore."""

    __slots__ = ("lines", "statements", "ignores", "wrong")

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.statements: dict[int, tuple[int, int]] = {}
        self.ignores: dict[int, frozenset[str]] = {}
        self.wrong: dict[int, str] = {}
        start, comments = None, []
        try:
            for token in tokenize.generate_tokens(io.StringIO("".join(lines)).readline):
                if token.type == tokenize.COMMENT:
                    own, wrong = _codes(token.string)
                    comments.append((token.start[0], own))
                    if wrong:
                        self.wrong[token.start[0]] = wrong
                elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                    if start is not None:
                        self._end(start, token.start[0], comments)
                    start, comments = None, []
                elif token.type in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                    if start is None:
                        comments = []
                elif start is None:
                    start = token.start[0]
        except (tokenize.TokenError, SyntaxError):
            # What comes before the place that cannot be read counts.
            pass

    def _end(self, first: int, last: int, comments: list[tuple[int, frozenset[str] | None]]) -> None:
        own = [codes for _, codes in comments if codes is not None]
        ignored = frozenset().union(*own)
        for line in range(first, last + 1):
            self.statements[line] = (first, last)
            if own:
                self.ignores[line] = ignored


_sources: dict[str, _Source] = {}
_SOURCES_KEPT = 256


def _source(filename: str) -> _Source:
    # linecache knows notebooks' cells too; its list is another one when the file was read again.
    lines = linecache.getlines(filename)
    known = _sources.get(filename)
    if known is None or known.lines is not lines:
        if len(_sources) >= _SOURCES_KEPT:
            _sources.clear()
        known = _sources[filename] = _Source(lines)
        _warn_of_comments(filename, known)
    return known


def _codes(comment: str) -> tuple[frozenset[str] | None, str]:
    """What a comment ignores, `None` where it says nothing about findings; and what is wrong with it."""
    found = _COMMENT.search(comment)
    if found is None:
        return None, ""
    if found[1] is None:
        return frozenset({EVERY}), ""
    given = [code.upper() for code in re.split(r"[\s,]+", found[1].strip()) if code]
    if given == [EVERY.upper()] and found[2]:
        return frozenset({EVERY}), ""
    known = [code for code in given if code in _known()]
    unknown = ", ".join(code for code in given if code not in known)
    wrong = "the bracket is not closed" if not found[2] else f"there is no finding {unknown}" if unknown else ""
    return frozenset(known), wrong or ("" if known else "there is no code in the brackets")


@functools.cache
def _known() -> frozenset[str]:
    """The codes of findings."""
    return frozenset(Policy("").actions)


def _warn_of_comments(filename: str, source: _Source) -> None:
    """Warns, once a comment, of those that do not say what they ignore."""
    for line, wrong in source.wrong.items():
        text = f"a comment `# simulcast: ignore[...]` does not say what it ignores: {wrong}; write SC102"
        warnings.warn_explicit(text, UserWarning, filename, line)


def ignored(filename: str, line: int) -> set[str] | None:
    """The codes that a comment ignores in the statement at a line, `"all"` among them where it names none;
    `None` where there is no comment.

    >>> import linecache
    >>> text = ["a - b  # simulcast: ignore[SC102, SC101]\\n", "a - b\\n"]
    >>> linecache.cache["<example>"] = (0, None, text, "<example>")
    >>> sorted(ignored("<example>", 1)), ignored("<example>", 2)
    (['SC101', 'SC102'], None)
    """
    codes = _source(filename).ignores.get(line)
    return None if codes is None else set(codes)


def is_ignored(filename: str, line: int, code: str) -> bool:
    """Whether a block or a comment says that a finding at a place is meant."""
    return not {EVERY, code}.isdisjoint(suppressed(filename, line))


def suppressed(filename: str, line: int) -> set[str]:
    """The codes that a block or a comment ignores at a place."""
    return {*_allowed.get(), *(ignored(filename, line) or ())}


def statement(filename: str, line: int) -> tuple[int, int]:
    """The first and the last line of the statement that a line is in."""
    return _source(filename).statements.get(line, (line, line))


def codes(given: Iterable[str]) -> frozenset[str]:
    """Codes as `allow` takes them."""
    given = tuple(given)
    for code in given:
        if not isinstance(code, str):
            raise TypeError(f"allow takes the codes of findings as text, such as 'SC102', not {code!r}")
    read = frozenset(code if code == EVERY else code.upper() for code in given)
    for code in read:
        if code != EVERY and code not in _known():
            raise ValueError(f"there is no finding {code!r}; there are {', '.join(sorted(_known()))}, and all")
    if not read:
        raise ValueError("allow takes the codes of findings, such as SC102")
    return read
