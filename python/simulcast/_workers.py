"""What Dask runs on other threads and processes: under the policy and the record of the caller, and ended by Ctrl-C.

Context variables do not reach the threads of a scheduler. Where a policy or a record of ours holds, each task that one of
Dask's own schedulers is about to start is handed over with it (a policy also to other processes; a record is one of this
process). The cluster of `distributed` starts its tasks elsewhere: there a function takes its policy along as a decorator.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _policy
from ._simulcast import Policy, _activate, _set_stoppable

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def stoppable(function: _Function) -> _Function:
    """The function of blocks, whose calls end where Ctrl-C interrupts the main thread, which waits for them."""

    @functools.wraps(function)
    def stopped(*args: Any, **options: Any) -> Any:
        before = _set_stoppable(True)
        try:
            return function(*args, **options)
        finally:
            _set_stoppable(before)

    return cast("_Function", stopped)


class Held:
    """A task of Dask's under a policy and a record; what else Dask asks of it, the task answers."""

    def __init__(self, task: Any, policy: Policy | None, record: list[Any] | None) -> None:
        self.task, self.policy, self.record = task, policy, record

    def __call__(self, *args: Any, **options: Any) -> Any:
        policy, record = _policy._policy.set(self.policy), _policy._record.set(self.record)
        _activate()
        try:
            return self.task(*args, **options)
        finally:
            _policy._record.reset(record)
            _policy._policy.reset(policy)

    def __getattr__(self, name: str) -> Any:
        if name in ("task", "policy", "record"):
            raise AttributeError(name)
        return getattr(self.task, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Held, (self.task, self.policy, None)


def _before(key: Any, graph: Any, _state: Any) -> None:
    policy, record = _policy._policy.get(), _policy._record.get()
    task = graph[key]
    if (policy is not None or record is not None) and callable(task) and not isinstance(task, Held):
        graph[key] = Held(task, policy, record)


def _after(graph: Any, _state: Any, _failed: bool) -> None:
    for key, task in graph.items():
        if isinstance(task, Held):
            graph[key] = task.task


_registered = False


def follow() -> None:
    """From now on tasks follow their caller, where the program has imported Dask."""
    global _registered
    if not _registered and "dask" in sys.modules:
        from dask.callbacks import Callback

        # Dask has no types of its own.
        callback: Any = Callback
        callback(pretask=_before, finish=_after).register()
        _registered = True
