"""PyTorch under guard: accidental broadcasts are found where they happen, errors of shapes are explained.

```python
import simulcast.torch

with simulcast.torch.guard():
    loss = ((pred - target) ** 2).mean()  # pred is (32, 1), target is (32,)
```

| you want | you call |
|---|---|
| a block, a function or a run under guard | `guard`, `install`, `uninstall` |
| a script under guard | `python -m simulcast.torch train.py` |
| a training step checked without a GPU and without arithmetic | `dry_run` |
| an expression that `backward` differentiates | `evaluate("mean((x - m) ** 2)", x=x, m=m)` |
| Lightning, Hugging Face, pytest | `LightningCallback`, `TrainerCallback`, `pytest --simulcast-torch` |

PyTorch is loaded when it is first needed, never by `import simulcast`.
"""

from typing import TYPE_CHECKING, Any

from .._findings import PlacedFinding
from ._dry_run import dry_run
from ._guard import guard, install, uninstall
from ._watch import Watch

if TYPE_CHECKING:
    from ._autograd import evaluate
    from ._callbacks import LightningCallback, TrainerCallback

__all__ = [
    "LightningCallback",
    "PlacedFinding",
    "TrainerCallback",
    "Watch",
    "dry_run",
    "evaluate",
    "guard",
    "install",
    "uninstall",
]


def __getattr__(name: str) -> Any:
    # Callbacks derive from classes of packages that are loaded only for them.
    if name in ("LightningCallback", "TrainerCallback"):
        from . import _callbacks

        return _callbacks.make(name)
    if name == "evaluate":
        from ._autograd import evaluate

        return evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
