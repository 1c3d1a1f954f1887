"""The functions of PyTorch in which tensors meet: which arguments do, and which functions reduce.

A functional loss is one call to a `TorchFunctionMode`; what it does inside is not seen. So the table says which of its
arguments meet, and whether it reduces their result to one number.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from ._load import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Two tensors element by element. A name stands for the function of `torch`, the method, the method in place and
# the operator that are called so.
_PAIRS = """
    add sub subtract rsub mul multiply div divide true_divide floor_divide remainder fmod pow float_power
    maximum minimum fmax fmin atan2 arctan2 hypot copysign nextafter heaviside ldexp logaddexp logaddexp2 xlogy
    gcd lcm igamma igammac eq ne lt le gt ge equal_ not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift
    clamp_min clamp_max isclose complex polar binomial max min
""".split()
_OPERATORS = "add sub mul truediv div floordiv mod pow and or xor lshift rshift eq ne lt le gt ge".split()
_SPECIAL = """
    xlog1py xlogy zeta gammainc gammaincc chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w
""".split()
# Three tensors, and pairs whose result is one number, by the names of the parameters.
_OTHERS = {
    "where": ("condition", "input", "other"),
    "lerp": ("input", "end", "weight"),
    "addcmul": ("input", "tensor1", "tensor2"),
    "addcdiv": ("input", "tensor1", "tensor2"),
    "clamp": ("input", "min", "max"),
    "clip": ("input", "min", "max"),
    "masked_fill": ("input", "mask"),
}
_TO_ONE_NUMBER = {"dist": ("input", "other"), "allclose": ("input", "other")}
# Of `torch.nn.functional`. The target of a cosine embedding has an axis less, and PyTorch itself checks the variance
# of a Gaussian.
_LOSSES = {
    "mse_loss": ("input", "target", "weight"),
    "l1_loss": ("input", "target", "weight"),
    "smooth_l1_loss": ("input", "target", "weight"),
    "huber_loss": ("input", "target", "weight"),
    "poisson_nll_loss": ("input", "target"),
    "kl_div": ("input", "target"),
    "hinge_embedding_loss": ("input", "target"),
    "gaussian_nll_loss": ("input", "target"),
    "soft_margin_loss": ("input", "target"),
    "multilabel_soft_margin_loss": ("input", "target", "weight"),
    "cosine_embedding_loss": ("input1", "input2"),
    "triplet_margin_loss": ("anchor", "positive", "negative"),
    "triplet_margin_with_distance_loss": ("anchor", "positive", "negative"),
}
# Losses that refuse operands of different shapes themselves: what they refuse is explained.
_CHECKED = {
    "binary_cross_entropy": ("input", "target"),
    "binary_cross_entropy_with_logits": ("input", "target"),
    "margin_ranking_loss": ("input1", "input2", "target"),
    "multi_margin_loss": ("input", "target"),
    "multilabel_margin_loss": ("input", "target"),
}
# Distances along an axis: what comes before it meets.
_DISTANCES = {"pairwise_distance": ("x1", "x2"), "cosine_similarity": ("x1", "x2")}
_REDUCTIONS = "sum nansum mean nanmean norm logsumexp var std var_mean std_mean prod median".split()
# What keeps every element where it is, or shows the same ones.
_KEEPS = """
    abs absolute neg negative square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sigmoid tanh relu reciprocal pow
    float_power clone contiguous float double half bfloat16 to type detach nan_to_num softplus huber clamp clip
    view reshape flatten squeeze unsqueeze view_as reshape_as masked_fill where erf sign
""".split()


class Meeting(NamedTuple):
    """A function in which tensors meet."""

    name: str
    parameters: tuple[str, ...]
    """The parameters that meet, the first ones of the function in their order unless `order` says otherwise."""
    order: tuple[int, ...]
    """Where each of them stands in a call by position."""
    reduces: bool = False
    """Whether the result is one number, unless `reduction="none"`."""
    reduction: int | None = None
    """Where `reduction` stands in a call by position."""
    one_shape: bool = False
    """Whether the function refuses operands of different shapes itself."""
    in_place: bool = False
    """Whether the result is stored in the first one, which therefore cannot grow."""

    def operands(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments that meet; `None` where one is not given."""
        found = []
        for name, place in zip(self.parameters, self.order):
            found.append(args[place] if place < len(args) else kwargs.get(name))
        return found

    def shapes(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The shapes of what meets; `None` for what is no tensor, and fits everywhere."""
        found: list[Any] = []
        for own in self.operands(args, kwargs):
            try:
                found.append(getattr(own, "shape", None))
            except RuntimeError:
                # A nested tensor has none.
                found.append(None)
        return found

    def without(self, shapes: Sequence[Any]) -> Meeting:
        """The same for the operands that have shapes."""
        kept = [place for place, shape in enumerate(shapes) if shape is not None]
        return self._replace(
            parameters=tuple(self.parameters[place] for place in kept), order=tuple(self.order[place] for place in kept)
        )

    def is_reduced(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether this call gives one number."""
        if not self.reduces:
            return False
        if kwargs.get("reduce") is False:
            return False
        at = self.reduction
        given = args[at] if at is not None and at < len(args) else kwargs.get("reduction", "mean")
        # The functions below `torch.nn.functional` take a number.
        return given not in ("none", 0)


class Table(NamedTuple):
    """The functions of the PyTorch that is installed."""

    pairs: dict[Any, Meeting]
    others: dict[Any, Meeting]
    checked: dict[Any, Meeting]
    """Functions that take operands of one shape only."""
    variadic: frozenset[Any]
    reductions: frozenset[Any]
    keeps: frozenset[Any]

    def meeting(self, function: Any, args: Sequence[Any]) -> Meeting | None:
        """What meets in a call of a function; of `broadcast_tensors`, all arguments."""
        if function in self.variadic:
            names = tuple(f"tensors[{place}]" for place in range(len(args)))
            return Meeting(function.__name__, names, tuple(range(len(args))))
        return self.pairs.get(function) or self.others.get(function) or self.checked.get(function)


_table: Table | None = None


def table() -> Table:
    """The table, made when it is first asked for."""
    global _table
    if _table is None:
        _table = _make()
    return _table


def _of(owners: Iterable[Any], names: Iterable[str]) -> list[tuple[str, Any]]:
    """The functions that owners have by these names."""
    found = []
    for name in names:
        for owner in owners:
            function = getattr(owner, name, None)
            if callable(function):
                found.append((name, function))
    return found


def _make() -> Table:
    torch = load()
    tensor, functional, special = torch.Tensor, torch.nn.functional, torch.special
    pairs: dict[Any, Meeting] = {}
    others: dict[Any, Meeting] = {}
    operands = ("input", "other")
    for name, function in _of((torch, tensor), _PAIRS):
        pairs[function] = Meeting(name, operands, (0, 1))
    for name, function in _of((special,), _SPECIAL):
        pairs[function] = Meeting(name, operands, (0, 1))
    for name, function in _of((tensor,), [f"{name}_" for name in _PAIRS]):
        pairs[function] = Meeting(name, operands, (0, 1), in_place=True)
    for own in _OPERATORS:
        for name, function in _of((tensor,), [f"__{own}__", f"__r{own}__"]):
            pairs.setdefault(function, Meeting(name, operands, (0, 1)))
        for name, function in _of((tensor,), [f"__i{own}__"]):
            pairs.setdefault(function, Meeting(name, operands, (0, 1), in_place=True))
    for name, parameters in _OTHERS.items():
        for _, function in _of((torch, tensor), [name]):
            others[function] = Meeting(name, parameters, tuple(range(len(parameters))))
        for _, function in _of((torch, tensor), [f"{name}_"]):
            others[function] = Meeting(f"{name}_", parameters, tuple(range(len(parameters))), in_place=True)
    # The method has the tensor first: `a.where(condition, b)`.
    others[tensor.where] = Meeting("where", ("self", "condition", "other"), (0, 1, 2))
    for name, parameters in _TO_ONE_NUMBER.items():
        for _, function in _of((torch, tensor), [name]):
            others[function] = Meeting(name, parameters, (0, 1), reduces=True)
    for name, parameters in _LOSSES.items():
        for _, function in _of((torch, functional), [name]):
            others[function] = _loss(name, function, parameters)
    # What `torch.nn.functional` refuses, the function below it takes.
    others[torch.margin_ranking_loss] = Meeting(
        "margin_ranking_loss", _CHECKED["margin_ranking_loss"], (0, 1, 2), reduces=True
    )
    for name, parameters in _DISTANCES.items():
        for _, function in _of((torch, functional), [name]):
            others[function] = Meeting(name, parameters, (0, 1))
    checked: dict[Any, Meeting] = {}
    for name, parameters in _CHECKED.items():
        for _, function in _of((functional,), [name]):
            checked[function] = _loss(name, function, parameters)._replace(one_shape=True)
    variadic = frozenset(own for _, own in _of((torch, torch.functional), ["broadcast_tensors"]))
    reductions = frozenset(own for _, own in _of((torch, tensor), _REDUCTIONS))
    keeps = frozenset(own for _, own in _of((torch, tensor, functional), _KEEPS))
    return Table(pairs, others, checked, variadic, reductions, keeps)


def _loss(name: str, function: Any, parameters: tuple[str, ...]) -> Meeting:
    """A loss, with the parameters that this version of it has."""
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        # One of C++: two tensors, and the number of a reduction by name or last.
        return Meeting(name, parameters[:2], (0, 1), reduces=True)
    had = tuple(own for own in parameters if own in known)
    order = tuple(known.index(own) for own in had)
    at = known.index("reduction") if "reduction" in known else None
    return Meeting(name, had, order, reduces=True, reduction=at)
