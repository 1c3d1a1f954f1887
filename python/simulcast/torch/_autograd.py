"""Expressions that PyTorch differentiates: an autograd function whose backward pass is the program of the gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]

from .. import _simulcast
from .._simulcast import Expression, JointExpression

_Program = Expression | JointExpression[Any]


def evaluate(
    expr: str | Sequence[str] | Expression | JointExpression[Any],
    /,
    *,
    rule: str | _simulcast.Rule = "numpy",
    threads: int | None = None,
    local_dict: Mapping[str, Any] | None = None,
    fast_math: bool = False,
    **operands: Any,
) -> Any:
    """The value of an expression of tensors, which `backward` differentiates, any number of times.

    Operands are tensors, arrays and numbers; results are tensors. Neither is copied. Tensors on a CUDA device are computed
    there, forward and backward, on PyTorch's current stream; all other tensors are in the CPU's memory. Types are NumPy's,
    not PyTorch's: float64 with float32 is float64 whatever their ranks are. Gradients are those of `simulcast.grad`; tensors
    of integers and booleans have none, and a complex one that requires a gradient is an error.

    >>> import simulcast.torch, torch
    >>> m = torch.zeros(2, requires_grad=True)
    >>> loss = simulcast.torch.evaluate("mean((x - m) ** 2)", x=torch.tensor([[1.0, 2.0], [3.0, 6.0]]), m=m)
    >>> loss.backward()
    >>> m.grad
    tensor([-2., -4.])
    """
    program: _Program
    if isinstance(expr, (Expression, JointExpression)):
        program = expr
    elif isinstance(expr, str) and ";" not in expr:
        program = _simulcast.compile(expr, fast_math=fast_math)
    else:
        program = JointExpression(expr if isinstance(expr, str) else list(expr), fast_math)
    names = program.operands
    for name in operands:
        if name not in names:
            raise TypeError(f"the expression has no operand `{name}`, it has {', '.join(names)}")
    given = {**{name: local_dict[name] for name in names if name in local_dict}, **operands} if local_dict else operands
    tensors = {name: own for name, own in given.items() if isinstance(own, torch.Tensor)}
    _refuse(tensors)
    rest = {name: own for name, own in given.items() if name not in tensors}
    return _run(program, tensors, rest, {"rule": rule, "threads": threads})


def _refuse(tensors: Mapping[str, torch.Tensor]) -> None:
    """Refuses tensors whose gradients would be lost."""
    for name, own in tensors.items():
        if _is_transformed(own):
            raise TypeError(
                f"`{name}` is traced by torch.func (vmap, grad, jacrev, ...), which evaluate does not go with: it computes of "
                "tensors in memory. Use backward() or torch.autograd.grad for gradients, and an axis more for vmap"
            )
        if own.is_complex() and own.requires_grad and torch.is_grad_enabled():
            raise TypeError(
                f"`{name}` is complex and requires a gradient; expressions have gradients of real operands alone: pass "
                f"{name}.detach(), or its real and imaginary parts as two operands ({name}.real and {name}.imag)"
            )


def _is_transformed(own: torch.Tensor) -> bool:
    known = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", None)
    return known is not None and bool(known(own))


def _run(program: _Program, tensors: Mapping[str, torch.Tensor], rest: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The results as tensors: through autograd where a gradient may be asked for."""
    if torch.is_grad_enabled() and any(own.requires_grad for own in tensors.values()):
        return _Evaluate.apply(program, tuple(tensors), rest, options, *tensors.values())
    return _computed(program, tensors, rest, options)


def _computed(program: _Program, tensors: Mapping[str, torch.Tensor], rest: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    arrays = {name: _array(name, own) for name, own in tensors.items()}
    results = program(local_dict={**rest, **arrays}, **options)
    return tuple(map(_tensor, results)) if isinstance(results, tuple) else _tensor(results)


def _array(name: str, own: torch.Tensor) -> Any:
    """The tensor's memory as an array; of a tensor on a CUDA device, the tensor without its history."""
    if own.device.type not in ("cpu", "cuda"):
        raise TypeError(f"`{name}` is on {own.device}: expressions are computed on CPUs and CUDA devices; call .cpu()")
    if own.is_quantized:
        raise TypeError(f"`{name}` is quantized ({own.dtype}): call .dequantize()")
    if own.layout != torch.strided:
        raise TypeError(f"`{name}` is {own.layout}, and not a dense tensor: call .to_dense()")
    own = own.detach().resolve_conj().resolve_neg()
    if own.device.type == "cuda":
        return own
    if own.dtype == torch.bfloat16:
        import ml_dtypes

        halves: np.ndarray[Any, Any] = own.view(torch.int16).numpy()
        return halves.view(ml_dtypes.bfloat16)
    try:
        array: np.ndarray[Any, Any] = own.numpy()
    except TypeError:
        raise TypeError(f"`{name}` is {own.dtype}, which NumPy does not have: call .float(), or another type's method") from None
    return array


def _tensor(result: Any) -> torch.Tensor:
    if isinstance(result, torch.Tensor):
        return result
    array = np.asarray(result)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(array)


class _Evaluate(torch.autograd.Function):  # type: ignore[misc]
    """A program of tensors; its backward pass is one too, so that it can be differentiated itself."""

    @staticmethod
    def forward(
        ctx: Any, program: _Program, names: tuple[str, ...], rest: Mapping[str, Any], options: Mapping[str, Any],
        *tensors: torch.Tensor,
    ) -> Any:
        results = _computed(program, dict(zip(names, tensors)), rest, options)
        ctx.save_for_backward(*tensors)
        ctx.program, ctx.names, ctx.rest, ctx.options = program, names, rest, options
        ctx.set_materialize_grads(False)
        made = results if isinstance(results, tuple) else (results,)
        for own in made:
            if own.is_complex():
                asking = next(name for name, given in zip(names, tensors) if given.requires_grad)
                raise TypeError(
                    f"the result is complex, and `{asking}` requires a gradient; expressions have gradients of real results "
                    f"alone: pass {asking}.detach(), or take `real(...)`, `imag(...)` or `abs(...)` in the expression"
                )
        ctx.like = [(own.shape, own.dtype, own.device) for own in made]
        ctx.mark_non_differentiable(*(own for own in made if not own.is_floating_point()))
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad[4:]
        wrt = [name for name, own, asks in zip(ctx.names, tensors, wanted) if asks and own.is_floating_point()]
        found: dict[str, torch.Tensor] = {}
        if wrt and any(own is not None for own in gradients):
            taken = set(ctx.program.operands)
            names = [_free(f"gradient{number}", taken) for number in range(len(gradients))]
            given = [
                torch.zeros(shape, dtype=dtype, device=device) if own is None else own.to(dtype)
                for own, (shape, dtype, device) in zip(gradients, ctx.like)
            ]
            program = _gradient(ctx.program, tuple(wrt), tuple(names))
            operands = {**dict(zip(ctx.names, tensors)), **dict(zip(names, given))}
            found = dict(zip(wrt, _run(program, operands, ctx.rest, ctx.options)))
        return (None, None, None, None, *(found.get(name) for name in ctx.names))


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


_KEPT = 64
_gradients: dict[tuple[_Program, tuple[str, ...]], JointExpression[Any]] = {}


def _gradient(program: _Program, wrt: tuple[str, ...], names: tuple[str, ...]) -> JointExpression[Any]:
    """The program of the gradients, which is kept with the one that it is of."""
    known = _gradients.get((program, wrt))
    if known is None:
        if len(_gradients) >= _KEPT:
            _gradients.clear()
        known = _gradients[program, wrt] = program.grad(list(wrt), gradient=list(names))
    return known
