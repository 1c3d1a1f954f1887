"""`%load_ext simulcast`: a broadcasting error in a cell is explained below its traceback, with the picture."""

from __future__ import annotations

from typing import Any

from ._explained import explain_error


def load_ipython_extension(ipython: Any) -> None:
    """Explains broadcasting errors of cells from now on: what `%load_ext simulcast` calls."""
    unload_ipython_extension(ipython)
    ipython.events.register("post_run_cell", _explain)


def unload_ipython_extension(ipython: Any) -> None:
    """Leaves errors of cells as they are: what `%unload_ext simulcast` calls."""
    if _explain in ipython.events.callbacks["post_run_cell"]:
        ipython.events.unregister("post_run_cell", _explain)


def _explain(result: Any) -> None:
    error = getattr(result, "error_in_exec", None)
    if not isinstance(error, Exception):
        return
    found = explain_error(error)
    if found:
        import importlib

        display = importlib.import_module("IPython.display")
        for own in found:
            display.display(own)
