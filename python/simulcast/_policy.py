"""Policies: which broadcasts are allowed, warned of or refused, and a record of those that happen.

The policy that holds, and the record that is kept, belong to the context (`contextvars`): a thread or
a task does not disturb another. `SIMULCAST_POLICY` sets the one that holds from the start, `everywhere` the one
that holds where no context has its own. The extension reads `_policy`, `_default` and `_record` and judges by itself;
it calls `tell` where there is something to record, to confirm, to warn of or to refuse. Operations on Dask's arrays and guarded ones
ask through `observe`; a view in a shape that was asked for by name is recorded, and never refused.
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast, overload

import numpy as np

from . import _places, _suppress
from ._errors import BroadcastWarning
from ._report import Record
from ._simulcast import Policy, _activate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from ._simulcast import Finding, Rule

    _Shapes: TypeAlias = tuple[tuple[int, ...], ...]
    # The result's shape, the exception and its finding, what is warned of, and what is not confirmed.
    _Judged: TypeAlias = tuple[
        tuple[int | str | None, ...] | None, Exception | None, Finding | None, list[Finding], list[Finding]
    ]

_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound="Callable[..., Any]")

_NUMPY = "numpy"


def _read(policy: str | Policy) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise TypeError(f"policy is a simulcast.Policy or its text, not {policy!r}")
    return Policy(policy)


def _of_environment() -> Policy:
    """The policy that `SIMULCAST_POLICY` names."""
    text = os.environ.get("SIMULCAST_POLICY", "")
    try:
        return Policy(text)
    except ValueError as error:
        raise ValueError(f"the environment variable SIMULCAST_POLICY is {text!r}: {error}") from None


_policy: ContextVar[Policy | None] = ContextVar("simulcast.policy", default=None)
_default = _of_environment()
_record: ContextVar[list[Broadcast] | None] = ContextVar("simulcast.record", default=None)
_entered: ContextVar[tuple[tuple[_Setting[Any], Any], ...]] = ContextVar("simulcast.entered", default=())
_ALLOWED = Policy("all=allow")
if "SIMULCAST_POLICY" in os.environ:
    _activate()


class Broadcast(NamedTuple):
    """A broadcast that happened, as `record` lists it: `findings` are codes, `details` the findings themselves, also
    those that are only possible; `denied` is the code for which it was refused,
    `span` where the expression ends: its last line, its first column and the one after its last.
    """

    function: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    rule: str
    findings: tuple[str, ...]
    file: str
    line: int
    details: tuple[Finding, ...] = ()
    names: tuple[str, ...] = ()
    denied: str | None = None
    span: tuple[int, int | None, int | None] | None = None

    def __str__(self) -> str:
        shapes = ", ".join(map(str, self.shapes))
        found = "".join(f" {code}" for code in self.findings)
        return f"{self.file}:{self.line}: {self.function} {shapes} -> {self.result}{found}"


class _Setting(ContextDecorator, Generic[_Value]):
    """A context variable that has another value within a block or a function; any number of threads and tasks may
    share one.
    """

    def __init__(self, variable: ContextVar[Any], value: Callable[[], _Value], made: tuple[Any, ...]) -> None:
        self._variable, self._make, self._made = variable, value, made

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made

    def __enter__(self) -> _Value:
        from ._workers import follow

        _activate()
        follow()
        value = self._make()
        _entered.set((*_entered.get(), (self, self._variable.set(value))))
        return value

    def __exit__(self, *exception: object) -> None:
        entered = _entered.get()
        own = [place for place, (setting, _) in enumerate(entered) if setting is self]
        if not own:
            raise RuntimeError("a block under a policy or a record ends in another context than it began in")
        self._variable.reset(entered[own[-1]][1])
        _entered.set(entered[: own[-1]] + entered[own[-1] + 1 :])

    def _recreate_cm(self) -> _Setting[_Value]:
        return _Setting(self._variable, self._make, self._made)

    def __call__(self, func: _Function) -> _Function:
        """The function under the setting; that of a coroutine too, which runs after it was called."""
        import functools
        import inspect

        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise TypeError(f"{func.__name__} yields, and its caller would be held too: use `with` inside of it")
        if not inspect.iscoroutinefunction(func):
            return super().__call__(func)

        @functools.wraps(func)
        async def held(*args: Any, **options: Any) -> Any:
            with self._recreate_cm():
                return await func(*args, **options)

        return cast("_Function", held)


def using(policy: str | Policy) -> _Setting[Policy]:
    """Within a block or a function, `policy` holds: a `Policy`, or its text.

    >>> import simulcast
    >>> with simulcast.using("SC104=deny"):
    ...     simulcast.broadcast_arrays([1, 2, 3], [[1, 2, 3]] * 3)
    Traceback (most recent call last):
    simulcast.BroadcastError: SC104: ...
    """
    policy = _read(policy)
    return _Setting(_policy, lambda: policy, (using, (policy,)))


@overload
def strict(strictness: _Function, /) -> _Function: ...


@overload
def strict(strictness: str = "same-rank", **actions: object) -> _Setting[Policy]: ...


def strict(strictness: Any = "same-rank", **actions: object) -> Any:
    """Within a block or a function, only sizes of 1 that are written out stretch, and scalars.

    `strictness` can be `"exact"` (nothing repeats) or `"scalar-only"` too; `actions` are further settings of
    a `Policy`, such as `SC101="deny"`. As a decorator it needs no brackets: `@simulcast.strict`.

    >>> import simulcast
    >>> with simulcast.strict():
    ...     simulcast.broadcast_arrays([[1], [2]], [3, 4])
    Traceback (most recent call last):
    simulcast.BroadcastError: SC102: ...
    >>> @simulcast.strict("exact")
    ... def loss(pred, target):
    ...     pred, target = simulcast.broadcast_arrays(pred, target)
    ...     return ((pred - target) ** 2).mean()
    >>> float(loss([1.0, 2.0], [1.0, 4.0]))
    2.0
    """
    if callable(strictness):
        return strict()(strictness)
    return using(Policy("strict", strictness=strictness, **actions))


def record() -> _Setting[Record]:
    """Within a block or a function, every broadcast is listed, with the file and line that made it. The list has a
    method `report`, which gives what is suspicious about them in the format of an editor or of continuous integration.

    >>> import simulcast
    >>> with simulcast.record() as broadcasts:
    ...     shown = simulcast.broadcast_arrays([[1], [2]], [3, 4, 5])
    >>> broadcasts[0].shapes, broadcasts[0].result
    (((2, 1), (3,)), (2, 3))
    """
    return _Setting(_record, Record, (record, ()))


def allow(*codes: str) -> _Setting[frozenset[str]]:
    """Within a block or a function, findings of these codes are meant: neither warned of nor refused, whatever policy
    holds. A comment says so of one statement: `# simulcast: ignore[SC102]`.

    >>> import simulcast
    >>> with simulcast.strict(), simulcast.allow("SC102", "SC103"):
    ...     table = simulcast.multiply([[1], [2]], [3, 4])
    """
    read = _suppress.codes(codes)
    return _Setting(_suppress._allowed, lambda: _suppress._allowed.get() | read, (allow, codes))


def check(
    *operands: object,
    policy: str | Policy | None = None,
    rule: str | Rule = _NUMPY,
    names: Sequence[str] | None = None,
) -> tuple[int | str | None, ...] | None:
    """The shape that operands broadcast to, if a policy (by default the one that holds) allows it.

    Operands are whatever `explain` takes. What the policy warns of is a `BroadcastWarning`: by default a square
    outer that is confirmed, by a symbol or by another size at the same place.

    >>> import simulcast
    >>> simulcast.check((32, 1), (1, 8), policy="same-rank")
    (32, 8)
    >>> simulcast.check((32, 1), (32,), policy="SC102=deny", names=["pred", "target"])
    Traceback (most recent call last):
    simulcast.BroadcastError: SC102: a column meets a row of the same length: pred repeats ...
    """
    policy = _current() if policy is None else _read(policy)
    sight = _Sight(policy, "check", operands, rule, names)
    sight.look(policy._judge(operands, rule, names))
    sight.act()
    return sight.shape


def _current() -> Policy:
    """The policy that holds here."""
    return _policy.get() or _default


@contextmanager
def everywhere(policy: Policy) -> Iterator[None]:
    """Within it, `policy` holds in every context that has none of its own: those of other threads too."""
    global _default
    _activate()
    before, _default = _default, policy
    try:
        yield
    finally:
        _default = before


@contextmanager
def unasked() -> Iterator[None]:
    """Within it nobody is asked: what is computed there was asked of already, as a whole."""
    policy, record = _policy.set(_ALLOWED), _record.set(None)
    try:
        yield
    finally:
        _record.reset(record)
        _policy.reset(policy)


def observe(
    function: str,
    shapes: _Shapes,
    rule: str | Rule = _NUMPY,
    names: Sequence[str] | None = None,
    deliberate: bool = False,
) -> _Sight | None:
    """A broadcast is about to happen: record it, warn of it or refuse it."""
    judged = _current()._judge(shapes, rule, names, deliberate=deliberate)
    return tell(function, shapes, rule, names, (False, deliberate), judged)


def tell(
    function: str,
    shapes: _Shapes,
    rule: str | Rule,
    names: Sequence[str] | None,
    known: tuple[bool, bool],
    judged: _Judged,
) -> _Sight | None:
    """What was found about a broadcast: record it, then refuse it or warn of it. The extension calls this, with
    whether the result is reduced to one number and whether an axis was inserted on purpose.

    Returns what is not confirmed, for whoever may see more.
    """
    sight = _Sight(_current(), function, shapes, rule, names, *known)
    sight.look(judged)
    _note(sight)
    sight.act()
    return sight if sight.unconfirmed else None


# Where findings of every context are listed too, while tests run.
_everyone: list[Broadcast] | None = None


def _note(sight: _Sight) -> None:
    """Lists a broadcast where a record is kept."""
    own, everyone, found = _record.get(), _everyone, sight.found()
    if own is None and not (everyone is not None and found):
        return
    if all(shape == sight.shape for shape in sight.shapes):
        return
    broadcast = Broadcast(
        sight.function,
        sight.shapes,
        cast("Any", sight.shape),
        str(sight.rule),
        tuple(finding.code for finding in found),
        sight.file,
        sight.line,
        tuple(found),
        () if sight.names is None else tuple(sight.names),
        None if sight.refused is None else sight.refused.code,
        None if sight.place is None else (sight.place.end_line, sight.place.column, sight.place.end_column),
    )
    if own is not None:
        own.append(broadcast)
    if everyone is not None and found:
        everyone.append(broadcast)


class _Sight:
    """A broadcast as it is seen at a place in a program, with what is known about it."""

    def __init__(
        self,
        policy: Policy,
        function: str,
        shapes: tuple[Any, ...],
        rule: str | Rule,
        names: Sequence[str] | None,
        reduced: bool = False,
        deliberate: bool = False,
    ) -> None:
        frame = _caller()
        self.policy, self.function, self.shapes, self.rule, self.names = policy, function, shapes, rule, names
        self.file, self.line, self.at = frame.f_code.co_filename, frame.f_lineno, (frame.f_code, frame.f_lasti)
        self.globals = frame.f_globals
        self.reduced, self.deliberate, self.varied = reduced, deliberate, False
        self.place: _places.Place | None = None
        self._frame: FrameType | None = frame

    def look(self, judged: _Judged) -> None:
        """Takes a judgement, and judges again where the place says more."""
        self._take(judged)
        frame, self._frame = self._frame, None
        found = self.found()
        if not found or frame is None:
            return
        ignored = _suppress.suppressed(self.file, self.line)
        self.varied = self._has_varied(found)
        written = self._read(frame)
        if ignored or self.varied or written:
            self._judge(ignored)

    def _read(self, frame: FrameType) -> bool:
        """Takes from the program's text where the expression is, what its operands are called, and whether it inserts
        an axis; whether that says something new.
        """
        operation = _places.operation(frame)
        self.place = operation.place
        count = len(self.shapes)
        own = None if self.names is not None else _places.arguments(operation.node, count)
        if own is None:
            return False
        # Shapes that are written out are no names.
        literals = (ast.Constant, ast.Dict, ast.List, ast.Tuple)
        names = [None if node is None or isinstance(node, literals) else _places.written(node) for node in own]
        if all(name is not None for name in names) and len(set(names)) == count:
            self.names = cast("list[str]", names)
        self.deliberate |= any(map(_places.makes_ones, own))
        return self.deliberate or self.names is not None

    def reduce(self) -> None:
        """The result was reduced to one number: acts on what that confirms, at the place of the broadcast."""
        self.reduced = True
        self._judge(_suppress.suppressed(self.file, self.line))
        if self.warned or self.refused:
            _note(self)
        self.act()

    def _judge(self, ignored: set[str]) -> None:
        self._take(
            self.policy._judge(
                self.shapes,
                self.rule,
                self.names,
                varied=self.varied,
                reduced=self.reduced,
                deliberate=self.deliberate,
                ignored=list(ignored),
            )
        )

    def _take(self, judged: _Judged) -> None:
        self.shape, self.raised, self.refused, self.warned, self.unconfirmed = judged

    def found(self) -> list[Finding]:
        """Every finding that the policy does not allow, or would not if it were confirmed."""
        found = [] if self.refused is None else [self.refused]
        found += self.warned
        return found + [own for own in self.unconfirmed if own not in found]

    def _has_varied(self, found: Sequence[Finding]) -> bool:
        """Whether a finding was seen here with another size."""
        varied = False
        for finding in found:
            sizes = tuple(self.shape[axis] for axis in finding.axes) if self.shape is not None else ()
            key = (*self.at, self.function, finding.code)
            known = _seen.setdefault(key, sizes)
            varied |= known != sizes
        while len(_seen) > _SEEN_MAX:
            _seen.pop(next(iter(_seen)), None)
        return varied

    def act(self) -> None:
        """Refuses or warns."""
        if self.raised is not None:
            raise self.raised
        registry = self.globals.setdefault("__warningregistry__", {})
        place = (self.file, self.line, self.globals.get("__name__"))
        for finding in self.warned:
            help = "".join(f"; help: {fix}" for fix in finding.suggestions[:1])
            warnings.warn_explicit(f"{finding}{help}", BroadcastWarning, *place, registry)


# The sizes with which a finding was first seen at a place: an instruction, the function called there, the code.
_seen: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_SEEN_MAX = 4096


def observe_view(function: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    """A view in a shape that was asked for: record it."""
    broadcasts = _record.get()
    if broadcasts is not None and shape != result:
        frame = _caller()
        place = (frame.f_code.co_filename, frame.f_lineno)
        broadcasts.append(Broadcast(function, (shape,), result, "to", (), *place))


def _caller() -> FrameType:
    """The innermost frame that is neither ours nor NumPy's."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in ("simulcast", "numpy"):
            break
        frame = frame.f_back
    return frame


class _Guarded(np.ndarray[Any, Any]):
    """An array whose NumPy operators ask the policy.

    The result of a broadcast that is suspicious knows so, and what is computed of it element by element: a reduction
    to one number confirms it.
    """

    _sight: _Sight | None = None

    def __array_finalize__(self, of: Any) -> None:
        sight = getattr(of, "_sight", None)
        if sight is not None and self.size == of.size:
            self._sight = sight

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] | None = None, **options: Any
    ) -> Any:
        asked = method == "__call__" and ufunc.signature is None
        sight = next((own for own in (getattr(x, "_sight", None) for x in inputs) if own is not None), None)
        if asked:
            operands = [*inputs, options["where"]] if "where" in options else inputs
            shapes = tuple(np.shape(x) for x in operands)
            if len(set(shapes)) > 1:
                sight = observe(ufunc.__name__, shapes) or sight
        bare = tuple(_bare(x) for x in inputs)
        options = {key: _bare(value) for key, value in options.items()}
        if out is not None:
            options["out"] = tuple(_bare(x) for x in out)
        if out is not None and asked:
            _observe_out(shapes, out)
        results = getattr(ufunc, method)(*bare, **options)
        if sight is not None and method == "reduce" and np.size(results) == 1:
            sight.reduce()
            sight = None
        if not isinstance(results, tuple):
            return _guarded(results, out and out[0], sight)
        outs = out or (None,) * len(results)
        return tuple(_guarded(own, given, sight) for own, given in zip(results, outs))


def _observe_out(shapes: _Shapes, out: tuple[Any, ...]) -> None:
    """A result stretches to an `out`: record it, as for the functions of this package."""
    if _record.get() is None:
        return
    for own in out:
        if own is not None:
            observe_view("out", np.broadcast_shapes(*shapes), np.shape(own))


def _bare(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, _Guarded) else x


def _guarded(result: Any, given: Any, sight: _Sight | None) -> Any:
    """What an operator gives back: the `out` it was given, a guarded array, or a scalar as it is."""
    if given is not None:
        return given
    # Another class of arrays, such as a masked one, knows more than we do.
    if type(result) is not np.ndarray:
        return result
    own = result.view(_Guarded)
    own._sight = sight
    return own


def guard(x: ArrayLike) -> NDArray[Any]:
    """A view of an array whose NumPy operators ask the policy: for code that is written already.

    >>> import numpy as np, simulcast
    >>> pred, target = simulcast.guard(np.ones((32, 1))), np.ones(32)
    >>> with simulcast.strict():
    ...     ((pred - target) ** 2).mean()
    Traceback (most recent call last):
    simulcast.BroadcastError: SC102: ...

    Operators and ufuncs ask, and their results are guarded too; `np.where` and other functions that
    are no ufuncs do not. Where the result of a suspicious broadcast is reduced to one number, as a loss is, that
    confirms it.
    """
    from ._inputs import dask_array, plain, refuse_labels

    if callable(x) and not hasattr(x, "__array__"):
        raise TypeError(
            f"guard takes an array, not {_called(x)}: guard its arguments, or forbid broadcasts in all of it by "
            "@simulcast.strict(); for PyTorch there is @simulcast.torch.guard()"
        )
    refuse_labels("guard", x)
    dask = dask_array()
    if dask is not None and isinstance(x, dask.Array):
        raise TypeError("guard is for arrays in memory; functions of simulcast ask the policy of Dask's arrays too")
    own = plain(x)
    if own.dtype == object and own.ndim == 0 and own is not x:
        raise TypeError(f"guard takes an array, not {_called(x)}")
    return own.view(_Guarded)


def _called(x: object) -> str:
    """What something is, for an error."""
    from ._inputs import _shown

    return f"the function {x.__name__}" if hasattr(x, "__name__") and callable(x) else _shown(x)
