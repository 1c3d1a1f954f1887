"""Callbacks of Lightning and of Hugging Face's Trainer: training under guard by one argument."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._guard import guard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._simulcast import Policy

_made: dict[str, Any] = {}


class _Held:
    """A guard that begins and ends with training."""

    def __init__(
        self, policy: str | Policy | None = None, *, steps: int | None = None, exclude: Iterable[str] = ()
    ) -> None:
        """The arguments are those of `guard`."""
        super().__init__()
        self._guard = guard(policy, steps=steps, exclude=exclude)
        self.watch = self._guard.watch
        self._on = False

    def _begin(self) -> None:
        # A training that failed may not have ended.
        self._end()
        self._guard.__enter__()
        self._on = True

    def _end(self, *exception: object) -> None:
        if self._on:
            self._on = False
            self._guard.__exit__(*exception)


def make(name: str) -> Any:
    """The class of this name, made when it is first asked for."""
    if name not in _made:
        _made[name] = {"LightningCallback": _lightning, "TrainerCallback": _hugging_face}[name]()
    return _made[name]


def _base(modules: Iterable[str], name: str, why: str) -> Any:
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            # One that is there, and lacks something itself, says so.
            if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
                raise
    raise ModuleNotFoundError(why)


def _lightning() -> Any:
    base: Any = _base(
        ("lightning.pytorch", "pytorch_lightning"),
        "Callback",
        "simulcast.torch.LightningCallback needs Lightning: pip install lightning",
    )

    class LightningCallback(_Held, base):  # type: ignore[misc]
        """Training under `simulcast.torch.guard`: `Trainer(callbacks=[LightningCallback(steps=3)])`.

        The arguments are those of `guard`; `watch` is what was seen.
        """

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            """Begins to watch."""
            self._begin()

        def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
            """Ends."""
            self._end()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            """Ends, and explains an error of shapes."""
            self._end(type(exception), exception, exception.__traceback__)

    return _public(LightningCallback)


def _hugging_face() -> Any:
    base: Any = _base(
        ("transformers",),
        "TrainerCallback",
        "simulcast.torch.TrainerCallback needs Hugging Face's transformers: pip install transformers",
    )

    class TrainerCallback(_Held, base):  # type: ignore[misc]
        """Training under `simulcast.torch.guard`: `Trainer(..., callbacks=[TrainerCallback(steps=3)])`.

        The arguments are those of `guard`; `watch` is what was seen.
        """

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Begins to watch."""
            self._begin()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            """Ends."""
            self._end()

    return _public(TrainerCallback)


def _public(made: Any) -> Any:
    made.__module__ = "simulcast.torch"
    made.__qualname__ = made.__name__
    return made


if TYPE_CHECKING:

    class LightningCallback(_Held):
        """Lightning's callback."""

    class TrainerCallback(_Held):
        """Hugging Face's callback."""
