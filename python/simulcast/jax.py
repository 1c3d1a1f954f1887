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
    if not callable(step):
        raise TypeError(f"check takes a step, a function that it traces, not {step!r}")
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
    findings: tuple[tuple[PlacedFinding, int], ...] = ()
    """The findings whose elements it holds, each with the number of axes on the left that `vmap` maps over."""
    mapped: int = 0
    """How many of the first axes of `shape` are axes that `vmap` maps over."""
    batch: int = 0
    """How many axes on the left of the array itself are such axes, as far as its broadcasts tell."""


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
        if len(results) != len(equation.outvars):
            return
        for own, made in zip(equation.outvars, results):
            if made is None:
                continue
            # Branches of a condition give the same result: what each of them found goes on.
            before = known.get(own)
            findings = () if before is None else tuple(old for old in before.findings if old not in made.findings)
            known[own] = made._replace(findings=findings + made.findings)

    def _equation(
        self, equation: Any, inputs: list[_Origin | None], known: dict[Any, _Origin], instruction: Instruction | None
    ) -> None:
        name = equation.primitive.name
        out = equation.outvars[0] if equation.outvars else None
        carried = tuple(finding for origin in inputs if origin is not None for finding in origin.findings)
        if name == "broadcast_in_dim":
            made = _broadcast(equation, inputs[0], instruction)
            if made is not None:
                known[out] = made._replace(findings=carried)
            return
        before, after = max(prod(_shape(own)) for own in equation.invars), prod(_shape(out))
        if name in _REDUCTIONS and after < before:
            whole = [own for own in carried if after == 1 or 0 < own[1] == len(_shape(out))]
            for finding, _ in whole:
                self.findings.reduced(finding, _REDUCTIONS[name])
            carried = tuple(own for own in carried if own not in whole)
        kept = carried if name in _REDUCTIONS or (name in _KEEPS and after == before) else ()
        if name in _MEETINGS and instruction is not None:
            met = self._meet(name, equation, inputs, instruction)
            kept = kept if met is None else (met, *kept)
        if kept:
            known[out] = _Origin(_shape(out), None, kept)

    def _meet(
        self, name: str, equation: Any, inputs: list[_Origin | None], instruction: Instruction
    ) -> tuple[PlacedFinding, int] | None:
        """Operands meet: with the shapes that the program gave them, without the axes that `vmap` maps over."""
        own = [origin if origin is not None and origin.added == instruction else None for origin in inputs]
        batch = max((origin.batch for origin in own if origin is not None), default=0)
        rank = len(_shape(equation.outvars[0])) - batch
        shapes = []
        for variable, origin in zip(equation.invars, own):
            shape = _shape(variable) if origin is None else origin.shape[origin.mapped :]
            shapes.append(shape[max(len(shape) - rank, 0) :] if batch else shape)
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
        finding = self.findings.seen(judged, _MEETINGS[name], site, tuple(shapes))
        return None if finding is None else (finding, batch)

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


def _broadcast(equation: Any, origin: _Origin | None, instruction: Instruction | None) -> _Origin | None:
    """Where the result of `broadcast_in_dim` comes from; `None` where the program itself says where its axes go.

    NumPy's rule adds axes on the left. Under `vmap`, an axis that is mapped over stays the first one, and the others are
    added behind it; what is not mapped gets its axes in a second broadcast of the same instruction.
    """
    own, result = len(_shape(equation.invars[0])), len(_shape(equation.outvars[0]))
    axes = [int(axis) for axis in equation.params["broadcast_dimensions"]]
    again = origin is not None and instruction is not None and origin.added == instruction
    before = origin if again and origin is not None else _Origin(_shape(equation.invars[0]), None)
    right = list(range(result - own, result))
    if axes == right:
        batch = before.batch + result - own if again else 0
        return _Origin(before.shape, instruction, (), before.mapped, batch)
    mapped = next(place for place, axis in enumerate([*axes, result]) if axis != place)
    if mapped == 0 or axes[mapped:] != right[mapped:]:
        return None
    return _Origin(before.shape, instruction, (), mapped, max(mapped, before.batch))
