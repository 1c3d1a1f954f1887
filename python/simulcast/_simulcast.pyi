"""The extension module.

Names without an underscore are exported by `simulcast`, except `OnnxSession`, `OnnxCheck` and
`onnx_upgrade`, which `simulcast.onnx` wraps.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import GenericAlias
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NotRequired,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | NDArray[np.integer[Any]]
_Sizes: TypeAlias = SupportsIndex | Sequence[SupportsIndex | None] | NDArray[np.integer[Any]]
_Out: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None] | None
# An array for each result; of those that are given as tuples, in tuples.
_Outs: TypeAlias = NDArray[Any] | Sequence[_Outs] | None
_Rule: TypeAlias = str | Rule
_Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

@type_check_only
class _Lazy(Protocol):
    """An array of Dask's: what is computed of it stays lazy."""

    @property
    def chunks(self) -> Any: ...
    def compute(self, **options: Any) -> Any: ...
    def rechunk(self, *args: Any, **options: Any) -> Any: ...

_LazyT = TypeVar("_LazyT", bound=_Lazy)

# Functions of one, two and three operands, by place; arrays of rank 0 are given as NumPy's scalars.
@type_check_only
class _Unary(Protocol):
    @overload
    def __call__(
        self, a: _LazyT, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> NDArray[Any]: ...

@type_check_only
class _Round(Protocol):
    @overload
    def __call__(
        self, a: _LazyT, /, decimals: int = 0, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, /, decimals: int = 0, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> NDArray[Any]: ...

@type_check_only
class _Binary(Protocol):
    @overload
    def __call__(
        self, a: _LazyT, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: _LazyT, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> NDArray[Any]: ...

@type_check_only
class _Ternary(Protocol):
    @overload
    def __call__(
        self, a: _LazyT, b: ArrayLike, c: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: _LazyT, c: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, c: _LazyT, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> _LazyT: ...
    @overload
    def __call__(
        self, a: ArrayLike, b: ArrayLike, c: ArrayLike, /, out: _Out = None, *, casting: _Casting = "same_kind", dtype: DTypeLike | None = None,
        rule: _Rule = "numpy", threads: int | None = None,
    ) -> NDArray[Any]: ...

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
    @property
    def _arity(self) -> int | None: ...
    @property
    def _is_named(self) -> bool: ...
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
def _set_stoppable(stoppable: bool) -> bool: ...
def get_num_threads() -> int: ...
def set_num_threads(threads: int, /) -> int: ...
def _run_command(args: Sequence[str]) -> int: ...
def _clean_up_command() -> None: ...

@final
class Expression:
    def __new__(
        cls, expr: str, fast_math: bool = False, _part: tuple[int, list[tuple[int, str]]] | None = None
    ) -> Expression: ...
    @property
    def fast_math(self) -> bool: ...
    @property
    def operands(self) -> tuple[str, ...]: ...
    @property
    def _nodes(self) -> list[tuple[str, Any, list[int]]]: ...
    @overload
    def grad(self, wrt: str, *, gradient: str | _Names | None = None) -> JointExpression[NDArray[Any]]: ...
    @overload
    def grad(self, wrt: _Names, *, gradient: str | _Names | None = None) -> JointExpression[_Arrays]: ...
    @overload
    def value_and_grad(
        self, wrt: str, *, gradient: str | _Names | None = None
    ) -> JointExpression[tuple[NDArray[Any], NDArray[Any]]]: ...
    @overload
    def value_and_grad(
        self, wrt: _Names, *, gradient: str | _Names | None = None
    ) -> JointExpression[tuple[NDArray[Any], _Arrays]]: ...
    def _part(self, root: int, operands: list[tuple[int, str]]) -> Expression: ...
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
    ) -> NDArray[Any]: ...

# What its calls give: an array, or arrays in tuples.
_ResultT = TypeVar("_ResultT", covariant=True)
_ValueT = TypeVar("_ValueT")
_Derived: TypeAlias = Sequence[tuple[Sequence[str], bool, Sequence[str], bool]]
_Names: TypeAlias = list[str] | tuple[str, ...]
_Arrays: TypeAlias = tuple[NDArray[Any], ...]

@final
class JointExpression(Generic[_ResultT]):
    @overload
    def __new__(cls, exprs: str, fast_math: bool = False, _derived: _Derived = ...) -> JointExpression[Any]: ...
    @overload
    def __new__(cls, exprs: _Names, fast_math: bool = False, _derived: _Derived = ...) -> JointExpression[_Arrays]: ...
    def __class_getitem__(cls, result: Any) -> GenericAlias: ...
    @property
    def fast_math(self) -> bool: ...
    @property
    def operands(self) -> tuple[str, ...]: ...
    @overload
    def grad(self, wrt: str, *, gradient: str | _Names | None = None) -> JointExpression[NDArray[Any]]: ...
    @overload
    def grad(self, wrt: _Names, *, gradient: str | _Names | None = None) -> JointExpression[_Arrays]: ...
    @overload
    def value_and_grad(
        self, wrt: str, *, gradient: str | _Names | None = None
    ) -> JointExpression[tuple[_ResultT, NDArray[Any]]]: ...
    @overload
    def value_and_grad(
        self, wrt: _Names, *, gradient: str | _Names | None = None
    ) -> JointExpression[tuple[_ResultT, _Arrays]]: ...
    def passes(
        self,
        *,
        rule: _Rule | None = None,
        local_dict: Mapping[str, ArrayLike] | None = None,
        **operands: ArrayLike,
    ) -> list[tuple[int, ...]]: ...
    def __call__(
        self,
        *,
        out: _Outs = None,
        casting: _Casting = "same_kind",
        dtype: DTypeLike | None = None,
        rule: _Rule = "numpy",
        threads: int | None = None,
        local_dict: Mapping[str, ArrayLike] | None = None,
        **operands: ArrayLike,
    ) -> _ResultT: ...

@overload
def grad(
    expr: str | _Names | Expression | JointExpression[Any],
    wrt: str,
    *,
    gradient: str | _Names | None = None,
    fast_math: bool = False,
) -> JointExpression[NDArray[Any]]: ...
@overload
def grad(
    expr: str | _Names | Expression | JointExpression[Any],
    wrt: _Names,
    *,
    gradient: str | _Names | None = None,
    fast_math: bool = False,
) -> JointExpression[_Arrays]: ...
@overload
def value_and_grad(
    expr: str | Expression, wrt: str, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[NDArray[Any], NDArray[Any]]]: ...
@overload
def value_and_grad(
    expr: str | Expression, wrt: _Names, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[NDArray[Any], _Arrays]]: ...
@overload
def value_and_grad(
    expr: _Names, wrt: str, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[_Arrays, NDArray[Any]]]: ...
@overload
def value_and_grad(
    expr: _Names, wrt: _Names, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[_Arrays, _Arrays]]: ...
@overload
def value_and_grad(
    expr: JointExpression[_ValueT], wrt: str, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[_ValueT, NDArray[Any]]]: ...
@overload
def value_and_grad(
    expr: JointExpression[_ValueT], wrt: _Names, *, gradient: str | _Names | None = None, fast_math: bool = False
) -> JointExpression[tuple[_ValueT, _Arrays]]: ...
@overload
def compile(expr: str, /, *, fast_math: bool = False) -> Expression: ...
@overload
def compile(expr: _Names, /, *, fast_math: bool = False) -> JointExpression[_Arrays]: ...
@overload
def evaluate(
    expr: list[str] | tuple[str, ...],
    /,
    *,
    out: _Outs = None,
    casting: _Casting = "same_kind",
    dtype: DTypeLike | None = None,
    rule: _Rule = "numpy",
    threads: int | None = None,
    local_dict: Mapping[str, ArrayLike] | None = None,
    fast_math: bool = False,
    **operands: ArrayLike,
) -> tuple[NDArray[Any], ...]: ...
@overload
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
) -> NDArray[Any]: ...
def vjp(
    function: str | Callable[..., Any], operands: Sequence[ArrayLike | None], grad: ArrayLike, /, *, rule: _Rule = "numpy"
) -> tuple[NDArray[Any] | None, ...]: ...
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
) -> NDArray[Any]: ...
# Operations: generated by `cargo xtask operations`.
negative: _Unary
absolute: _Unary
sign: _Unary
sqrt: _Unary
cbrt: _Unary
square: _Unary
reciprocal: _Unary
exp: _Unary
exp2: _Unary
expm1: _Unary
log: _Unary
log2: _Unary
log10: _Unary
log1p: _Unary
sin: _Unary
cos: _Unary
tan: _Unary
arcsin: _Unary
arccos: _Unary
arctan: _Unary
sinh: _Unary
cosh: _Unary
tanh: _Unary
arcsinh: _Unary
arccosh: _Unary
arctanh: _Unary
erf: _Unary
sigmoid: _Unary
softsign: _Unary
relu: _Unary
floor: _Unary
ceil: _Unary
round: _Round
trunc: _Unary
logical_not: _Unary
bitwise_not: _Unary
isnan: _Unary
isinf: _Unary
isfinite: _Unary
conjugate: _Unary
real: _Unary
imag: _Unary
add: _Binary
subtract: _Binary
multiply: _Binary
divide: _Binary
floor_divide: _Binary
trunc_divide: _Binary
remainder: _Binary
fmod: _Binary
power: _Binary
arctan2: _Binary
hypot: _Binary
maximum: _Binary
minimum: _Binary
logical_and: _Binary
logical_or: _Binary
logical_xor: _Binary
bitwise_and: _Binary
bitwise_or: _Binary
bitwise_xor: _Binary
left_shift: _Binary
right_shift: _Binary
equal: _Binary
not_equal: _Binary
less: _Binary
less_equal: _Binary
greater: _Binary
greater_equal: _Binary
where: _Ternary
multiply_add: _Ternary
# End of operations.

@final
class Finding:
    def __new__(
        cls,
        code: str,
        message: str,
        operands: Sequence[int],
        axes: Sequence[int],
        suggestions: Sequence[str],
        certainty: Literal["possible", "confirmed"] | None = None,
    ) -> Finding: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    code: Final[str]
    message: Final[str]
    operands: Final[list[int]]
    axes: Final[list[int]]
    suggestions: Final[list[str]]
    certainty: Final[Literal["possible", "confirmed"]]

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
    def strictness(self) -> Literal["exact", "scalar-only", "same-rank", "numpy"]: ...
    @property
    def level(self) -> Literal["exact", "scalar-only", "same-rank", "numpy"]: ...
    @property
    def actions(self) -> dict[str, Literal["allow", "warn", "deny"]]: ...
    @property
    def possible_actions(self) -> dict[str, Literal["allow", "warn", "deny"]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def _judge(
        self,
        operands: tuple[object, ...],
        rule: _Rule | None = None,
        names: Sequence[str] | None = None,
        *,
        varied: bool = False,
        symbol: bool = False,
        reduced: bool = False,
        deliberate: bool = False,
        ignored: Sequence[str] | None = None,
    ) -> tuple[tuple[int | str | None, ...] | None, Exception | None, Finding | None, list[Finding], list[Finding]]: ...

# What is known beside the sizes of one call decides how certain a finding is; `None`: it is no finding.
def _weigh(
    code: str, *, varied: bool = False, symbol: bool = False, reduced: bool = False, deliberate: bool = False
) -> Literal["possible", "confirmed"] | None: ...

@type_check_only
class _FixDict(TypedDict):
    """A change of the source: the text from the place to the end, exclusive, becomes `text`."""

    description: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str

@type_check_only
class _FindingDict(TypedDict):
    """A finding at a place. Lines and columns count from 1, columns in characters; the end is exclusive."""

    code: str
    certainty: NotRequired[str | None]
    """`None` of an error."""
    message: str
    help: NotRequired[Sequence[str] | None]
    file: str
    """Below the working directory it is shown relative to that."""
    node: NotRequired[str | None]
    line: NotRequired[int | None]
    end_line: NotRequired[int | None]
    column: NotRequired[int | None]
    end_column: NotRequired[int | None]
    snippet: NotRequired[str | None]
    """The source lines, whole."""
    operands: NotRequired[Sequence[str] | None]
    """As they are written."""
    fixes: NotRequired[Sequence[_FixDict] | None]
    denied: NotRequired[bool | None]
    """Whether the policy refuses it."""

def _report(findings: Sequence[_FindingDict], format: str) -> str: ...

@final
class _Baseline:
    def __new__(cls, text: str) -> _Baseline: ...
    @staticmethod
    def text_of(findings: Sequence[_FindingDict]) -> str: ...
    def news(self, findings: Sequence[_FindingDict]) -> list[_FindingDict]: ...

def _read_messages(text: str) -> list[tuple[str, dict[str, Any]]]: ...
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

def onnx_infer(
    source: bytes | str | PathLike[str], sizes: dict[str, int], trust_names: bool
) -> tuple[bytes, str, list[str]]: ...
def onnx_upgrade(source: bytes | str | PathLike[str]) -> bytes: ...
