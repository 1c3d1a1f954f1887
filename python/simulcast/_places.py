"""Where in a user's program something happened: file, line and span, and what operands are called there.

From Python 3.11 on, an instruction knows the span of the expression that it came from, so that `pred - target` can be
underlined and its operands named as they are written. Before 3.11, and where a program's text cannot be found, a
place is its line.

Nothing of the program is evaluated: names come from its text, values from variables alone.
"""

from __future__ import annotations

import ast
import fnmatch
import itertools
import linecache
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, FrameType, TracebackType

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NAME_LENGTH_MAX = 60
# A character of an expression makes two nodes of its tree at most.
_NAME_NODES_MAX = 2 * _NAME_LENGTH_MAX
_SNIPPET_LINES_MAX = 20
_TREES_MAX = 64
_trees: dict[str, tuple[int, dict[_Span, ast.AST]]] = {}

# First and last line, first and last column (in UTF-8 bytes, the last one exclusive).
_Span = tuple[int, int, int, int]


class Place(NamedTuple):
    """A span of a program's text. Lines count from 1, columns (of characters) too; the last column is exclusive."""

    file: str
    line: int
    end_line: int
    column: int | None
    end_column: int | None
    snippet: str
    """The source lines, as they are written."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def picture(self) -> str:
        """The first source line, and under it marks for the span; empty where there is no text."""
        text = self.snippet.partition("\n")[0].rstrip()
        own = text.lstrip()
        if not own:
            return ""
        if self.column is None or self.end_column is None:
            return f"    {own}"
        start = self.column - 1 - (len(text) - len(own))
        end = (self.end_column - 1 if self.end_line == self.line else len(text)) - (len(text) - len(own))
        if not 0 <= start < end:
            return f"    {own}"
        return f"    {own}\n    {' ' * start}{'^' * (end - start)}"


class Operation(NamedTuple):
    """An expression of a program, as far as its text is known."""

    place: Place
    node: ast.AST | None


def operation(frame: FrameType, instruction: int | None = None) -> Operation:
    """What a frame is at: `instruction` is where, in bytes, if it is no longer there (`tb_lasti`)."""
    at = frame.f_lasti if instruction is None else instruction
    return operation_of(frame.f_code, at, frame.f_globals)


def operation_of(code: CodeType, at: int, names: dict[str, Any] | None = None) -> Operation:
    """What an instruction of a function is; `names` are the function's globals, by which its text may be found."""
    span = _span(code, at)
    if span is None:
        line = _line(code, at)
        snippet = linecache.getline(code.co_filename, line, names).rstrip("\r\n")
        return Operation(Place(code.co_filename, line, line, None, None, snippet), None)
    return Operation(_place(code.co_filename, names, *span), _nodes(code.co_filename, names).get(span))


def span_in(node: ast.AST | None, file: str, names: dict[str, Any] | None = None) -> Place | None:
    """Where an expression of a file is written; `names` are those of `operation_of`."""
    line, start = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    end_line, end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    if line is None or start is None or end_line is None or end is None:
        return None
    return _place(file, names, line, end_line, start, end)


def _place(file: str, names: dict[str, Any] | None, line: int, end_line: int, start: int, end: int) -> Place:
    lines = [own.rstrip("\r\n") for own in linecache.getlines(file, names)]
    return place_in(lines, file, line, end_line, start, end)


def place_in(lines: Sequence[str], file: str, line: int, end_line: int, start: int, end: int) -> Place:
    """A place in a file of these lines; columns are given in bytes, from 0 on."""
    own = lines[line - 1 : end_line] or [""]
    columns = _characters(own[0], start) + 1, _characters(own[-1], end) + 1
    return Place(file, line, end_line, *columns, "\n".join(own[:_SNIPPET_LINES_MAX]))


def _span(code: CodeType, at: int) -> _Span | None:
    if sys.version_info < (3, 11) or at < 0:
        return None
    for place, (line, end_line, start, end) in enumerate(code.co_positions()):
        if place == at // 2:
            if line is None or end_line is None or start is None or end is None:
                return None
            return line, end_line, start, end
    return None


def _line(code: CodeType, at: int) -> int:
    line = code.co_firstlineno
    for start, end, own in code.co_lines():
        if start <= at < end and own is not None:
            line = own
    return line


def _characters(line: str, column: int) -> int:
    return len(line.encode()[:column].decode(errors="replace"))


def _nodes(file: str, names: dict[str, Any] | None) -> dict[_Span, ast.AST]:
    """The expressions and statements of a file by their spans."""
    lines = linecache.getlines(file, names)
    text = "".join(lines)
    known = _trees.get(file)
    if known is not None and known[0] == hash(text):
        return known[1]
    nodes: dict[_Span, ast.AST] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return nodes
    for node in ast.walk(tree):
        line, start = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        end_line, end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        if line is not None and start is not None and end_line is not None and end is not None:
            # A statement has the span of its expression; the expression, which comes later, is the one that is run.
            nodes[line, end_line, start, end] = node
    if len(_trees) >= _TREES_MAX:
        _trees.clear()
    _trees[file] = hash(text), nodes
    return nodes


def written(node: ast.AST) -> str | None:
    """An expression as it is written, where it is short enough to serve as a name."""
    if next(itertools.islice(ast.walk(node), _NAME_NODES_MAX, None), None) is not None:
        return None
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError):
        return None
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda, ast.Await)):
        text = f"({text})"
    return text if len(text) <= _NAME_LENGTH_MAX and "\n" not in text else None


def arguments(
    node: ast.AST | None, count: int, *, given: int | None = None, names: Sequence[str] = ()
) -> list[ast.AST | None] | None:
    """The expressions of the first `count` arguments of what a node does; `None` where it is nothing that has so many.

    `given` is how many the function got by position, which tells a method (its receiver comes first) from a function;
    `names` are its parameters, for what is given by name.
    """
    found: list[ast.AST | None]
    if isinstance(node, ast.BinOp):
        found = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        found = [node.target, node.value]
    elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
        found = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call):
        if any(isinstance(own, ast.Starred) for own in node.args):
            return None
        found = list(node.args)
        if given is not None and len(found) == given - 1 and isinstance(node.func, ast.Attribute):
            found.insert(0, node.func.value)
        by_name = {own.arg: own.value for own in node.keywords}
        found += [by_name.get(name) for name in names[len(found) :]]
    else:
        return None
    return found[:count] if len(found) >= count else None


_MODULES = {"torch", "F", "np", "numpy", "jnp", "lax", "cp", "cupy", "xp"}
_MAKERS = {"unsqueeze", "unsqueeze_", "expand_dims", "newaxis", "atleast_2d"}


def makes_ones(node: ast.AST | None) -> bool:
    """Whether an operand's own expression writes an axis of size 1: `[:, None]`, `unsqueeze`, `keepdim=True`."""
    if isinstance(node, (ast.BinOp,)):
        return makes_ones(node.left) or makes_ones(node.right)
    if isinstance(node, ast.UnaryOp):
        return makes_ones(node.operand)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(map(_is_new_axis, parts)) or makes_ones(node.value)
    if isinstance(node, ast.Attribute):
        return makes_ones(node.value)
    if isinstance(node, ast.Call):
        keeps = (own for own in node.keywords if own.arg in ("keepdim", "keepdims"))
        if any(isinstance(own.value, ast.Constant) and own.value.value is True for own in keeps):
            return True
        if isinstance(node.func, ast.Name):
            return node.func.id in _MAKERS
        if not isinstance(node.func, ast.Attribute):
            return False
        if node.func.attr in _MAKERS:
            return True
        # Functions of an array library hand on what they are given; others make what they like.
        root = node.func.value
        if isinstance(root, ast.Name) and root.id in _MODULES:
            return any(map(makes_ones, node.args))
        return makes_ones(root)
    return False


def _is_new_axis(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Attribute) and node.attr == "newaxis"


def variable(node: ast.AST | None, frame: FrameType) -> Any:
    """The value of a plain variable in a frame, and of attributes and entries that can be read without running
    anything of the program; `None` otherwise.
    """
    if isinstance(node, ast.Name):
        for scope in (frame.f_locals, frame.f_globals):
            if node.id in scope:
                return scope[node.id]
        return None
    if isinstance(node, ast.Attribute):
        owner = variable(node.value, frame)
        try:
            return object.__getattribute__(owner, "__dict__").get(node.attr)
        except AttributeError:
            return None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner = variable(node.value, frame)
        if type(owner) in (dict, list, tuple):
            try:
                return owner[node.slice.value]
            except (LookupError, TypeError):
                return None
    return None


class Files:
    """Which files are a library's own, the user's, or excluded. Answers are remembered."""

    def __init__(self, library: str, exclude: Iterable[str] = ()) -> None:
        """`library` is the folder of the package whose frames are passed over."""
        patterns = [exclude] if isinstance(exclude, str) else list(exclude)
        for own in patterns:
            if not isinstance(own, str) or not own.strip():
                raise ValueError(f"exclude takes patterns of files such as 'transformers/*', not {own!r}")
        self._library = library
        self._patterns = tuple(own if any(mark in own for mark in "*?[/\\.") else f"{own}/*" for own in patterns)
        self._internal: dict[str, bool] = {}
        self._excluded: dict[str, bool] = {}

    def is_internal(self, file: str) -> bool:
        """Whether a file is the library's, ours or the interpreter's."""
        known = self._internal.get(file)
        if known is None:
            full = os.path.abspath(file)
            known = full.startswith((self._library, _OWN)) or file.startswith(("<frozen ", "<eval_with_key>"))
            self._internal[file] = known
        return known

    def is_excluded(self, file: str) -> bool:
        """Whether a file matches one of the patterns, whatever folder it lies in."""
        known = self._excluded.get(file)
        if known is None:
            full = os.path.abspath(file).replace(os.sep, "/")
            known = any(fnmatch.fnmatch(full, own) or fnmatch.fnmatch(full, f"*/{own}") for own in self._patterns)
            self._excluded[file] = known
        return known


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def traceback_frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The frames of a traceback with the instruction that each is at, the innermost first."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    return reversed(found)


def add_note(error: BaseException, note: str) -> None:
    """Adds a note that is shown under an error; before Python 3.11 it becomes part of the message."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{note}",)
