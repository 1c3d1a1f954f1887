"""numexpr's settings: threads are Simulcast's, those of Intel's library are taken and change nothing."""

from __future__ import annotations

import operator
import os
from typing import Any

from .. import _simulcast

_threads: int | None = None


def _number(name: str) -> int | None:
    """A number of threads in the environment; None where it is not set."""
    asked = os.environ.get(name, "")
    if not asked:
        return None
    # OpenMP has a number for each level of nesting.
    first = asked.partition(",")[0] if name.startswith("OMP_") else asked
    try:
        number = int(first)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} is a number of threads, not {asked!r}")
    return number


_ENGINE_MAX = 1024
_CORES_MAX = 16
MAX_THREADS = min(_number("NUMEXPR_MAX_THREADS") or 64, _ENGINE_MAX)


def detect_number_of_cores() -> int:
    """How many cores the machine has."""
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """How many threads an evaluation may use."""
    return _simulcast.get_num_threads() if _threads is None else _threads


def set_num_threads(nthreads: int) -> int:
    """Sets how many threads an evaluation may use, and returns how many it was."""
    global _threads
    try:
        nthreads = operator.index(nthreads)
    except TypeError:
        raise TypeError(f"the number of threads is a whole number from 1 to {MAX_THREADS}, not {nthreads!r}") from None
    if not 1 <= nthreads <= MAX_THREADS:
        raise ValueError(f"the number of threads is from 1 to {MAX_THREADS}, not {nthreads}")
    before, _threads = get_num_threads(), nthreads
    return before


def _init_num_threads() -> int:
    """Sets the number of threads to NUMEXPR_NUM_THREADS, OMP_NUM_THREADS or the number of cores, and returns it.

    As many as MAX_THREADS are set where more are asked for: OMP_NUM_THREADS is set for the whole machine.
    """
    asked = _number("NUMEXPR_NUM_THREADS") or _number("OMP_NUM_THREADS")
    if asked is None:
        configured = os.environ.get("NUMEXPR_MAX_THREADS", "")
        asked = MAX_THREADS if configured else min(detect_number_of_cores(), _CORES_MAX)
    asked = min(asked, MAX_THREADS)
    set_num_threads(asked)
    return asked


def detect_number_of_threads() -> int:
    """As numexpr: NUMEXPR_NUM_THREADS, OMP_NUM_THREADS or the number of cores."""
    asked = _number("NUMEXPR_NUM_THREADS") or _number("OMP_NUM_THREADS") or detect_number_of_cores()
    return min(asked, MAX_THREADS)


def get_vml_version() -> None:
    """None: Intel's library is not used."""


def set_vml_accuracy_mode(mode: Any) -> None:
    """Changes nothing: Intel's library is not used, and every function has a bound for its error."""


def set_vml_num_threads(nthreads: int) -> None:
    """Changes nothing: Intel's library is not used."""


def get_vml_num_threads() -> None:
    """None: Intel's library is not used."""
