"""Errors and warnings: data first, text second.

All that an error holds goes through its arguments, so that it pickles, which is how Dask's workers
report it.
"""

from __future__ import annotations

from typing import Any


class Fix(str):
    """A change that makes shapes broadcast, checked to work. It reads as text, and holds the parts.

    >>> import simulcast
    >>> try:
    ...     simulcast.broadcast_shapes((2, 3, 4), (2, 4))
    ... except simulcast.BroadcastError as error:
    ...     fix = error.suggestions[0]
    >>> fix.expression, fix.shape, fix.result
    ('B[:, None, :]', (2, 1, 4), (2, 3, 4))
    """

    __slots__ = ("expression", "shape", "result")

    expression: str
    """The change as it is written: `B[:, None, :]`, `B.T`, `axis = 1`."""
    shape: tuple[int, ...] | None
    """The new shape of the operand, where one is changed."""
    result: tuple[int, ...]
    """The shape of the result that the change leads to."""

    def __new__(
        cls, text: str, expression: str = "", shape: tuple[int, ...] | None = None, result: tuple[int, ...] = ()
    ) -> Fix:
        fix = super().__new__(cls, text)
        fix.expression, fix.shape, fix.result = expression, shape, result
        return fix

    def __reduce__(self) -> tuple[Any, ...]:
        return Fix, (str(self), self.expression, self.shape, self.result)


class BroadcastError(ValueError):
    """Shapes do not broadcast, or a policy refuses that they do.

    >>> import simulcast
    >>> try:
    ...     simulcast.broadcast_shapes((2, 3, 4), (2, 4))
    ... except simulcast.BroadcastError as error:
    ...     print(error.code, error.axis, error.shapes, error.suggestions[0])
    E1 1 ((2, 3, 4), (2, 4)) B[:, None, :] is (2, 1, 4), result (2, 3, 4)
    """

    def __init__(self, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message, data)
        data = data or {}
        self.code: str | None = data.get("code")
        """`E1` for sizes that clash, another code of the command, or that of a finding (`SC102`)."""
        self.axis: int | None = data.get("axis")
        """The first result axis concerned, counted from 0, or `None`."""
        self.operands: tuple[int, ...] = data.get("operands", ())
        """The operands concerned, counted from 0."""
        self.shapes: tuple[tuple[int | str | None, ...] | None, ...] = data.get("shapes", ())
        """The shapes of all operands."""
        self.names: tuple[str, ...] = data.get("names", ())
        """What the operands are called."""
        self.rule: str | None = data.get("rule")
        """The rule, as text."""
        self.suggestions: tuple[Fix, ...] = data.get("suggestions", ())
        """Changes that make the shapes broadcast; each was checked to work."""

    def __str__(self) -> str:
        return str(self.args[0])


class ExpressionError(ValueError):
    """A text that is no expression, or one that cannot be computed; the message points into it.

    >>> import simulcast
    >>> try:
    ...     simulcast.evaluate("x +* y", x=1, y=2)
    ... except simulcast.ExpressionError as error:
    ...     print(error.expression, error.span)
    x +* y (3, 4)
    """

    def __init__(self, message: str, expression: str = "", span: tuple[int, int] = (0, 0)) -> None:
        super().__init__(message, expression, span)
        self.expression = expression
        """The text."""
        self.span = span
        """The part of it that is wrong, in characters: `expression[slice(*span)]`."""

    def __str__(self) -> str:
        return str(self.args[0])


class ExpressionTypeError(ExpressionError, TypeError):
    """An expression whose operands have types that do not go together."""


class BroadcastWarning(UserWarning):
    """A legal broadcast that is suspicious."""


# Tracebacks and pickles name the classes as programs import them.
for _class in (Fix, BroadcastError, ExpressionError, ExpressionTypeError, BroadcastWarning):
    _class.__module__ = "simulcast"
