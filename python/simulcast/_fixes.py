"""Fixes of findings and errors, each with the operand that it changes.

The core finds the edits and checks that they work. They are written as NumPy has them (`target[:, None]`), or as a user of
PyTorch writes them: `target.unsqueeze(1)`, `pred.squeeze(1)`, `target.view_as(pred)`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import Fix
from ._simulcast import explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shape = tuple[int, ...]


class OperandFix(NamedTuple):
    """A fix, and the operand that it changes."""

    fix: Fix
    operand: int


def of_finding(shapes: Sequence[Shape], names: Sequence[str], code: str, *, torch: bool) -> list[OperandFix]:
    """Fixes of a finding, the shortest first."""
    data = explain(*shapes, names=names).to_dict()
    given = [fix for own in data.get("findings", ()) if own["code"] == code for fix in own["fixes"]]
    fixes = [own for own in (_written(fix, names, torch) for fix in given) if own is not None]
    return fixes + (as_another(shapes, names) if torch else [])


def product(names: Sequence[str], shapes: Sequence[Shape]) -> list[str]:
    """Which axes of a product of two matrices, or of stacks of them, do not fit."""
    (a, b), (left, right) = names, shapes
    if not left or not right:
        return [f"  {a if not left else b} is a number: multiply by *"]
    axis = -1 if len(right) == 1 else -2
    if left[-1] != right[axis]:
        return [f"  axis -1 of {a} has {left[-1]}, axis {axis} of {b} has {right[axis]}: they are summed over, and must be equal"]
    explained = explain(left[:-2], right[:-2], names=[a, b])
    if explained.shape is not None:
        return []
    lines = [line for line in str(explained).rstrip().splitlines() if not line.startswith("  help ")]
    return ["the axes before the last two:", *lines]


def of_error(data: dict[str, Any], names: Sequence[str], *, torch: bool) -> list[OperandFix]:
    """Fixes of an error that was explained as data."""
    given = data.get("error", {}).get("fixes", ())
    return [own for own in (_written(fix, names, torch) for fix in given) if own is not None]


def _written(fix: dict[str, Any], names: Sequence[str], torch: bool) -> OperandFix | None:
    edit = fix["edit"]
    operand = edit.get("operand")
    if operand is None or operand >= len(names):
        return None
    expression: str = fix["expression"]
    name = names[operand]
    if torch and "insert_axes" in edit and len(edit["insert_axes"]) == 1:
        expression = f"{name}.unsqueeze({edit['insert_axes'][0]})"
    elif torch and "drop_axis" in edit:
        expression = f"{name}.squeeze({edit['drop_axis']})"
    elif torch and "transpose" in edit:
        order = edit["transpose"]
        moved = [place for place, axis in enumerate(order) if place != axis]
        words = f"transpose({moved[0]}, {moved[1]})" if len(moved) == 2 else f"permute({', '.join(map(str, order))})"
        expression = f"{name}.{words}"
    return _fix(expression, operand, tuple(fix["shape"]), tuple(fix["result"]))


def _fix(expression: str, operand: int, shape: Shape, result: Shape) -> OperandFix:
    return OperandFix(Fix(f"{expression} is {shape}, result {result}", expression, shape, result), operand)


def as_another(shapes: Sequence[Shape], names: Sequence[str]) -> list[OperandFix]:
    """One of two operands of PyTorch in the shape of the other, where both have the same sizes but for those of 1."""
    if len(shapes) != 2 or prod(shapes[0]) != prod(shapes[1]):
        return []
    bare = [[size for size in shape if size != 1] for shape in shapes]
    if bare[0] != bare[1] or shapes[0] == shapes[1]:
        return []
    short, long = (0, 1) if len(shapes[0]) < len(shapes[1]) else (1, 0)
    return [_fix(f"{names[short]}.view_as({names[long]})", short, shapes[long], shapes[long])]
