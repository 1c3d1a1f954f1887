"""Broadcasting, once: shapes, views and sums under every rule, explained, checked and drawn.

>>> import numpy as np, simulcast
>>> simulcast.broadcast_shapes((8, 1, 6, 1), (7, 1, 5))
(8, 7, 6, 5)
>>> view = simulcast.broadcast_to(np.arange(3), (2, 3))
>>> view.strides[0], view.flags.writeable
(0, False)

| you want | you call |
|---|---|
| the common shape of shapes | `broadcast_shapes` |
| an array shown in another shape, or several in their common one | `broadcast_to`, `broadcast_arrays` |
| the gradient of an operand | `sum_to` |
| to see why | `explain` |
| another rule than NumPy's | `rule=`: `"exact"`, `pdpd(axis=1)`, `named(...)` |
| to forbid or record broadcasting | `strict`, `using`, `check`, `record`, `guard` |

Arrays are NumPy's, anything that NumPy or DLPack makes one of, or Dask's, which stay lazy.
"""

from ._errors import BroadcastError, BroadcastWarning
from ._policy import Broadcast, check, guard, record, strict, using
from ._simulcast import (
    Explanation,
    Finding,
    Policy,
    Rule,
    axes,
    bidirectional,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    explain,
    legacy,
    mapping,
    named,
    paddle,
    pdpd,
    sum_to,
    to,
    unidirectional,
)

__all__ = [
    "Broadcast",
    "BroadcastError",
    "BroadcastWarning",
    "Explanation",
    "Finding",
    "Policy",
    "Rule",
    "axes",
    "bidirectional",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "check",
    "explain",
    "guard",
    "legacy",
    "mapping",
    "named",
    "paddle",
    "pdpd",
    "record",
    "strict",
    "sum_to",
    "to",
    "unidirectional",
    "using",
]
