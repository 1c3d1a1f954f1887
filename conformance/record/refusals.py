"""Which models of one node ONNX Runtime refuses: at loading, or in every run.

A case is a line: the opset, inputs as `[element type, sizes]`, integer constants as `[sizes, values]`, one node, what
the outputs are declared to be, and `out`: `ok`, `load` or `run`. Beside each model that is refused stand neighbours
that are not: what is only unusual is no error.

    python conformance/record/refusals.py > conformance/refusals.jsonl
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

ort.set_default_logger_severity(4)
FLOAT, INT, TEXT = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def case(op, inputs, outputs=1, opset=17, constants=None, declared=None, **attributes):
    """A model of a node whose inputs are named in order, constants last."""
    constants = constants or []
    named = {"abcdef"[at]: own for at, own in enumerate(inputs)}
    fixed = {"k%d" % at: own for at, own in enumerate(constants)}
    names = ["y%d" % at for at in range(outputs)]
    node = [op, [*named, *fixed], names, attributes]
    return {"opset": opset, "inputs": named, "constants": fixed, "node": node, "declared": declared or {}}


def pair(size):
    return [FLOAT, [size]], [FLOAT, [size]]


def cases():
    x, scale = [FLOAT, [2, 2]], [FLOAT, [4]]
    for k in (1, 2, 3, 7):
        yield case("TopK", [[FLOAT, [2]]], 2, constants=[[[1], [k]]])
    for opset in (9, 11, 12, 13, 17):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            for axis in (-3, -2, 1, 2, 5):
                yield case(op, [x], opset=opset, axis=axis)
            yield case(op, [[FLOAT, [3]]], opset=opset)
    for axis in (-3, -2, 1, 2, 9):
        yield case("CumSum", [x], constants=[[[], [axis]]])
        yield case("LpNormalization", [x], axis=axis)
    for repeats in ([7], [1, 2], [1, 2, 3]):
        yield case("Tile", [x], constants=[[[len(repeats)], repeats]])
    for parts in (0, 2, 3, -1):
        yield case("Split", [[FLOAT, [4]]], 2, opset=18, num_outputs=parts)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for kernel in ([0, 2], [2, 2], [-1, 2]):
            yield case(op, [[FLOAT, [1, 1, 5, 5]]], kernel_shape=kernel)
    for outputs in (1, 2):
        yield case("Add", pair(2), outputs)
        yield case("Relu", [x], outputs)
        yield case("MaxPool", [[FLOAT, [1, 1, 5, 5]]], outputs + 1, kernel_shape=[2, 2])
    for value in ("x", 1, [1], 1.0):
        yield case("Softmax", [x], axis=value)
        yield case("Transpose", [[FLOAT, [2]]], perm=value)
    for value in (0.5, 1, "x"):
        yield case("LeakyRelu", [x], alpha=value)
    yield case("Add", pair(2), bogus=1)
    yield case("Add", pair(2), __private=1)
    for equation in ("ij,jk->zz", "ij,jk->ik", "ij,jk->iz", "ij,jk", "...j,jk->...k", "ij,jk->ii"):
        yield case("Einsum", [x, x], equation=equation)
    for index in ([7], [1], [-2], [-3]):
        yield case("ScatterND", [x]) | {
            "inputs": {"a": x, "c": [FLOAT, [1, 2]]},
            "constants": {"b": [[1, 1], index]},
            "node": ["ScatterND", ["a", "b", "c"], ["y0"], {}],
        }
    for updates in ([5, 5], [1, 2], [2, 2], [1, 1]):
        yield case("ScatterND", []) | {
            "inputs": {"a": x, "c": [FLOAT, updates]},
            "constants": {"b": [[1, 1], [1]]},
            "node": ["ScatterND", ["a", "b", "c"], ["y0"], {}],
        }
    for sizes in ([2, 4, 4, 4], [2, 4, 3, 3], [2, 4, 3], [2, 4]):
        for groups in (1, 2, 3, 0, 5):
            yield case("GroupNormalization", [[FLOAT, sizes], scale, scale], opset=21, num_groups=groups)
    for sizes, groups in ([2, 4, 3], 3), ([2, 4, 3], 2), ([2, 3, 4], 3), ([2, 6, 4], 4):
        per_group = [FLOAT, [groups]]
        yield case("GroupNormalization", [[FLOAT, sizes], per_group, per_group], opset=18, num_groups=groups)
    for opset in (12, 13, 17):
        yield case("Softmax", [[FLOAT, []]], opset=opset)
        yield case("Softmax", [[FLOAT, []]], opset=opset, axis=0)
    yield case("LpNormalization", [[FLOAT, []]])
    yield case("CumSum", [[FLOAT, []]], constants=[[[], [0]]])
    for element in (FLOAT, INT, TEXT, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT32):
        for op in ("Relu", "Identity", "Sqrt", "Neg", "Abs", "Softmax", "ReduceSum", "IsNaN", "BitwiseNot"):
            yield case(op, [[element, [2, 2]]], opset=18)
        for op in ("Add", "MatMul", "Equal", "And", "Sum", "Max", "BitShift", "Where"):
            attributes = {"direction": "LEFT"} if op == "BitShift" else {}
            front = [[TensorProto.BOOL, [2, 2]]] if op == "Where" else []
            yield case(op, [*front, [element, [2, 2]], [element, [2, 2]]], **attributes)
        yield case("Gather", [[element, [2, 2]]], constants=[[[1], [0]]])
    yield from narrowed()
    for axes in ([0, 0], [0, -2], [1, 0, 1], [2], [-3]):
        yield case("ReduceSum", [x], opset=11, axes=axes)
        for op in ("ReduceSum", "ReduceMax", "Squeeze", "Unsqueeze"):
            yield case(op, [[FLOAT, [1, 1]]], opset=18, constants=[[[len(axes)], axes]])
        yield case("ReduceSum", [x], opset=18, keepdims=0, constants=[[[len(axes)], axes]])
    for element in (FLOAT, INT):
        yield case("Relu", [x], declared={"y0": [element, [2, 2]]})
        yield case("Shape", [x], declared={"y0": [element, [2]]})


def narrowed():
    """Operators of one type, at each opset that changed what they take, and at the one before."""
    kinds = (TensorProto.INT32, INT, TensorProto.UINT8, TEXT, TensorProto.BOOL, TensorProto.FLOAT16)
    unary = "Relu Abs Neg Sign IsInf Clip Softmax ReduceMax ReduceSum Round Erf Not Exp Sigmoid LeakyRelu NonZero ArgMax Identity"
    binary = "Add Sub Div Mod Equal Less LessOrEqual And MatMul Max Mean PRelu"
    for op in f"{unary} {binary}".split():
        since = sorted(
            {own.since_version for own in onnx.defs.get_all_schemas_with_history() if own.name == op and not own.domain}
        )
        opsets = sorted({at for own in since for at in (own - 1, own) if max(7, since[0]) <= at <= 22})
        for opset in opsets or [7]:
            for kind in kinds:
                attributes = {"fmod": 1} if op == "Mod" and kind == TensorProto.FLOAT16 else {}
                yield case(op, [[kind, [2, 2]]] * (2 if op in binary.split() else 1), opset=opset, **attributes)


def answer(own):
    op, inputs, outputs, attributes = own["node"]
    info = helper.make_tensor_value_info
    given = [info(name, element, sizes) for name, (element, sizes) in own["inputs"].items()]
    fixed = [helper.make_tensor(name, INT, sizes, values) for name, (sizes, values) in own["constants"].items()]
    declared = own["declared"]
    made = [info(name, *declared[name]) if name in declared else onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([helper.make_node(op, inputs, outputs, **attributes)], "g", given, made, fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", own["opset"])], ir_version=8)
    try:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented:
        # No code for these types is another matter than a model that is wrong.
        return "code"
    except Exception:
        return "load"
    feeds = {}
    for name, (element, sizes) in own["inputs"].items():
        kind = helper.tensor_dtype_to_np_dtype(element)
        feeds[name] = np.full(sizes, "a", object) if element == TEXT else np.ones(sizes, kind)
    try:
        session.run(None, feeds)
    except Exception:
        return "run"
    return "ok"


def main():
    versions = {"onnxruntime": ort.__version__, "onnx": onnx.__version__}
    print(json.dumps({"system": "refusals", "versions": versions}, separators=(",", ":")))
    for own in cases():
        print(json.dumps(own | {"out": answer(own)}, separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
