"""numexpr's interface, computed by Simulcast: `import simulcast.numexpr as ne`, or `install()` for code that imports `numexpr`.

>>> import numpy as np
>>> import simulcast.numexpr as ne
>>> a, b = np.arange(3.0), np.float32(2)
>>> ne.evaluate("a**2 + sin(b) > 1")
array([False,  True,  True])

Types are NumPy's unless `set_promotion("numexpr")` or `promotion="numexpr"` asks for numexpr's. What else differs, and what of
numexpr's own tests cannot pass, stands in docs/guide/numexpr.md.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from . import expressions, necompiler, utils
from .expressions import E
from .necompiler import NumExpr, Promotion, disassemble, evaluate, re_evaluate, set_promotion, validate
from .utils import (
    MAX_THREADS,
    _init_num_threads,
    detect_number_of_cores,
    detect_number_of_threads,
    get_num_threads,
    get_vml_version,
    set_num_threads,
    set_vml_accuracy_mode,
    set_vml_num_threads,
)

# The version whose interface this is.
__version__ = "2.14.2"
use_vml = False
is_cpu_amd_intel = False
ncores = detect_number_of_cores()
nthreads = _init_num_threads()

_NAMES = ("numexpr", "numexpr.expressions", "numexpr.necompiler", "numexpr.utils")
_before: dict[str, ModuleType | None] | None = None


def print_versions() -> None:
    """Prints what computes."""
    from .._simulcast import __version__ as own

    print(f"Simulcast {own} with the interface of numexpr {__version__}; {nthreads} threads, {ncores} cores")


def install(promotion: Promotion | None = None) -> None:
    """Makes `import numexpr` import this module, in the whole process; pandas then evaluates with it.

    Where pandas has been imported already, without numexpr, it is told. `promotion` is that of `set_promotion`.
    """
    global _before
    if promotion is not None:
        set_promotion(promotion)
    if _before is None:
        _before = {name: sys.modules.get(name) for name in _NAMES}
    for name, module in zip(_NAMES, (sys.modules[__name__], expressions, necompiler, utils)):
        sys.modules[name] = module
    _tell_pandas(True)


def uninstall() -> None:
    """Undoes `install`; the promotion stays."""
    global _before
    for name, module in (_before or {}).items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    if _before is not None:
        _tell_pandas(_before["numexpr"] is not None)
    _before = None


def _tell_pandas(is_there: bool) -> None:
    """Tells pandas, where it has been imported, which module evaluates."""
    if "pandas.core.computation.expressions" not in sys.modules:
        return
    from_pandas = [importlib.import_module(f"pandas.core.computation.{name}") for name in ("check", "expressions", "eval")]
    for module in from_pandas:
        for name, value in (("NUMEXPR_INSTALLED", is_there), ("ne", sys.modules.get("numexpr"))):
            if hasattr(module, name) or (name == "ne" and module.__name__.endswith("expressions")):
                setattr(module, name, value)
    check, computed, _ = from_pandas
    if hasattr(check, "NUMEXPR_BLOCKED_VERSION"):
        setattr(check, "NUMEXPR_BLOCKED_VERSION", None)  # noqa: B010
    computed.set_use_numexpr(is_there)


__all__ = [
    "E",
    "MAX_THREADS",
    "NumExpr",
    "detect_number_of_cores",
    "detect_number_of_threads",
    "disassemble",
    "evaluate",
    "get_num_threads",
    "get_vml_version",
    "install",
    "print_versions",
    "re_evaluate",
    "set_num_threads",
    "set_promotion",
    "set_vml_accuracy_mode",
    "set_vml_num_threads",
    "uninstall",
    "use_vml",
    "validate",
]
