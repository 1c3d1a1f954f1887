"""Expressions of numexpr as trees: `E.a + 2 * E.b`, and what a text is read as.

Each node has the kind that numexpr gives it: `bool`, `int` (32 bits), `long`, `float` (32 bits), `double`, `complex` or
`bytes`. Operations on constants alone are carried out at once, by NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

import numpy as np

default_kind: Final = "double"
int_, long_, double = np.int32, np.int64, np.double
kind_rank: Final = ("bool", "int", "long", "float", "double", "complex", "none")
type_to_kind: Final[dict[Any, str]] = {
    bool: "bool", int_: "int", long_: "long", int: "long", float: "float", double: "double", complex: "complex",
    bytes: "bytes", str: "bytes",
}
kind_to_type: Final[dict[str, Any]] = {
    "bool": bool, "int": int_, "long": long_, "float": float, "double": double, "complex": complex, "bytes": bytes, "str": str,
}
kind_to_dtype: Final[dict[str, str]] = {
    "bool": "bool", "int": "int32", "long": "int64", "float": "float32", "double": "float64", "complex": "complex128",
}
# What an integer power of constants may have, in bits: a text must not fill memory.
_POWER_BITS: Final = 4096

_Numbers = (bool, int, float, complex, bytes, str, np.bool_, np.integer, np.floating, np.complexfloating)


def getKind(value: Any) -> str:
    """The kind of a constant."""
    if isinstance(value, (bytes, str)):
        return "bytes"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, np.int64):
        return "long"
    if isinstance(value, (int, np.integer)):
        # As in numexpr, a constant is of 32 bits where it fits.
        return "int" if -(2**31) <= value < 2**31 else "long"
    if isinstance(value, (np.float32, np.float16)):
        return "float"
    if isinstance(value, (float, np.floating)):
        return "double"
    return "complex"


def isConstant(value: Any) -> bool:
    """Whether it is a number or text, and no node."""
    return isinstance(value, _Numbers)


def commonKind(nodes: Sequence[ExpressionNode]) -> str:
    """The kind that holds all of some nodes."""
    kinds = [node.astKind for node in nodes]
    texts = kinds.count("bytes")
    if 0 < texts < len(kinds):
        raise TypeError("text meets numbers: strings can only be operated with strings")
    return "bytes" if texts else kind_rank[max(kind_rank.index(kind) for kind in kinds)]


class ExpressionNode:
    """An expression; Python's operators and `functions` make larger ones of it."""

    astType = "generic"

    def __init__(self, value: Any = None, kind: str = "none", children: Sequence[ExpressionNode] = ()) -> None:
        self.value = value
        self.astKind = kind
        self.children = tuple(children)

    def walk(self) -> Iterator[ExpressionNode]:
        """Every node below it, and then itself."""
        for child in self.children:
            yield from child.walk()
        yield self

    @property
    def real(self) -> ExpressionNode:
        """The real part."""
        return functions["real"](self)

    @property
    def imag(self) -> ExpressionNode:
        """The imaginary part."""
        return functions["imag"](self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r}, {self.astKind!r}, {self.children})"

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression is neither true nor false: write & instead of `and`, | instead of `or`, ~ instead of `not`, and "
            "(a < b) & (b < c) instead of `a < b < c`"
        )

    __hash__ = object.__hash__

    def __pos__(self) -> ExpressionNode:
        return self

    def __neg__(self) -> ExpressionNode:
        return _unary("neg", operator.neg, self)

    def __invert__(self) -> ExpressionNode:
        return _unary("invert", operator.invert, self)

    def __add__(self, other: Any) -> ExpressionNode:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> ExpressionNode:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> ExpressionNode:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> ExpressionNode:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> ExpressionNode:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> ExpressionNode:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> ExpressionNode:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> ExpressionNode:
        return _binary("div", other, self)

    def __floordiv__(self, other: Any) -> ExpressionNode:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> ExpressionNode:
        return _binary("floordiv", other, self)

    def __mod__(self, other: Any) -> ExpressionNode:
        return _binary("mod", self, other)

    def __rmod__(self, other: Any) -> ExpressionNode:
        return _binary("mod", other, self)

    def __pow__(self, other: Any) -> ExpressionNode:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> ExpressionNode:
        return _binary("pow", other, self)

    def __lshift__(self, other: Any) -> ExpressionNode:
        return _binary("lshift", self, other)

    def __rlshift__(self, other: Any) -> ExpressionNode:
        return _binary("lshift", other, self)

    def __rshift__(self, other: Any) -> ExpressionNode:
        return _binary("rshift", self, other)

    def __rrshift__(self, other: Any) -> ExpressionNode:
        return _binary("rshift", other, self)

    def __and__(self, other: Any) -> ExpressionNode:
        return _binary("and", self, other)

    def __rand__(self, other: Any) -> ExpressionNode:
        return _binary("and", other, self)

    def __or__(self, other: Any) -> ExpressionNode:
        return _binary("or", self, other)

    def __ror__(self, other: Any) -> ExpressionNode:
        return _binary("or", other, self)

    def __xor__(self, other: Any) -> ExpressionNode:
        return _binary("xor", self, other)

    def __rxor__(self, other: Any) -> ExpressionNode:
        return _binary("xor", other, self)

    def __gt__(self, other: Any) -> ExpressionNode:
        return _binary("gt", self, other)

    def __ge__(self, other: Any) -> ExpressionNode:
        return _binary("ge", self, other)

    def __lt__(self, other: Any) -> ExpressionNode:
        return _binary("gt", other, self)

    def __le__(self, other: Any) -> ExpressionNode:
        return _binary("ge", other, self)

    def __eq__(self, other: Any) -> Any:
        return _binary("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return _binary("ne", self, other)


class VariableNode(ExpressionNode):
    """An operand by its name."""

    astType = "variable"


class ConstantNode(ExpressionNode):
    """A number, or text."""

    astType = "constant"

    def __init__(self, value: Any) -> None:
        if not isConstant(value):
            raise TypeError(f"{type(value).__name__} is no constant of an expression")
        super().__init__(value, getKind(value))


class OpNode(ExpressionNode):
    """An operation or a function of some nodes; of a reduction, `axis` is the axis, None for all."""

    astType = "op"

    def __init__(self, value: str, children: Sequence[ExpressionNode], kind: str | None = None, axis: int | None = None) -> None:
        kind = commonKind(children) if kind is None else kind
        # Of booleans, sums are `or` and products `and`, as in NumPy.
        value = {"mul": "and", "add": "or"}.get(value, value) if kind == "bool" else value
        super().__init__(value, kind, children)
        self.axis = axis


class Expression:
    """Operands as attributes: `E.a` is the operand `a`, a `double` unless a signature says otherwise."""

    def __getattr__(self, name: str) -> VariableNode:
        if name.startswith("_"):
            raise AttributeError(name)
        return VariableNode(name, default_kind)


E: Final = Expression()


def node(value: Any) -> ExpressionNode:
    """A node, or a constant as one."""
    return value if isinstance(value, ExpressionNode) else ConstantNode(value)


def _folded(function: Callable[..., Any], values: Sequence[Any]) -> ConstantNode:
    """A function of constants."""
    with np.errstate(all="ignore"):
        value = function(*values)
    return ConstantNode(value[()] if isinstance(value, np.ndarray) else value)


def _power(base: Any, exponent: Any) -> Any:
    if all(isinstance(x, int) for x in (base, exponent)) and abs(int(base)).bit_length() * abs(int(exponent)) > _POWER_BITS:
        raise ValueError(f"the constant {base} ** {exponent} is too large")
    return operator.pow(base, exponent)


def _shift(by: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def shifted(value: Any, places: Any) -> Any:
        if not 0 <= int(places) <= _POWER_BITS:
            raise ValueError(f"a constant is shifted by {places} places")
        return by(value, places)

    return shifted


_PYTHON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "mod": operator.mod, "pow": _power, "lshift": _shift(operator.lshift), "rshift": _shift(operator.rshift),
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne,
}

_COMPARISONS: Final = ("gt", "ge", "eq", "ne")
_OF_TEXT: Final = ("add", *_COMPARISONS)


def _unary(name: str, function: Callable[[Any], Any], of: ExpressionNode) -> ExpressionNode:
    return _folded(function, [of.value]) if isinstance(of, ConstantNode) else OpNode(name, [of])


def _binary(name: str, left: Any, right: Any) -> ExpressionNode:
    a, b = node(left), node(right)
    if name not in _OF_TEXT and "bytes" in (a.astKind, b.astKind):
        # Python's own % formats text, and its * repeats it.
        raise TypeError(f"text has no operation {name}: it is joined with + and compared")
    if isinstance(a, ConstantNode) and isinstance(b, ConstantNode):
        return _folded(_PYTHON[name], [a.value, b.value])
    if name == "pow" and isinstance(b, ConstantNode) and b.astKind in ("int", "long") and b.value < 0:
        if a.astKind in ("int", "long"):
            raise ValueError("Integers to negative integer powers are not allowed.")
    if name in _COMPARISONS:
        return OpNode(name, [a, b], "bool")
    kind = commonKind([a, b])
    if name == "div" and kind in ("bool", "int", "long"):
        kind = "double"
    return OpNode(name, [a, b], kind)


# Of integers, these give integers; all other functions, `abs` among them, give floats, as in numexpr.
_OF_INTEGERS: Final = ("copy", "ones_like", "round", "sign")
_TESTS: Final = ("isnan", "isfinite", "isinf", "signbit")


def _function(
    numpy: Callable[..., Any], least: str | None = None, most: str | None = None, name: str | None = None
) -> Callable[..., ExpressionNode]:
    own = name or numpy.__name__

    def function(*args: Any) -> ExpressionNode:
        nodes = [node(arg) for arg in args]
        if all(isinstance(own, ConstantNode) for own in nodes):
            return _folded(numpy, [own.value for own in nodes])
        kind = commonKind(nodes)
        if kind in ("int", "long"):
            kind = kind if own in _OF_INTEGERS else "double"
        elif kind != "bytes":
            rank = kind_rank.index(kind)
            rank = max(rank, kind_rank.index(least)) if least else rank
            rank = min(rank, kind_rank.index(most)) if most else rank
            kind = kind_rank[rank]
        return OpNode(own, nodes, "bool" if own in _TESTS else kind)

    return function


def _where(condition: Any, yes: Any, no: Any) -> ExpressionNode:
    which, a, b = node(condition), node(yes), node(no)
    if isinstance(which, ConstantNode):
        return a if which.value else b
    return OpNode("where", [which, a, b], commonKind([a, b]))


def _reduction(name: str) -> Callable[..., ExpressionNode]:
    def function(a: Any, axis: Any = None) -> ExpressionNode:
        axis = axis.value if isinstance(axis, ConstantNode) else axis
        if axis is not None:
            axis = operator.index(axis)
            if axis < 0:
                raise ValueError("negative axis are not supported")
            if axis > 254:
                raise ValueError("cannot encode axis")
        of = node(a)
        return of if isinstance(of, ConstantNode) else OpNode(name, [of], of.astKind, axis)

    return function


def _text_test(name: str) -> Callable[..., ExpressionNode]:
    def function(a: Any, b: Any) -> ExpressionNode:
        return OpNode(name, [node(a), node(b)], "bool")

    return function


def _complex(real: Any, imag: Any) -> complex:
    return complex(real, imag)


functions: Final[dict[str, Callable[..., ExpressionNode]]] = {
    "copy": _function(np.copy), "ones_like": _function(np.ones_like), "sqrt": _function(np.sqrt, "float"),
    "sin": _function(np.sin, "float"), "cos": _function(np.cos, "float"), "tan": _function(np.tan, "float"),
    "arcsin": _function(np.arcsin, "float"), "arccos": _function(np.arccos, "float"), "arctan": _function(np.arctan, "float"),
    "sinh": _function(np.sinh, "float"), "cosh": _function(np.cosh, "float"), "tanh": _function(np.tanh, "float"),
    "arcsinh": _function(np.arcsinh, "float"), "arccosh": _function(np.arccosh, "float"),
    "arctanh": _function(np.arctanh, "float"), "log": _function(np.log, "float"), "log1p": _function(np.log1p, "float"),
    "log10": _function(np.log10, "float"), "log2": _function(np.log2, "float"), "exp": _function(np.exp, "float"),
    "expm1": _function(np.expm1, "float"), "abs": _function(np.absolute, "float"),
    "ceil": _function(np.ceil, "float", "double"), "floor": _function(np.floor, "float", "double"),
    "round": _function(np.round, "double"), "trunc": _function(np.trunc, "double"), "sign": _function(np.sign, "double"),
    "conj": _function(np.conj, "complex"), "real": _function(np.real, "double", "double"),
    "imag": _function(np.imag, "double", "double"), "isnan": _function(np.isnan, "double"),
    "isfinite": _function(np.isfinite, "double"), "isinf": _function(np.isinf, "double"),
    "signbit": _function(np.signbit, "double"), "fmod": _function(np.fmod, "float"),
    "arctan2": _function(np.arctan2, "float"), "hypot": _function(np.hypot, "double"),
    "nextafter": _function(np.nextafter, "double"), "copysign": _function(np.copysign, "double"),
    "maximum": _function(np.maximum, "double"), "minimum": _function(np.minimum, "double"),
    "complex": _function(_complex, "complex", name="complex"), "where": _where, "sum": _reduction("sum"),
    "prod": _reduction("prod"), "min": _reduction("min"), "max": _reduction("max"), "contains": _text_test("contains"),
    "startswith": _text_test("startswith"), "endswith": _text_test("endswith"),
}
