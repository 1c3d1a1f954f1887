"""From a tree to a program of Simulcast's: the text of an expression, with casts where numexpr casts."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .. import _simulcast
from .expressions import ConstantNode, ExpressionNode, OpNode, VariableNode, kind_to_dtype

_SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "lshift": "<<", "rshift": ">>",
    "and": "&", "or": "|", "xor": "^", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}
_LETTERS: Final = {"bool": "b", "int": "i", "long": "l", "float": "f", "double": "d", "complex": "c", "bytes": "s"}
_KINDS: Final = {letter: kind for kind, letter in _LETTERS.items()}


def _signatures() -> dict[str, tuple[str, ...]]:
    """For each operation, the kinds of the result and of the operands that numexpr has code for."""
    by_name: dict[str, tuple[str, ...]] = {
        "copy": ("bb", "ii", "ll", "ff", "dd", "cc", "ss"), "ones_like": ("ii", "ll", "ff", "dd", "cc"),
        "invert": ("bb", "ii", "ll"), "neg": ("ii", "ll", "ff", "dd", "cc"),
        "where": ("ibii", "lbll", "fbff", "dbdd", "cbcc", "bbbb"), "contains": ("bss",), "startswith": ("bss",),
        "endswith": ("bss",), "real": ("dc",), "imag": ("dc",), "complex": ("cdd",),
    }
    by_name |= dict.fromkeys(["and", "or", "xor"], ("bbb", "iii", "lll"))
    by_name |= dict.fromkeys(["eq", "ne"], ("bbb", "bii", "bll", "bff", "bdd", "bcc", "bss"))
    by_name |= dict.fromkeys(["gt", "ge"], ("bii", "bll", "bff", "bdd", "bss"))
    by_name |= dict.fromkeys(["add", "sub", "mul", "div", "pow"], ("iii", "lll", "fff", "ddd", "ccc"))
    by_name |= dict.fromkeys(["mod", "floordiv"], ("iii", "lll", "fff", "ddd"))
    by_name |= dict.fromkeys(["lshift", "rshift"], ("iii", "lll"))
    by_name |= dict.fromkeys(["sum", "prod"], ("ii", "ll", "ff", "dd", "cc"))
    by_name |= dict.fromkeys(["min", "max"], ("ii", "ll", "ff", "dd"))
    by_name |= dict.fromkeys(["ceil", "floor", "trunc"], ("ff", "dd"))
    by_name |= dict.fromkeys(["isnan", "isfinite", "isinf"], ("bd", "bf", "bc")) | {"signbit": ("bd", "bf")}
    by_name |= dict.fromkeys(["sign", "round", "absolute"], ("ff", "dd", "cc", "ii", "ll"))
    names = "sqrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh log log1p log10 log2 exp expm1"
    by_name |= dict.fromkeys([*names.split(), "conjugate"], ("ff", "dd", "cc"))
    by_name |= dict.fromkeys(
        ["fmod", "arctan2", "hypot", "nextafter", "copysign", "maximum", "minimum"], ("fff", "ddd")
    )
    return by_name


SIGNATURES: Final = _signatures()
_WIDER: Final = "bilfdc"


def _signature(own: OpNode) -> str:
    """The kinds of the result and of the operands that an operation is computed in: the narrowest that numexpr has."""
    gives, takes = _LETTERS[own.astKind], [_LETTERS[child.astKind] for child in own.children]

    def fits(has: str, wants: str) -> bool:
        return has == wants or (has in _WIDER and wants in _WIDER and _WIDER.index(has) <= _WIDER.index(wants))

    known = [
        signature for signature in SIGNATURES.get(own.value, ())
        if signature[0] == gives and len(signature) == 1 + len(takes) and all(map(fits, takes, signature[1:]))
    ]
    if not known:
        axis = "n" if own.value in ("sum", "prod", "min", "max") else ""
        raise NotImplementedError(f"couldn't find matching opcode for '{own.value}_{gives}{''.join(takes)}{axis}'")
    return min(known, key=lambda signature: [_WIDER.find(letter) for letter in signature[1:]])


def _find(text: Any, part: Any) -> NDArray[np.bool_]:
    strings: Any = getattr(np, "strings", np.char)
    return np.asarray(strings.find(text, part) >= 0)


def _complex(real: Any, imag: Any) -> NDArray[Any]:
    made = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), np.complex128)
    made.real, made.imag = real, imag
    return made


_OF_TEXT: Final = ("contains", "startswith", "endswith")
# What Simulcast's expressions lack: computed by NumPy, before the pass in which the rest is computed.
_BY_NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "signbit": np.signbit, "copysign": np.copysign, "nextafter": np.nextafter, "complex": _complex, "contains": _find,
    "startswith": lambda text, part: getattr(np, "strings", np.char).startswith(text, part),
    "endswith": lambda text, part: getattr(np, "strings", np.char).endswith(text, part), "ones_like": np.ones_like,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}


class Program:
    """A tree that can be computed.

    With `casts`, every operation has the types that numexpr gives it; otherwise they are NumPy's.
    """

    def __init__(self, root: ExpressionNode, casts: bool) -> None:
        self.root, self.casts = root, casts
        # Operands that NumPy computes: the name, the function, and its operands, of which text is the name of one of ours.
        self.steps: list[tuple[str, Callable[..., Any], list[Any]]] = []
        self.names = {own.value for own in root.walk() if isinstance(own, VariableNode)}
        # A variable alone is copied, and a constant alone is there already: neither needs a program.
        self.text = None if root.astKind == "bytes" or isinstance(root, (VariableNode, ConstantNode)) else self.write(root)
        self.expression = None if self.text is None else _simulcast.compile(self.text)

    def run(self, operands: Mapping[str, Any], out: NDArray[Any] | None, casting: Any, threads: int | None) -> Any:
        """The value for some operands."""
        if self.expression is None:
            return self.copied(operands, out, casting)
        given = dict(operands)
        for name, function, args in self.steps:
            with np.errstate(all="ignore"):
                given[name] = function(*(self.argument(arg, given, threads) for arg in args))
        return self.expression(local_dict=given, out=out, casting=casting, threads=threads)

    def argument(self, arg: Any, given: Mapping[str, Any], threads: int | None) -> Any:
        if isinstance(arg, str):
            return given[arg]
        return arg(local_dict=given, threads=threads) if isinstance(arg, _simulcast.Expression) else arg

    def copied(self, operands: Mapping[str, Any], out: NDArray[Any] | None, casting: Any) -> Any:
        value, kind = self.root.value, self.root.astKind
        dtype = kind_to_dtype.get(kind) if self.casts else None
        if isinstance(self.root, VariableNode):
            made = np.array(operands[value], dtype=dtype)
        elif isinstance(self.root, ConstantNode):
            made = np.asarray(value.encode("ascii") if isinstance(value, str) else value, dtype=dtype)
        elif self.root.value == "copy":
            return Program(self.root.children[0], self.casts).copied(operands, out, casting)
        else:
            _signature_of(self.root)
            raise NotImplementedError(f"couldn't find matching opcode for '{self.root.value}'")
        if out is None:
            return made
        np.copyto(out, made, casting=casting)
        return out

    def write(self, own: ExpressionNode) -> str:
        """The node as text, in brackets where something stands around it."""
        if isinstance(own, VariableNode):
            dtype = kind_to_dtype.get(own.astKind)
            return f"{dtype}({own.value})" if self.casts and dtype else str(own.value)
        if isinstance(own, ConstantNode):
            text = _literal(own.value)
            typed = self.casts or isinstance(own.value, np.generic)
            dtype = kind_to_dtype.get(own.astKind) if self.casts else str(getattr(own.value, "dtype", ""))
            return f"{dtype}({text})" if typed else text
        assert isinstance(own, OpNode)
        is_text = own.value in _OF_TEXT or any(child.astKind == "bytes" for child in own.children)
        count = len(SIGNATURES.get(own.value, "?")[0]) - 1
        signature = _signature(own) if self.casts or is_text or count != len(own.children) else ""
        by_numpy = own.value in _BY_NUMPY and (is_text or own.value not in _SIGNS)
        if by_numpy or (own.value == "ones_like" and not self.casts):
            return self.by_numpy(own, signature)
        args = [self.cast(child, _KINDS[kind] if signature else None)
                for child, kind in zip(own.children, signature[1:] or " " * len(own.children))]
        text = self.operation(own, args)
        gives = kind_to_dtype.get(own.astKind)
        return f"{gives}({text})" if self.casts and gives and own.value in _WIDENED else text

    def operation(self, own: OpNode, args: Sequence[str]) -> str:
        name = own.value
        if name in _SIGNS:
            return f"({args[0]} {_SIGNS[name]} {args[1]})"
        if name in ("neg", "invert"):
            return f"({'-' if name == 'neg' else '~'}{args[0]})"
        if name == "copy":
            return args[0]
        if name == "ones_like":
            gives = kind_to_dtype[own.astKind]
            return f"{gives}(({args[0]} == {args[0]}) | True)"
        if name in ("sum", "prod", "min", "max"):
            return f"{name}({args[0]}, axis={own.axis})"
        return f"{name}({', '.join(args)})"

    def cast(self, own: ExpressionNode, kind: str | None) -> str:
        if kind is None or kind == own.astKind:
            return self.write(own)
        if isinstance(own, ConstantNode):
            return f"{kind_to_dtype[kind]}({_literal(own.value)})"
        return f"{kind_to_dtype[kind]}({self.write(own)})"

    def by_numpy(self, own: OpNode, signature: str) -> str:
        args: list[Any] = []
        for child, kind in zip(own.children, signature[1:] or " " * len(own.children)):
            if isinstance(child, ConstantNode) and child.astKind != "bytes":
                dtype = kind_to_dtype[_KINDS[kind]] if signature else None
                args.append(child.value if dtype is None else np.dtype(dtype).type(child.value))
            elif child.astKind != "bytes":
                args.append(_simulcast.compile(self.cast(child, _KINDS[kind] if signature else None)))
            elif isinstance(child, ConstantNode):
                args.append(child.value if isinstance(child.value, bytes) else child.value.encode("ascii"))
            elif isinstance(child, VariableNode):
                args.append(str(child.value))
            else:
                _signature_of(child)
                raise NotImplementedError(f"couldn't find matching opcode for '{child.value}'")
        name = f"_{len(self.steps)}"
        while name in self.names:
            name = f"_{name}"
        self.steps.append((name, _BY_NUMPY[own.value], args))
        self.names.add(name)
        return name


# Reductions are computed in wider types, and parts of complex numbers are complex in numexpr.
_WIDENED: Final = ("sum", "prod", "min", "max", "absolute", "maximum", "minimum")


def _signature_of(own: ExpressionNode) -> None:
    """Raises where there is no such operation."""
    if isinstance(own, OpNode):
        _signature(own)


def _literal(value: Any) -> str:
    """A number as the language writes it."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return f"({int(value)})" if value < 0 else str(int(value))
    if isinstance(value, (complex, np.complexfloating)):
        value = complex(value)
        if cmath.isfinite(value):
            return f"({_real(value.real)} + {_real(value.imag)} * 1j)"
        raise ValueError(f"the constant {value} is not written in an expression; pass it as an operand")
    return _real(float(value))


def _real(value: float) -> str:
    if math.isnan(value):
        return "(0.0 / 0.0)"
    if math.isinf(value):
        return "(1.0 / 0.0)" if value > 0 else "(-1.0 / 0.0)"
    return f"({value!r})" if math.copysign(1, value) < 0 else repr(value)
