"""onnxruntime, OpenVINO and, where it is installed, our own session: the case as an ONNX model, inputs and outputs
bound once."""

import ast
import io

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, numpy_helper

try:
    import simulcast.onnx
except ImportError:
    simulcast = None  # type: ignore[assignment]

from peer import NAMES, THREADS, TYPES, serve, stored, summed_axes

ELEMENTS = {
    "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "i8": TensorProto.INT8,
    "u8": TensorProto.UINT8, "i64": TensorProto.INT64, "bool": TensorProto.BOOL,
}
NODES = {
    "Add": "Add", "Sub": "Sub", "Mult": "Mul", "Div": "Div", "Gt": "Greater", "BitAnd": "And", "exp": "Exp",
    "tanh": "Tanh", "sin": "Sin", "where": "Where",
}


class Model:
    """The nodes of a model, written from an expression."""

    def __init__(self, case):
        self.case, self.nodes, self.constants = case, [], []

    def node(self, kind, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def integers(self, values):
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def operand(self, n):
        name = NAMES[n]
        if n == 0 and self.case["transposed"]:
            name = self.node("Transpose", name)
        if self.case["types"][n] not in ("bool", self.case["gives"]) and self.case["gives"] == "f32":
            name = self.node("Cast", name, to=TensorProto.FLOAT)
        return name

    def value(self, node):
        if isinstance(node, ast.Name):
            return self.operand(NAMES.index(node.id))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base = self.value(node.left)
            return self.node("Mul", base, base)
        if isinstance(node, ast.BinOp):
            return self.node(NODES[type(node.op).__name__], self.value(node.left), self.value(node.right))
        if isinstance(node, ast.Compare):
            return self.node(NODES[type(node.ops[0]).__name__], self.value(node.left), self.value(node.comparators[0]))
        if isinstance(node, ast.Subscript):
            new = [k for k, part in enumerate(node.slice.elts) if isinstance(part, ast.Constant)]
            return self.node("Unsqueeze", self.value(node.value), self.integers(new))
        if node.func.id == "sum":
            axes = self.integers([ast.literal_eval(node.keywords[0].value)])
            return self.node("ReduceSum", self.value(node.args[0]), axes, keepdims=0)
        return self.node(NODES[node.func.id], *map(self.value, node.args))

    def bytes(self):
        case, gives = self.case, self.case["gives"]
        shape = case["result"]
        if case["op"] == "copy":
            self.node("Expand", self.operand(0), self.integers(shape))
        elif case["op"] == "sum_to":
            first = self.operand(0)
            if gives == "f16":
                first, gives = self.node("Cast", first, to=TensorProto.FLOAT), "f32"
            axes = summed_axes(case)
            shape = [size for k, size in enumerate(case["shapes"][0]) if k not in axes]
            self.node("ReduceSum", first, self.integers(axes), keepdims=0)
        else:
            self.value(ast.parse(case["op"], mode="eval").body)
        self.nodes[-1].output[0] = "result"
        kinds = zip(NAMES, case["types"], case["shapes"])
        inputs = [helper.make_tensor_value_info(name, ELEMENTS[kind], sizes) for name, kind, sizes in kinds]
        outputs = [helper.make_tensor_value_info("result", ELEMENTS[gives], shape)]
        graph = helper.make_graph(self.nodes, case["name"], inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model)
        return model.SerializeToString(), np.empty(shape, TYPES[gives])


def refused(case):
    other = case["op"] in ("broadcast_shapes", "broadcast_to", "onnx_check")
    return other or case["compile"] or case["backwards"] or set(case["types"]) - set(ELEMENTS)


def onnxruntime_call(case):
    if refused(case):
        return None
    model, out = Model(case).bytes()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    bound, value = session.io_binding(), onnxruntime.OrtValue.ortvalue_from_numpy
    inputs, output = [value(array) for array in stored(case)], value(out)
    for name, array in zip(NAMES, inputs):
        bound.bind_ortvalue_input(name, array)
    if case["fresh"]:
        bound.bind_output("result", "cpu")
    else:
        bound.bind_ortvalue_output("result", output)
    # The values stand on the arrays' memory, and must live as long as the call does.
    return lambda inputs=inputs, output=output: session.run_with_iobinding(bound)


def openvino_call(case):
    if refused(case):
        return None
    model, out = Model(case).bytes()
    core = openvino.Core()
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(io.BytesIO(model)), "CPU", options).create_infer_request()
    inputs = stored(case)
    for n, array in enumerate(inputs):
        request.set_input_tensor(n, openvino.Tensor(array, shared_memory=True))
    if not case["fresh"]:
        request.set_output_tensor(openvino.Tensor(out, shared_memory=True))
    return lambda inputs=inputs, out=out: request.infer()


def own_call(case):
    if refused(case):
        return None
    model, out = Model(case).bytes()
    session, inputs = simulcast.onnx.Session(model), dict(zip(NAMES, stored(case)))
    out = None if case["fresh"] else {"result": out}
    return lambda: session.run(inputs, out=out)


OWN = [("simulcast-session", THREADS, own_call)] if simulcast else []
serve([*OWN, ("onnxruntime", THREADS, onnxruntime_call), ("openvino", THREADS, openvino_call)])
