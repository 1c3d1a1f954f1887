"""PyTorch, loaded when it is first needed."""

from __future__ import annotations

import importlib
from typing import Any


def load() -> Any:
    """The module `torch`, or an error that says how to get it."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "simulcast.torch needs PyTorch, which is not installed here: pip install torch (https://pytorch.org)",
            name="torch",
        ) from None
    if not hasattr(getattr(torch, "compiler", None), "is_compiling"):
        raise ImportError(f"simulcast.torch needs PyTorch 2.4 or newer, and {torch.__version__} is installed here")
    return torch
