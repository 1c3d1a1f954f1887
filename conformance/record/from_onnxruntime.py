"""ONNX Runtime: Add, Sum, Max, Where, PRelu (X does not stretch), Expand; on the CPU, shapes unknown to the model.

`onnx` itself is asked too: what its shape inference says of the same nodes with known shapes.
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from common import CRASHED, REFUSED, ask, elements, few_pairs, isolated, lists, pairs, targets, valued, write

OPSET = 18
ort.set_default_logger_severity(4)
runners: dict = {}


def model(op, types, own=None, target=None):
    """One node; the shapes of its inputs are `own`, or left open."""
    names = ["x%d" % k for k in range(len(types))]
    inputs = [helper.make_tensor_value_info(name, kind, None if own is None else own[k])
              for k, (name, kind) in enumerate(zip(names, types))]
    node_inputs, constants = list(names), []
    if target is not None:
        constants.append(helper.make_tensor("target", TensorProto.INT64, [len(target)], target))
        node_inputs.append("target")
    out = helper.make_tensor_value_info("y", types[-1] if target is None and op != "Expand" else types[0], None)
    graph = helper.make_graph([helper.make_node(op, node_inputs, ["y"])], "case", inputs, [out], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def runner(op, types):
    key = (op, tuple(types))
    if key not in runners:
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        runners[key] = ort.InferenceSession(
            model(op, types).SerializeToString(), options, providers=["CPUExecutionProvider"])
    return runners[key]


def run(op, types, arrays):
    feeds = {"x%d" % k: np.asarray(array) for k, array in enumerate(arrays)}
    return runner(op, types).run(None, feeds)[0]


def types_of(case):
    kind = TensorProto.DOUBLE
    if case["op"] == "Where":
        return [TensorProto.BOOL, kind, kind]
    if case["op"] == "Expand":
        return [kind, TensorProto.INT64]
    return [kind] * len(case["shapes"])


def arrays_of(case):
    """Operand k holds the position of each element, plus 1, times 1000 to the power k."""
    out = [(np.arange(elements(own), dtype=np.float64) + 1).reshape(own) * 1000.0 ** k
           for k, own in enumerate(case["shapes"])]
    if case["op"] == "Where":
        out[0] = np.ones(case["shapes"][0], dtype=bool)
    if case["op"] == "Expand":
        out.append(np.array(case["target"], dtype=np.int64))
    return out


def sources(case, result):
    """Where each element of the result came from, in each operand."""
    own, types, arrays = case["shapes"], types_of(case), arrays_of(case)
    if case["op"] in ("Add", "Sum"):
        flat = result.ravel()
        return [((flat // 1000.0 ** k) % 1000 - 1).astype(int).tolist() for k in range(len(own))]
    if case["op"] == "Expand":
        return [(result.ravel() - 1).astype(int).tolist()]
    # Where: the condition shows itself one element at a time.
    x, y = np.ones(own[1]), np.zeros(own[2])
    condition = np.zeros(result.size, dtype=int)
    for k in range(elements(own[0])):
        one = np.arange(elements(own[0])).reshape(own[0]) == k
        condition[run("Where", types, [one, x, y]).ravel() > 0] = k
    taken = run("Where", types, [np.ones(own[0], dtype=bool), arrays[1], arrays[2]])
    left = run("Where", types, [np.zeros(own[0], dtype=bool), arrays[1], arrays[2]])
    return [condition.tolist(), (taken.ravel() / 1000 - 1).astype(int).tolist(),
            (left.ravel() / 1000000 - 1).astype(int).tolist()]


def cases():
    for own in pairs():
        yield ask("Add", "numpy", own)
    for own in [[[2, 3]]] + lists("several", 350, 3, 4):
        yield ask("Sum", "numpy", own)
        yield ask("Max", "numpy", own)
    for own in lists("where", 350, 3, 3):
        yield ask("Where", "numpy", own)
    for own, target in targets():
        yield ask("Expand", "bidirectional", [own], target=target)
    for own in few_pairs():
        yield ask("PRelu", "unidirectional", own)


def inferred(case):
    """The shape that `onnx` infers, REFUSED, or None where it infers nothing."""
    types = types_of(case)
    own = case["shapes"]
    if case["op"] == "Expand":
        types, own = types[:1], own[:1]
    proto = model(case["op"], types, own, case.get("target"))
    try:
        graph = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True).graph
    except onnx.shape_inference.InferenceError:
        return REFUSED
    kind = graph.output[0].type.tensor_type
    if not kind.HasField("shape") or any(not dim.HasField("dim_value") for dim in kind.shape.dim):
        return None
    return [dim.dim_value for dim in kind.shape.dim]


def answer(case):
    try:
        result = run(case["op"], types_of(case), arrays_of(case))
        out = list(result.shape)
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        out = REFUSED
    yield {"out": out, "inferred": CRASHED}
    guess = inferred(case)
    yield {"inferred": None if guess == out else "nothing" if guess is None else guess}
    readable = case["op"] in ("Add", "Sum", "Where", "Expand")
    if out != REFUSED and readable and valued(case, out, 3):
        yield {"from": sources(case, result)}


write("onnxruntime", {"onnxruntime": ort.__version__, "onnx": onnx.__version__},
      isolated(cases(), answer, batch=2000))
