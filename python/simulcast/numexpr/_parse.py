"""From a text to a tree: Python's grammar, of which only expressions that numexpr has are taken. Nothing is run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .expressions import ConstantNode, ExpressionNode, VariableNode, default_kind, functions, node, type_to_kind

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}
_COMPARED: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}
# numexpr's own list of what a text must not hold, outside of quotes.
_FORBIDDEN: Final = re.compile(
    r"[\;\[\:]|(^|[^\w])__[\w]+__($|[^\w])|\.\b(?!(real|imag|(\d*[eE]?[+-]?\d+)|(\d*[eE]?[+-]?\d+j)|(\d*j))\b)"
)


def parse(text: str, types: Mapping[str, Any], sanitize: bool = True) -> ExpressionNode:
    """The tree of a text, for operands of these types; others are `double`.

    Raises ValueError for what numexpr's check refuses (`sanitize`), SyntaxError for what is no Python, and TypeError for
    Python that is no expression of numexpr's.
    """
    if sanitize:
        bare = re.sub(r"('[^']*')", "", re.sub(r"\s+", "", text))
        if _FORBIDDEN.search(bare) is not None:
            raise ValueError(f"Expression {text} has forbidden control characters.")
    try:
        return _Reader(types).read(ast.parse(text.strip(), "<expr>", mode="eval").body)
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None


class _Reader:
    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = types

    def read(self, tree: ast.expr) -> ExpressionNode:
        match tree:
            case ast.Constant(value=bool() | int() | float() | complex() | str() | bytes() as value):
                return ConstantNode(value)
            case ast.Name(id=name):
                return VariableNode(name, type_to_kind[self.types.get(name, type_to_kind_default)])
            case ast.UnaryOp(op=op, operand=of) if type(op) in _UNARY:
                return node(_UNARY[type(op)](self.read(of)))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
                return node(_BINARY[type(op)](self.read(left), self.read(right)))
            case ast.Compare(ops=[op], left=left, comparators=[right]) if type(op) in _COMPARED:
                return node(_COMPARED[type(op)](self.read(left), self.read(right)))
            case ast.Attribute(value=of, attr="real" | "imag" as part):
                return functions[part](self.read(of))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in functions:
                options = {str(option.arg): self.option(option.value) for option in keywords}
                return functions[name](*map(self.argument, args), **options)
            case ast.Call(func=ast.Name(id=name)):
                raise TypeError(f"there is no function `{name}`")
            case ast.BoolOp() | ast.IfExp() | ast.Compare() | ast.UnaryOp():
                bool(VariableNode(None))
        raise TypeError(f"`{ast.unparse(tree)}` is no expression of numexpr's")

    def argument(self, tree: ast.expr) -> Any:
        return None if isinstance(tree, ast.Constant) and tree.value is None else self.read(tree)

    def option(self, tree: ast.expr) -> Any:
        value = self.argument(tree)
        return value.value if isinstance(value, ConstantNode) else value


type_to_kind_default: Final = next(own for own, kind in type_to_kind.items() if kind == default_kind)
