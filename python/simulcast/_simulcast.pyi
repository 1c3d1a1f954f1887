"""The extension module.

Names without an underscore are exported by `simulcast`, except `OnnxSession`, `OnnxCheck` and
`onnx_upgrade`, which `simulcast.onnx` wraps.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | NDArray[np.integer[Any]]
_Sizes: TypeAlias = SupportsIndex | Sequence[SupportsIndex | None] | NDArray[np.integer[Any]]
_Out: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None] | None
_Rule: TypeAlias = str | Rule
_Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

__version__: str

@final
class Rule:
    def __new__(cls, text: str) -> Rule: ...
    @property
    def kind(self) -> str: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def target(self) -> tuple[int, ...] | None: ...
    @property
    def axes(self) -> tuple[int, ...] | None: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def pdpd(axis: int | None = None) -> Rule: ...
def legacy(axis: int | None = None) -> Rule: ...
def paddle(axis: int | None = None) -> Rule: ...
def unidirectional() -> Rule: ...
def bidirectional(target: _Shape) -> Rule: ...
def to(target: _Shape) -> Rule: ...
def axes(shape: _Shape, broadcast_axes: Sequence[int]) -> Rule: ...
def mapping(shape: _Shape, axes_mapping: Sequence[int]) -> Rule: ...
def named(*axes: Sequence[str]) -> Rule: ...
def broadcast_shapes(*shapes: _Sizes, rule: _Rule = "numpy") -> tuple[int | None, ...]: ...
def broadcast_to(x: ArrayLike, /, shape: _Shape | None = None, *, rule: _Rule = "numpy") -> NDArray[Any]: ...
def broadcast_arrays(*arrays: ArrayLike, rule: _Rule = "numpy") -> tuple[NDArray[Any], ...]: ...
def sum_to(
    x: ArrayLike, /, shape: _Shape, *, rule: _Rule = "numpy", threads: int | None = None
) -> NDArray[Any]: ...
def release_memory() -> int: ...

@final
class Expression:
    def __new__(cls, expr: str, fast_math: bool = False) -> Expression: ...
    @property
    def fast_math(self) -> bool: ...
    @property
    def operands(self) -> tuple[str, ...]: ...
    @property
    def _fast_math(self) -> bool: ...
    @property
    def _nodes(self) -> list[tuple[str, Any, list[int]]]: ...
    def _shape(self, operands: Mapping[str, ArrayLike], rule: _Rule | None = None) -> tuple[int, ...]: ...
    def strategy(
        self,
        *,
        rule: _Rule | None = None,
        local_dict: Mapping[str, ArrayLike] | None = None,
        **operands: ArrayLike,
    ) -> str: ...
    def __call__(
        self,
        *,
        out: _Out = None,
        casting: _Casting = "same_kind",
        dtype: DTypeLike | None = None,
        rule: _Rule = "numpy",
        threads: int | None = None,
        local_dict: Mapping[str, ArrayLike] | None = None,
        **operands: ArrayLike,
    ) -> Any: ...

def compile(expr: str, /, *, fast_math: bool = False) -> Expression: ...
def evaluate(
    expr: str,
    /,
    *,
    out: _Out = None,
    casting: _Casting = "same_kind",
    dtype: DTypeLike | None = None,
    rule: _Rule = "numpy",
    threads: int | None = None,
    local_dict: Mapping[str, ArrayLike] | None = None,
    fast_math: bool = False,
    **operands: ArrayLike,
) -> Any: ...
def vjp(
    function: str | Callable[..., Any], operands: Sequence[ArrayLike | None], grad: ArrayLike, /, *, rule: _Rule = "numpy"
) -> tuple[Any, ...]: ...
def clip(
    a: ArrayLike,
    /,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    out: _Out = None,
    *,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    casting: _Casting = "same_kind",
    dtype: DTypeLike | None = None,
    rule: _Rule = "numpy",
    threads: int | None = None,
) -> Any: ...
def negative(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def absolute(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def sign(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def sqrt(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def cbrt(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def square(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def reciprocal(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def exp(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def exp2(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def expm1(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def log(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def log2(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def log10(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def log1p(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def sin(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def cos(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def tan(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arcsin(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arccos(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arctan(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def sinh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def cosh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def tanh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arcsinh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arccosh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arctanh(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def erf(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def sigmoid(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def relu(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def floor(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def ceil(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def round(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def trunc(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def logical_not(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def bitwise_not(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def isnan(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def isinf(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def isfinite(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def conjugate(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def real(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def imag(
    a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def add(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def subtract(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def multiply(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def divide(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def floor_divide(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def trunc_divide(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def remainder(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def fmod(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def power(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def arctan2(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def hypot(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def maximum(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def minimum(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def logical_and(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def logical_or(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def logical_xor(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def bitwise_and(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def bitwise_or(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def bitwise_xor(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def left_shift(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def right_shift(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def equal(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def not_equal(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def less(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def less_equal(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def greater(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def greater_equal(
    a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def where(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...
def multiply_add(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
    rule: _Rule = "numpy", threads: int | None = None,
) -> Any: ...

@final
class Finding:
    def __new__(
        cls, code: str, message: str, operands: Sequence[int], axes: Sequence[int], suggestions: Sequence[str]
    ) -> Finding: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    code: Final[str]
    message: Final[str]
    operands: Final[list[int]]
    axes: Final[list[int]]
    suggestions: Final[list[str]]

@final
class Explanation:
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    @property
    def shape(self) -> tuple[int | str | None, ...] | None: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def constraints(self) -> list[str]: ...
    def svg(self) -> str: ...
    def html(self) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

def explain(*operands: object, names: Sequence[str] | None = None, rule: _Rule = "numpy") -> Explanation: ...

@final
class Policy:
    def __new__(cls, text: str = "", /, **settings: object) -> Policy: ...
    @property
    def level(self) -> Literal["exact", "scalar-only", "same-rank", "numpy"]: ...
    @property
    def actions(self) -> dict[str, Literal["allow", "warn", "raise"]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def _judge(
        self, operands: tuple[object, ...], rule: _Rule | None = None, names: Sequence[str] | None = None
    ) -> tuple[tuple[int | str | None, ...] | None, Exception | None, list[Finding]]: ...

def _activate(active: bool = True) -> None: ...
def _layout(
    rule: _Rule, *shapes: _Shape, target: _Shape | None = None
) -> tuple[tuple[int, ...], list[list[int | None]]]: ...

@final
class OnnxSession:
    def __new__(
        cls, model: bytes | str | PathLike[str], threads: int | None, limit: int | None
    ) -> OnnxSession: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def outputs(self) -> list[str]: ...
    @property
    def fused(self) -> list[int]: ...
    def run(
        self, inputs: dict[str, ArrayLike], out: dict[str, NDArray[Any]] | None = None
    ) -> dict[str, NDArray[Any]]: ...

@final
class OnnxCheck:
    def __new__(
        cls, model: bytes | str | PathLike[str], sizes: dict[str, int], allow: list[str], deny: list[str]
    ) -> OnnxCheck: ...
    @property
    def errors(self) -> list[str]: ...
    def json(self) -> str: ...
    def html(self, title: str) -> str: ...

def onnx_upgrade(source: bytes | str | PathLike[str]) -> bytes: ...
