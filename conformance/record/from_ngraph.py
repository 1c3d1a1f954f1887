"""nGraph: `Broadcast` with its broadcast axes, on the interpreter. Its last release runs on CPython 3.7."""

import ngraph as ng
import numpy as np
from ngraph.impl import AxisSet, Shape
from ngraph.impl.op import Broadcast

from common import CRASHED, REFUSED, ask, broadcast_axes, elements, isolated, valued, write


def answer(case):
    own = case["shapes"][0]
    given = ng.parameter(own, np.int64)
    try:
        node = Broadcast(given, Shape(case["shape"]), AxisSet(set(case["broadcast_axes"])))
    except RuntimeError:
        yield {"out": REFUSED}
        return
    out = list(node.shape)
    yield {"out": out, "ran": CRASHED}
    data = np.arange(elements(own), dtype=np.int64).reshape(own)
    shown = np.asarray(ng.runtime(backend_name="INTERPRETER").computation(node, given)(data)[0])
    ran = list(shown.shape)
    yield {"ran": None if ran == out else ran}
    if ran == out and valued(case, out, 3):
        yield {"from": [shown.ravel().tolist()]}


def cases():
    for own, shape, axes in broadcast_axes():
        yield ask("Broadcast", "axes", [own], shape=shape, broadcast_axes=axes)


if __name__ == "__main__":
    write("ngraph", {"ngraph-core": ng.__version__}, isolated(cases(), answer))
