"""JAX: the broadcasts of a step, checked once by tracing it. Nothing is added to what runs.

```python
import simulcast.jax

simulcast.jax.check(step, params, batch)  # warns at the line where (32, 1) meets (32,)
```

`jax.make_jaxpr` traces the step without computing it, and its equations know their source lines. JAX is loaded when it is
first needed.
"""

from __future__ import annotations

import ast
import importlib
import os
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _places
from ._findings import Findings, PlacedFinding, Site
from ._simulcast import Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import CodeType

    Shape = tuple[int, ...]
    Instruction = tuple[CodeType, int]

__all__ = ["Findings", "PlacedFinding", "check"]

# Primitives that join arrays element by element, by the names of NumPy where they have others.
_MEETINGS = {
    "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "remainder",
    "pow": "power", "max": "maximum", "min": "minimum", "atan2": "arctan2", "nextafter": "nextafter", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "shift_left": "left_shift", "shift_right_arithmetic": "right_shift",
    "shift_right_logical": "right_shift", "select_n": "where", "clamp": "clip", "complex": "complex",
    "igamma": "igamma", "igammac": "igammac", "zeta": "zeta",
}  # fmt: skip
_REDUCTIONS = {"reduce_sum": "sum", "reduce_prod": "prod"}
# Primitives through which the elements of a loss go on to its sum.
_KEEPS = frozenset(
    """
    integer_pow square abs neg exp exp2 expm1 log log1p sqrt rsqrt tanh logistic erf sign convert_element_type copy
    stop_gradient reshape squeeze
    """.split()
) | frozenset(_MEETINGS)


def check(
    step: Callable[..., Any],
    *args: Any,
    policy: str | Policy | None = None,
    exclude: Iterable[str] = (),
    **kwargs: Any,
) -> Findings:
    """Traces `step(*args, **kwargs)` once, judges every broadcast in it, and gives back what was found.

    Arguments are arrays or `jax.ShapeDtypeStruct`s; nothing is computed. A finding is confirmed if its result is reduced
    to one number. What is confirmed is warned of at its line, or raised, as `policy` says (by default the one that
    holds); `exclude` are patterns of files whose broadcasts are passed over: `"flax/*"`.
    """
    try:
        jax = importlib.import_module("jax")
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ModuleNotFoundError(
            "simulcast.jax needs JAX, which is not installed here: pip install jax", name="jax"
        ) from None
    folder = os.path.dirname(os.path.abspath(str(jax.__file__))) + os.sep
    read = policy if policy is None or isinstance(policy, Policy) else Policy(policy)
    reader = _Reader(Findings(policy=read), _places.Files(folder, exclude))
    reader.read(jax.make_jaxpr(step)(*args, **kwargs).jaxpr, {})
    return reader.findings


class _Origin(NamedTuple):
    """Where the array of a variable comes from."""

    shape: Shape
    """Its shape before axes were added on its left."""
    added: Instruction | None
    """The instruction that added them."""
    findings: tuple[PlacedFinding, ...] = ()
    """The findings whose elements it holds."""


class _Reader:
    """Reads a jaxpr, equation by equation."""

    def __init__(self, findings: Findings, files: _places.Files) -> None:
        self.findings, self._files = findings, files

    def read(
        self, jaxpr: Any, known: dict[Any, _Origin], caller: Instruction | None = None
    ) -> list[_Origin | None]:
        """Judges the equations, and gives back what is known of the results. `caller` called what is traced by itself."""
        for equation in jaxpr.eqns:
            inputs = [_known(known, own) for own in equation.invars]
            inner = [own for value in equation.params.values() for own in _jaxprs(value)]
            instruction = self._instruction(equation, caller)
            for own in inner:
                self._read_inner(own, equation, inputs, known, instruction)
            if not inner and equation.invars:
                self._equation(equation, inputs, known, instruction)
        return [_known(known, own) for own in jaxpr.outvars]

    def _read_inner(
        self, jaxpr: Any, equation: Any, inputs: list[_Origin | None], known: dict[Any, _Origin],
        caller: Instruction | None,
    ) -> None:
        pairs = zip(jaxpr.invars, inputs) if len(jaxpr.invars) == len(inputs) else ()
        results = self.read(jaxpr, {own: origin for own, origin in pairs if origin is not None}, caller)
        if len(results) == len(equation.outvars):
            known.update((own, made) for own, made in zip(equation.outvars, results) if made is not None)

    def _equation(
        self, equation: Any, inputs: list[_Origin | None], known: dict[Any, _Origin], instruction: Instruction | None
    ) -> None:
        name = equation.primitive.name
        out = equation.outvars[0] if equation.outvars else None
        carried = tuple(finding for origin in inputs if origin is not None for finding in origin.findings)
        if name == "broadcast_in_dim":
            origin = inputs[0]
            if _adds_on_the_left(equation):
                again = origin is not None and instruction is not None and origin.added == instruction
                shape = origin.shape if again and origin is not None else _shape(equation.invars[0])
                known[out] = _Origin(shape, instruction, carried)
            return
        before, after = max(prod(_shape(own)) for own in equation.invars), prod(_shape(out))
        if name in _REDUCTIONS and after == 1 < before:
            for finding in carried:
                self.findings.reduced(finding, _REDUCTIONS[name])
            return
        kept = carried if name in _REDUCTIONS or (name in _KEEPS and after == before) else ()
        if name in _MEETINGS and instruction is not None:
            made = self._meet(name, equation, inputs, instruction)
            kept = kept if made is None else (made, *kept)
        if kept:
            known[out] = _Origin(_shape(out), None, kept)

    def _meet(
        self, name: str, equation: Any, inputs: list[_Origin | None], instruction: Instruction
    ) -> PlacedFinding | None:
        """Operands meet: with the shapes that the program gave them."""
        shapes = []
        for variable, origin in zip(equation.invars, inputs):
            own = origin is not None and origin.added == instruction
            shapes.append(origin.shape if own and origin is not None else _shape(variable))
        if name == "select_n":
            # The case of `False` comes first.
            shapes = [shapes[0], *reversed(shapes[1:])]
        if len(set(shapes)) < 2:
            return None
        judged = self.findings.look(tuple(shapes))
        if judged is None:
            return None
        operation = _places.operation_of(*instruction)
        nodes = _places.arguments(operation.node, len(shapes))
        if nodes is None or (isinstance(operation.node, ast.Call) and len(operation.node.args) != len(shapes)):
            nodes = [None] * len(shapes)
        letters = (chr(ord("A") + place) for place in range(len(nodes)))
        names = tuple((own and _places.written(own)) or letter for own, letter in zip(nodes, letters))
        file = operation.place.file
        spans = tuple(_places.span_in(own, file) for own in nodes)
        deliberate = any(map(_places.makes_ones, nodes))
        site = Site(operation.place, names, spans, deliberate, "")
        return self.findings.seen(judged, _MEETINGS[name], site, tuple(shapes))

    def _instruction(self, equation: Any, caller: Instruction | None) -> Instruction | None:
        """The instruction of the program that made an equation; `None` where it is passed over."""
        traceback = getattr(equation.source_info, "traceback", None)
        codes, places = traceback.raw_frames() if traceback is not None else ((), ())
        for code, place in zip(codes, places):
            if not self._files.is_internal(code.co_filename):
                return None if self._files.is_excluded(code.co_filename) else (code, place)
        # What JAX compiles by itself has no frames of the program.
        return caller


def _known(known: dict[Any, _Origin], variable: Any) -> _Origin | None:
    # Constants are no variables, and cannot be keys.
    return None if hasattr(variable, "val") else known.get(variable)


def _jaxprs(value: Any) -> Iterator[Any]:
    """The jaxprs in a parameter of an equation."""
    if isinstance(value, (list, tuple)):
        for own in value:
            yield from _jaxprs(own)
    elif hasattr(value, "eqns"):
        yield getattr(value, "jaxpr", value)


def _shape(variable: Any) -> Shape:
    """The shape of a variable; sizes that are symbols count as 0, which repeats nothing."""
    shape = getattr(getattr(variable, "aval", None), "shape", ())
    return tuple(size if isinstance(size, int) else 0 for size in shape)


def _adds_on_the_left(equation: Any) -> bool:
    """Whether a broadcast keeps the operand's axes at the right end, as NumPy's rule does."""
    own, result = len(_shape(equation.invars[0])), len(_shape(equation.outvars[0]))
    return tuple(equation.params["broadcast_dimensions"]) == tuple(range(result - own, result))
