"""A training step on the meta device: shapes without arithmetic."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from ._guard import guard
from ._load import load
from ._watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._simulcast import Policy


def dry_run(
    step: Callable[..., Any],
    *args: Any,
    sizes: Sequence[int] = (),
    policy: str | Policy | None = None,
    exclude: Iterable[str] = (),
    **kwargs: Any,
) -> Watch:
    """Runs a training step under guard on the meta device: a check of its shapes that needs no GPU and no arithmetic.

    ```python
    def step(batch):
        model = Net()
        loss = model.loss(torch.randn(batch, 10), torch.randn(batch))
        loss.backward()
        torch.optim.SGD(model.parameters(), 0.1).step()

    simulcast.torch.dry_run(step, sizes=(3, 5), policy="SC102=deny")
    ```

    Tensors that the step makes are made on the meta device. What it is given (tensors, modules, optimizers, in lists,
    tuples and dicts too) is copied there, without the values. With `sizes`, the step is called once for each of them, with
    the size as its first argument: a finding that two batch sizes share is confirmed. `policy` and `exclude` are those of
    `guard`.

    `item()`, which optimizers and logs call, gives NaN, or 1 of integers. What needs values otherwise (`if loss > 0`,
    indexing by a mask) does not work on the meta device, and is PyTorch's error.
    """
    if not callable(step):
        raise TypeError(f"dry_run takes a step, a function that it calls, not {step!r}")
    torch = load()
    watch = Watch(exclude)
    moved, valueless = _modes(torch)
    for size in sizes or (None,):
        with moved():
            own_args, own_kwargs = copy.deepcopy((args, kwargs))
        with torch.device("meta"), valueless(), guard(policy, watch=watch):
            if size is None:
                step(*own_args, **own_kwargs)
            else:
                step(size, *own_args, **own_kwargs)
    return watch


def _modes(torch: Any) -> tuple[Any, Any]:
    """A mode under which copies are made on the meta device, and one that answers what has no answer there."""
    base: Any = torch.overrides.TorchFunctionMode
    tensor = torch.Tensor
    values = frozenset((tensor.item, tensor.__float__, tensor.__int__))

    class Moved(base):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is tensor.__deepcopy__:
                own, memo = args
                if id(own) not in memo:
                    memo[id(own)] = _moved(torch, own)
                return memo[id(own)]
            # How a parameter copies its values.
            if func is tensor.clone:
                return _moved(torch, args[0])
            return func(*args, **(kwargs or {}))

    class Valueless(base):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in values and args[0].is_meta:
                number = math.nan if args[0].is_floating_point() else 1
                return int(number) if func is tensor.__int__ and number == number else number
            return func(*args, **(kwargs or {}))

    return Moved, Valueless


def _moved(torch: Any, tensor: Any) -> Any:
    return torch.empty_like(tensor, device="meta").requires_grad_(tensor.requires_grad)
