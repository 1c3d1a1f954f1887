"""Makes the small models of the documentation: `python make.py`, with the onnx package."""

import os

from onnx import TensorProto, helper, save

HERE = os.path.dirname(os.path.abspath(__file__))


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def write(name, opset, nodes, inputs, outputs):
    graph = helper.make_graph(nodes, name, inputs, outputs)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=3 if opset < 7 else 8)
    save(model, os.path.join(HERE, name + ".onnx"))


# A loss whose target has lost its last axis.
write("loss", 17, [
    helper.make_node("MatMul", ["x", "weight"], ["pred"], name="linear"),
    helper.make_node("Sub", ["pred", "target"], ["difference"], name="subtract"),
    helper.make_node("Mul", ["difference", "difference"], ["square"], name="square"),
    helper.make_node("ReduceMean", ["square"], ["loss"], name="mean", keepdims=0),
], [value("x", ["batch", 8]), value("weight", [8, 1]), value("target", ["batch"])], [value("loss", [])])

# A scale for each row, laid as if it were for each column.
write("clash", 17, [
    helper.make_node("Gemm", ["x", "weight"], ["hidden"], name="linear"),
    helper.make_node("Mul", ["hidden", "scale"], ["y"], name="rescale"),
], [value("x", [4, 8]), value("weight", [8, 3]), value("scale", [4])], [value("y", [4, 3])])

# ONNX's own example of the old rule: B is laid onto A from axis 1.
write("legacy", 6, [
    helper.make_node("Add", ["a", "b"], ["c"], name="add", broadcast=1, axis=1),
], [value("a", [2, 3, 4, 5]), value("b", [3, 4])], [value("c", [2, 3, 4, 5])])
