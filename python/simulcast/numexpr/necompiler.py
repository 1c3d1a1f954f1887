"""numexpr's `evaluate`, `re_evaluate`, `validate` and `NumExpr`, computed by Simulcast."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._inputs import is_labelled
from . import utils
from ._parse import parse
from ._program import Program
from .expressions import ConstantNode, ExpressionNode, VariableNode, double, int_, long_, type_to_kind

_Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
_Order: TypeAlias = Literal["K", "A", "C", "F"]
Promotion: TypeAlias = Literal["numpy", "numexpr"]

# numexpr's options, what they may be, and what they are; neither changes a value here.
context_info: Final[list[tuple[str, tuple[Any, ...], Any]]] = [
    ("optimization", ("none", "moderate", "aggressive"), "aggressive"), ("truediv", (False, True, "auto"), "auto"),
]
_PROMOTIONS: Final = ("numpy", "numexpr")
_KEPT: Final = 256
_promotion: Promotion = "numpy"
_compiled: dict[Any, NumExpr] = {}
_names: dict[tuple[str, bool], list[str]] = {}
_last: ContextVar[tuple[NumExpr, list[str], dict[str, Any]] | None] = ContextVar("last", default=None)


def set_promotion(promotion: Promotion) -> Promotion:
    """Sets whose types operations have where `promotion=` is not given, and returns whose they were.

    "numpy": those of NumPy 2, in which float32 stays float32 beside a Python number. "numexpr": its seven kinds, in which
    small integers are int32, and `float32 * 2.0` is float64.
    """
    global _promotion
    before, _promotion = _promotion, _checked(promotion)
    return before


def _checked(promotion: Any) -> Promotion:
    if promotion not in _PROMOTIONS:
        raise ValueError(f"'promotion' must be one of {_PROMOTIONS}")
    own: Promotion = promotion
    return own


def getContext(kwargs: Mapping[str, Any], _frame_depth: int = 1) -> dict[str, Any]:
    """numexpr's options among some keywords; another keyword is an error."""
    rest, context = dict(kwargs), {}
    for name, allowed, default in context_info:
        context[name] = rest.pop(name, default)
        if context[name] not in allowed:
            raise ValueError(f"'{name}' must be one of {allowed}")
    rest.pop("ex_uses_vml", None)
    if rest:
        raise ValueError(f"Unknown keyword argument '{rest.popitem()[0]}'")
    return context


def getType(a: NDArray[Any]) -> type[Any]:
    """The type that numexpr takes an array for."""
    kind, size = a.dtype.kind, a.dtype.itemsize
    if kind == "b":
        return bool
    if kind in "iu":
        return long_ if size > 4 or (kind == "u" and size == 4) else int_
    if kind == "f" or a.dtype.name == "bfloat16":
        return double if size > 4 else float
    if kind == "c":
        return complex
    if kind == "S":
        return bytes
    if kind == "U":
        raise ValueError("NumExpr 2 does not support Unicode as a dtype.")
    raise ValueError(f"unknown type {a.dtype.name}")


def getExprNames(text: str, context: Mapping[str, Any], sanitize: bool = True) -> tuple[list[str], bool]:
    """The names of the operands of an expression, sorted; and whether it would use Intel's library: never."""
    return _sorted_names(parse(text, {}, sanitize)), False


def _sorted_names(root: ExpressionNode) -> list[str]:
    return sorted({own.value for own in root.walk() if isinstance(own, VariableNode)})


class NumExpr:
    """An expression that is compiled for operands of some types, which it takes by place.

    `ex` is text, or made of `E`; `signature` lists names and types: `bool`, `numpy.int32`, `numpy.int64`, `float` (of 32
    bits), `numpy.double`, `complex`, `bytes`. Without it the operands are all `double`, in the order of their names.
    """

    def __init__(
        self, ex: str | ExpressionNode, signature: Sequence[tuple[str, Any]] = (), sanitize: bool = True,
        promotion: Promotion | None = None, **kwargs: Any,
    ) -> None:
        getContext(kwargs)
        types = dict(signature)
        root = parse(ex, types, sanitize) if isinstance(ex, str) else ex
        names = _sorted_names(root)
        if types and set(names) != set(types):
            raise ValueError(f"input names ({list(types)}) don't match those found in expression ({set(names)})")
        self.input_names = tuple(types or names)
        self.types = tuple(types.get(name, double) for name in self.input_names)
        self.promotion = _promotion if promotion is None else _checked(promotion)
        self.program = Program(root, self.promotion == "numexpr")
        constants = {(own.astKind, repr(own.value)): own.value for own in root.walk() if isinstance(own, ConstantNode)}
        self.constants = tuple(constants.values())

    @property
    def text(self) -> str:
        """The expression as Simulcast computes it."""
        return self.program.text or str(self.program.root.value)

    def __call__(
        self, *args: Any, out: NDArray[Any] | None = None, order: _Order = "K", casting: _Casting = "safe",
        ex_uses_vml: bool = False,
    ) -> NDArray[Any]:
        if len(args) != len(self.input_names):
            raise ValueError(f"number of inputs doesn't match: {len(self.input_names)} are needed, {len(args)} given")
        if order not in ("K", "A", "C", "F"):
            raise ValueError(f"order must be one of 'K', 'A', 'C', 'F', not {order!r}")
        if out is not None and not isinstance(out, np.ndarray):
            raise ValueError("keyword parameter 'out' must be an array")
        # Operands meet by position, as numexpr's do: labels are left behind.
        given = {name: np.asarray(arg) if is_labelled(arg) else arg for name, arg in zip(self.input_names, args)}
        if self.promotion == "numexpr":
            for name, own in zip(self.input_names, self.types):
                _check_cast(name, np.asarray(given[name]), own, casting)
        made = self.program.run(given, out, casting, utils.get_num_threads())
        if out is not None:
            return out
        result = np.asarray(made)
        if order in ("C", "F"):
            return np.asarray(result, order=order)
        if order == "A" and args and all(np.asarray(arg).flags.fnc for arg in args):
            return np.asfortranarray(result)
        return result

    run = __call__

    def __repr__(self) -> str:
        return f"NumExpr({self.text!r})"


def _check_cast(name: str, given: NDArray[Any], own: Any, casting: _Casting) -> None:
    wanted = np.dtype({float: np.float32, double: np.float64, complex: np.complex128}.get(own, own))
    if wanted.kind != "S" and not np.can_cast(given.dtype, wanted, casting):
        raise TypeError(f"operand `{name}` is {given.dtype}, which is not cast to {wanted} under casting {casting!r}")


def _arguments(names: Sequence[str], local_dict: Any, global_dict: Any, frame: Any) -> list[Any]:
    """What stands for each name: in `local_dict`, else in `global_dict`, else where the caller can see it."""
    local = frame.f_locals if local_dict is None else local_dict
    outer = frame.f_globals if global_dict is None else global_dict
    found = []
    for name in names:
        try:
            found.append(local[name])
        except KeyError:
            found.append(outer[name])
    return found


def _sanitized(sanitize: bool | None) -> bool:
    if sanitize is not None:
        return sanitize
    asked = os.environ.get("NUMEXPR_SANITIZE", "1")
    try:
        return bool(int(asked))
    except ValueError:
        raise ValueError(f"NUMEXPR_SANITIZE is 0 or 1, not {asked!r}") from None


def _keep(kept: dict[Any, Any], key: Any, value: Any) -> Any:
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = value
    return value


def _prepared(
    ex: str, local_dict: Any, global_dict: Any, frame: Any, sanitize: bool | None, promotion: Promotion | None,
    kwargs: Mapping[str, Any], cached: bool = True,
) -> tuple[NumExpr, list[str], list[Any]]:
    """The compiled expression, its names, and what stands for them."""
    if not isinstance(ex, str):
        raise ValueError("must specify expression as a string")
    context, clean = getContext(kwargs), _sanitized(sanitize)
    own = _promotion if promotion is None else _checked(promotion)
    names = _names.get((ex, clean))
    if names is None:
        names = _keep(_names, (ex, clean), getExprNames(ex, context, clean)[0])
    arguments = _arguments(names, local_dict, global_dict, frame)
    types = tuple(_type(argument, own) for argument in arguments)
    key = (ex, clean, own, types)
    compiled = _compiled.get(key) if cached else None
    if compiled is None:
        compiled = NumExpr(ex, list(zip(names, types)), clean, own, **context)
        if cached:
            _keep(_compiled, key, compiled)
    return compiled, names, arguments


def _type(argument: Any, promotion: Promotion) -> Any:
    """The type of an operand; where types are NumPy's, all that is no text is one."""
    own = getType(np.asarray(argument))
    return own if promotion == "numexpr" or own is bytes else double


def validate(
    ex: str, local_dict: Mapping[str, Any] | None = None, global_dict: Mapping[str, Any] | None = None,
    out: NDArray[Any] | None = None, order: _Order = "K", casting: _Casting = "safe", _frame_depth: int = 2,
    sanitize: bool | None = None, promotion: Promotion | None = None, **kwargs: Any,
) -> Exception | None:
    """What `evaluate` would raise before it computes, or None; `re_evaluate` can follow."""
    try:
        frame = sys._getframe(_frame_depth - 1)
        compiled, names, _ = _prepared(ex, local_dict, global_dict, frame, sanitize, promotion, kwargs)
        _remember(compiled, names, out, order, casting)
    except Exception as error:
        return error
    return None


def evaluate(
    ex: str, local_dict: Mapping[str, Any] | None = None, global_dict: Mapping[str, Any] | None = None,
    out: NDArray[Any] | None = None, order: _Order = "K", casting: _Casting = "same_kind", sanitize: bool | None = None,
    _frame_depth: int = 3, disable_cache: bool = False, promotion: Promotion | None = None, **kwargs: Any,
) -> NDArray[Any]:
    """The value of an expression in numexpr's language, in one pass over memory.

    Names stand for what `local_dict` and `global_dict` hold, or for the caller's variables. `order` is the order of the
    result in memory, `casting` which casts of operands and of the result are allowed. `promotion` says whose types
    operations have; see `set_promotion`. `truediv`, `optimization` and `ex_uses_vml` are taken and change nothing; no part
    of the text is ever run, so that `sanitize` only decides whether numexpr's check of the text comes first.

    >>> import numpy as np
    >>> import simulcast.numexpr as ne
    >>> a, b = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])
    >>> ne.evaluate("2 * a + sqrt(b * b)")
    array([[5., 7.],
           [6., 8.]])
    """
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError(f"argument 'out' is an array that the result is written to, not a {type(out).__name__}")
    frame = sys._getframe(_frame_depth - 2)
    compiled, names, arguments = _prepared(
        ex, local_dict, global_dict, frame, sanitize, promotion, kwargs, not disable_cache
    )
    if not disable_cache:
        _remember(compiled, names, out, order, casting)
    return compiled(*arguments, out=out, order=order, casting=casting)


def _remember(compiled: NumExpr, names: list[str], out: NDArray[Any] | None, order: _Order, casting: _Casting) -> None:
    kept = None if out is None else weakref.ref(out)
    _last.set((compiled, names, {"out": kept, "order": order, "casting": casting}))


def re_evaluate(
    local_dict: Mapping[str, Any] | None = None, global_dict: Mapping[str, Any] | None = None, _frame_depth: int = 2
) -> NDArray[Any]:
    """The value of the expression that was evaluated or validated last in this context, for operands of the same types."""
    last = _last.get()
    if last is None:
        raise RuntimeError(
            "A previous evaluate() execution was not found, please call `validate` or `evaluate` once before `re_evaluate`"
        )
    compiled, names, options = last
    arguments = _arguments(names, local_dict, global_dict, sys._getframe(_frame_depth - 1))
    out = options["out"]
    return compiled(*arguments, **{**options, "out": None if out is None else out()})


def disassemble(nex: NumExpr) -> NoReturn:
    """numexpr's listing of byte code, of which there is none here; `NumExpr.text` is what is computed."""
    raise NotImplementedError(f"there is no byte code to list; what is computed is {nex.text}")


def stringToExpression(s: str, types: Mapping[str, Any], context: Mapping[str, Any], sanitize: bool = True) -> ExpressionNode:
    """The tree of a text."""
    return parse(s, types, sanitize)


typecode_to_kind: Final = {"b": "bool", "i": "int", "l": "long", "f": "float", "d": "double", "c": "complex", "s": "bytes"}
__all__ = [
    "NumExpr", "Promotion", "disassemble", "evaluate", "getContext", "getExprNames", "getType", "re_evaluate", "set_promotion",
    "stringToExpression", "type_to_kind", "validate",
]
