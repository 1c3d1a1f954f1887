"""OpenVINO: Add under each `auto_broadcast`, and Broadcast-1 and -3 in each mode.

`out` is what shape inference says. `ran` is what `evaluate` gave, and `cpu` what the CPU plugin gave
(asked for a sample only), each where it is something else. Dimensions that are not known go
through shape inference alone.
"""

import numpy as np
import openvino as ov
from openvino import Dimension, PartialShape, Tensor, Type
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

from common import (
    CORNERS, CRASHED, REFUSED, ask, distinct, elements, few_pairs, isolated, mappings, pairs,
    partial_pairs, placed, sampled, targets, valued, write,
)

# The result of `evaluate` lies inside a buffer, so that writing outside it is seen.
MARGIN = 512
UNTOUCHED = -7
factory = {1: NodeFactory("opset1"), 3: NodeFactory("opset3")}


def read(dim):
    if not isinstance(dim, str):
        return Dimension(dim)
    if dim == "?":
        return Dimension()
    lo, hi = dim.split("..")
    return Dimension(int(lo or 0), int(hi) if hi else -1)


def said(shape):
    """A partial shape, as cases write it."""
    if shape.rank.is_dynamic:
        return None
    out = []
    for dim in shape:
        lo, hi = dim.get_min_length(), dim.get_max_length()
        hi = None if hi < 0 or hi >= 2 ** 31 else hi
        if lo == hi:
            out.append(lo)
        elif (lo, hi) == (0, None):
            out.append("?")
        else:
            out.append("%s..%s" % (lo or "", "" if hi is None else hi))
    return out


def parameter(shape):
    dims = PartialShape.dynamic() if shape is None else PartialShape([read(dim) for dim in shape])
    return ops.parameter(dims, Type.i64)


def node(case):
    inputs = [parameter(shape) for shape in case["shapes"]]
    parameters = list(inputs)
    if case["op"] == "opset13.add":
        return ops.add(inputs[0], inputs[1], auto_broadcast="PDPD"), parameters
    if case["op"] == "Add":
        attributes = {"auto_broadcast": {"exact": "none"}.get(case["rule"], case["rule"])}
        if case["rule"] == "pdpd":
            attributes["auto_broadcast.auto_broadcast_axis"] = case["axis"]
        return factory[1].create("Add", inputs, attributes), parameters
    mode = {"to": "NUMPY", "mapping": "EXPLICIT", "bidirectional": "BIDIRECTIONAL"}[case["rule"]]
    target = case.get("target", case.get("shape"))
    inputs.append(ops.constant(np.array(target, dtype=np.int64)))
    if "axes_mapping" in case:
        inputs.append(ops.constant(np.array(case["axes_mapping"], dtype=np.int64)))
    return factory[int(case["op"][-1])].create("Broadcast", inputs, {"mode": mode}), parameters


def arrays(case):
    """Operand k holds the position of each element, plus 1, times 1000 to the power k."""
    out = [(np.arange(elements(own), dtype=np.int64) + 1).reshape(own) * 1000 ** k
           for k, own in enumerate(case["shapes"])]
    for key in ("target", "shape", "axes_mapping"):
        if key in case:
            out.append(np.array(case[key], dtype=np.int64))
    return [np.asarray(one, dtype=np.int64) for one in out]


def sources(case, result):
    flat = result.ravel()
    return [(flat // 1000 ** k % 1000 - 1).tolist() for k in range(len(case["shapes"]))]


def unknown(case):
    return any(own is None or any(isinstance(dim, str) for dim in own) for own in case["shapes"])


def unsafe(case):
    """Axes that repeat are accepted, and then bytes from outside the operand are read."""
    axes = case.get("axes_mapping", [])
    return len(set(axes)) < len(axes)


corners = [[list(a), list(b), axis] for a, b, axis in CORNERS]


def answer(case):
    try:
        made, parameters = node(case)
    except RuntimeError:
        yield {"out": REFUSED}
        return
    out = said(made.output(0).partial_shape)
    yield {"out": out}
    if unknown(case) or unsafe(case) or out is None or any(isinstance(dim, str) for dim in out):
        return
    yield {"ran": CRASHED}
    count = elements(out)
    buffer = np.full(count + 2 * MARGIN, UNTOUCHED, dtype=np.int64)
    result = buffer[MARGIN:MARGIN + count].reshape(out)
    into = Tensor(result, shared_memory=True)
    try:
        worked = made.evaluate([into], [Tensor(one) for one in arrays(case)])
        ran = list(into.shape) if worked else REFUSED
    except RuntimeError:
        ran = REFUSED
    if (buffer != UNTOUCHED).sum() > count:
        ran = "wrote outside"
    yield {"ran": None if ran == out else ran}
    if ran == out and valued(case, out, 3):
        yield {"from": sources(case, result)}
    odd = 0 in case["shapes"][0] or 0 in out or not out
    corner = "axis" in case and case["shapes"] + [case["axis"]] in corners
    if sampled(case, 25) or corner or (odd and case["op"] == "Broadcast-3" and len(out) < 2):
        yield {"cpu": CRASHED}
        try:
            compiled = ov.Core().compile_model(ov.Model([made], parameters), "CPU", {"INFERENCE_NUM_THREADS": 1})
            given = compiled(arrays(case)[:len(parameters)])[0]
            cpu = list(given.shape)
            if cpu == out and ran == out and not np.array_equal(given, result):
                cpu = "other values"
        except RuntimeError:
            cpu = REFUSED
        yield {"cpu": None if cpu == out else cpu}


def cases():
    for own in few_pairs():
        yield ask("Add", "exact", own)
    for own in pairs():
        yield ask("Add", "numpy", own)
    for a, b, axis in placed():
        yield ask("Add", "pdpd", [a, b], axis=axis)
    # The Python function has no axis, and its default is not the document's.
    for a, b, _ in placed(0)[:60]:
        if 0 not in a + b:
            yield ask("opset13.add", "pdpd", [a, b])
    for own, target in targets():
        yield ask("Broadcast-1", "to", [own], target=target)
        yield ask("Broadcast-3", "to", [own], target=target)
        yield ask("Broadcast-3", "bidirectional", [own], target=target)
    for own, target, axes in mappings():
        yield ask("Broadcast-3", "mapping", [own], shape=target, axes_mapping=axes)
    for own, target, axes in mappings(200):
        yield ask("Broadcast-1", "mapping", [own], shape=target, axes_mapping=axes)
    for own in partial_pairs():
        yield ask("Add", "numpy", own)
        yield ask("Add", "exact", own)
        yield ask("Add", "pdpd", own, axis=-1)
        if own[0] is not None and own[1] is not None and len(own[1]) < len(own[0]):
            yield ask("Add", "pdpd", own, axis=0)
    for own, _ in partial_pairs(300):
        for target in distinct([[0], [1], [3], [2, 3], [1, 1, 3]]):
            if own is None or len(own) < 3:
                yield ask("Broadcast-3", "to", [own], target=target)
                yield ask("Broadcast-3", "bidirectional", [own], target=target)


def alone(case):
    return not unknown(case) and any(0 in own for own in case["shapes"]) or case["shapes"][0] == []


if __name__ == "__main__":
    version = ov.get_version().split("-")[0]
    write("openvino", {"openvino": version}, isolated(cases(), answer, alone=alone))
