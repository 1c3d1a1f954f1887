"""OpenVINO 2022.3, the last with the old PDPD rule: Add with `auto_broadcast` pdpd, shape inference."""

import numpy as np
from openvino.runtime import get_version
from openvino.runtime import opset8 as ops
from openvino.runtime.utils.node_factory import NodeFactory

from common import REFUSED, ask, isolated, placed, write

factory = NodeFactory("opset8")


def answer(case):
    operands = [ops.parameter(own, np.int64) for own in case["shapes"]]
    attributes = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": case["axis"]}
    try:
        yield {"out": list(factory.create("Add", operands, attributes).output(0).shape)}
    except (RuntimeError, IndexError):
        yield {"out": REFUSED}


def cases():
    for a, b, axis in placed():
        yield ask("Add", "pdpd", [a, b], axis=axis)


version = get_version().split("-")[0]
write("openvino2022", {"openvino": version}, isolated(cases(), answer))
