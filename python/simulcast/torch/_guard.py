"""`guard`, `install` and `uninstall`: when the mode is on."""

from __future__ import annotations

import functools
import importlib
import re
import threading
import warnings
import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from .. import _policy
from .._simulcast import Policy
from . import _mode, _raised
from ._load import load
from ._watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def _untraced(reason: str) -> Callable[[_Function], _Function]:
    """A function at which `torch.compile` breaks its graph (`torch.compiler.disable`), or where it must not, says why."""

    def mark(function: _Function) -> _Function:
        function._torchdynamo_disable = True  # type: ignore[attr-defined]
        function._torchdynamo_disable_msg = reason  # type: ignore[attr-defined]
        return function

    return mark


def _is_traced() -> bool:
    """Whether `torch.compile` reads what runs here, which it does with every function that it can."""
    try:
        from torch.compiler import is_compiling  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return False
    return bool(is_compiling())


class _Unwatched:
    """What a guard gives within a function that is compiled."""

    findings: tuple[()] = ()
    confirmed: tuple[()] = ()


class Guard:
    """What `guard` gives: a block, or a decorator."""

    def __init__(
        self,
        policy: str | Policy | None = None,
        *,
        steps: int | None = None,
        exclude: Iterable[str] = (),
        watch: Watch | None = None,
    ) -> None:
        if _is_traced():
            self.watch = cast("Watch", _Unwatched())
            return
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise ValueError(f"steps is a number of steps from 1 on, not {steps!r}")
        self._policy = None if policy is None else _policy._read(policy)
        self._steps = steps
        self.watch = Watch(exclude) if watch is None else watch
        self._entered = _Entered()

    def __enter__(self) -> Watch:
        if _is_traced():
            return self.watch
        with ExitStack() as stack:
            if self._policy is not None:
                stack.enter_context(_policy.using(self._policy))
            presence = Presence(self.watch, _mode.Switch())
            stack.callback(presence.leave_for_good)
            presence.come()
            if self._steps is not None:
                stack.enter_context(Steps(self._steps, presence))
            self._entered.stacks.append(stack.pop_all())
        return self.watch

    def __exit__(self, *exception: object) -> None:
        if _is_traced():
            return
        if not self._entered.stacks:
            raise RuntimeError("a guard is left that was not entered")
        if len(exception) == 3 and isinstance(exception[1], BaseException):
            _raised.explain(exception[1], self.watch)
        self._entered.stacks.pop().close()

    def __call__(self, function: _Function) -> _Function:
        """The function under this guard."""
        import inspect

        suspended = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction
        if any(kind(function) for kind in suspended):
            raise TypeError(f"{function.__name__} is suspended and resumed: use `with` inside of it")

        @functools.wraps(function)
        def guarded(*args: Any, **options: Any) -> Any:
            if _is_traced():
                return function(*args, **options)
            with self:
                return function(*args, **options)

        return cast("_Function", guarded)


@overload
def guard(policy: _Function, /) -> _Function: ...


@overload
def guard(
    policy: str | Policy | None = None,
    *,
    steps: int | None = None,
    exclude: Iterable[str] = (),
    watch: Watch | None = None,
) -> Guard: ...


def guard(
    policy: Any = None, *, steps: int | None = None, exclude: Iterable[str] = (), watch: Watch | None = None
) -> Any:
    """Within a block or a function, PyTorch's element-wise calls and losses are watched for accidental broadcasts.

    ```python
    with simulcast.torch.guard():
        train()
    ```

    A finding is told once it cannot be a coincidence: when its place was seen with two sizes (a last, smaller batch
    does it), or its result is reduced to one number. It is warned of at the user's line, or raised, as the policy says.

    - `policy`: a `Policy` or its text; without it, the one that holds (`simulcast.using`, `SIMULCAST_POLICY`), by
      default `SC102=warn`. `"SC102=deny"` raises.
    - `steps`: after so many steps of an optimizer, the guard leaves, and comes back for one step when a batch of
      another size arrives. Without it, it stays.
    - `exclude`: patterns of files whose broadcasts are passed over: `"transformers/*"`.
    - `watch`: a `Watch` that several guards share.

    As a decorator it needs no brackets: `@simulcast.torch.guard`. A block gives the `Watch`, whose `findings` lists what was found. A guard belongs to its thread; `install` reaches
    all threads. It steps aside while `torch.compile` traces; within a function that is compiled it does nothing at all.
    """
    own = Guard(None if callable(policy) else policy, steps=steps, exclude=exclude, watch=watch)
    return own(policy) if callable(policy) else own


class _Entered(threading.local):
    """What a guard began in each thread, the innermost last."""

    def __init__(self) -> None:
        self.stacks: list[ExitStack] = []


class Presence:
    """A mode on the stack of this thread, which may go and come back before its block ends."""

    def __init__(self, watch: Watch, switch: _mode.Switch) -> None:
        self._switch = switch
        self._mode = _mode.make(watch, switch)
        self._current = load().overrides._get_current_function_mode
        self._thread = threading.get_ident()
        self._here = False

    @property
    def is_here(self) -> bool:
        """Whether the mode is on."""
        return self._here

    def come(self) -> None:
        """Puts the mode on top of the stack."""
        if not self._here and self._thread == threading.get_ident():
            self._mode.__enter__()
            self._here = True

    def leave(self) -> bool:
        """Takes the mode off, unless another one lies on top of it: then it stays for now."""
        if self._here and self._thread == threading.get_ident() and self._current() is self._mode:
            self._mode.__exit__(None, None, None)
            self._here = False
        return not self._here

    def leave_for_good(self) -> None:
        """Ends the mode and those of its switch. It stays on the stack, and does nothing, where it cannot be taken off:
        in another thread, or below another mode.
        """
        self._switch.is_on = False
        self.leave()


class Steps:
    """Counts steps of optimizers, and takes the mode off after the first ones.

    The modules that were called first of all are asked afterwards for the size of their first axis: a batch of another
    size brings the mode back for a step, once.
    """

    def __init__(self, steps: int, presence: Presence) -> None:
        self._left = steps
        self._presence = presence
        self._handles: list[Any] = []
        self._covered: weakref.WeakSet[Any] = weakref.WeakSet()
        self._sizes: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()
        self._again = False
        self._torch = load()
        # Of a compiled module PyTorch warns that hooks such as ours are called twice, which does them no harm.
        message = re.compile("Using `torch.compile.module.` when there are global hooks")
        self._filter = ("ignore", message, Warning, None, 0)
        self._filters = cast("list[Any]", warnings.filters)
        # A hook that is traced must do nothing that cannot be.
        self._is_compiling = self._torch.compiler.is_compiling

    def __enter__(self) -> Steps:
        self._filters.insert(0, self._filter)
        hooks = importlib.import_module("torch.optim.optimizer")
        self._post = hooks.register_optimizer_step_post_hook(self._stepped)
        modules = self._torch.nn.modules.module
        self._first = modules.register_module_forward_pre_hook(self._called)
        self._handles.append(self._first)
        return self

    def __exit__(self, *exception: object) -> None:
        self._leave_modules()
        self._post.remove()
        # An equal entry may be the program's own.
        for place, own in enumerate(self._filters):
            if own is self._filter:
                del self._filters[place]
                break

    def _leave_modules(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _called(self, module: Any, args: tuple[Any, ...]) -> None:
        """A module is called while the first steps are watched."""
        if self._is_compiling() or module in self._covered:
            return
        # Whatever contains it was called before it.
        self._covered.update(module.modules())
        self._sizes[module] = set()
        hook = module.register_forward_pre_hook(self._batch, with_kwargs=True)
        self._handles.append(hook)
        self._batch(module, args, {})

    def _batch(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A batch goes into a module that nothing else contains."""
        if self._is_compiling():
            return
        size = self._size((*args, *kwargs.values()))
        known = self._sizes.get(module)
        if size is None or known is None:
            return
        if self._left > 0:
            known.add(size)
        elif not self._again and len(known) == 1 and size not in known:
            self._again = True
            self._presence.come()
        elif self._again and self._presence.is_here and size in known:
            self._finish()

    def _size(self, values: tuple[Any, ...]) -> int | None:
        for own in values:
            if isinstance(own, self._torch.Tensor) and own.dim():
                return int(own.shape[0])
        return None

    def _stepped(self, *_: Any) -> None:
        """An optimizer has made a step."""
        if self._left > 0:
            self._left -= 1
        if self._left == 0 and self._presence.is_here:
            if self._again:
                self._finish()
            elif self._presence.leave():
                self._first.remove()

    def _finish(self) -> None:
        """There is no more to watch. The hook of optimizers stays: PyTorch may be going through those just now."""
        if self._presence.leave():
            self._leave_modules()


class _Installed:
    """The guard of all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stack: ExitStack | None = None
        self.watch: Watch | None = None


_installed = _Installed()


@_untraced("simulcast.torch.install() reaches all threads: call it outside of the function that is compiled")
def install(
    policy: str | Policy | None = None, *, exclude: Iterable[str] = (), watch: Watch | None = None
) -> Watch:
    """Puts this thread, and every thread that starts from now on, under guard, until `uninstall`.

    Threads of Python are reached: those of `DataParallel`, of executors, of data loaders. Threads that run already,
    and those that PyTorch starts itself for the backward pass on a GPU, are not. `policy` and `exclude` are those of `guard`;
    a policy holds in every context that has none of its own.
    """
    with _installed.lock:
        if _installed.stack is not None:
            raise RuntimeError("a guard is installed already: simulcast.torch.uninstall() ends it")
        own, switch = Watch(exclude) if watch is None else watch, _mode.Switch()
        with ExitStack() as stack:
            if policy is not None:
                stack.enter_context(_policy.everywhere(_policy._read(policy)))
            bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

            @functools.wraps(bootstrap)
            def guarded(thread: threading.Thread) -> None:
                presence = Presence(own, switch)
                presence.come()
                try:
                    bootstrap(thread)
                finally:
                    presence.leave()

            threading.Thread._bootstrap_inner = guarded  # type: ignore[attr-defined]
            stack.callback(setattr, threading.Thread, "_bootstrap_inner", bootstrap)
            stack.enter_context(_raised.hooks(own))
            presence = Presence(own, switch)
            presence.come()
            stack.callback(presence.leave_for_good)
            _installed.stack, _installed.watch = stack.pop_all(), own
        return own


@_untraced("simulcast.torch.uninstall() ends the guard of all threads: call it outside of the function that is compiled")
def uninstall() -> Watch:
    """Ends what `install` began, in all threads, and gives back what was seen."""
    with _installed.lock:
        if _installed.stack is None or _installed.watch is None:
            raise RuntimeError("no guard is installed")
        stack, watch = _installed.stack, _installed.watch
        _installed.stack = _installed.watch = None
        stack.close()
        return watch
