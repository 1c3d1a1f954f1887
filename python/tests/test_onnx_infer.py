"""Annotated models, read by onnx's checker and its inference, and run by ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import simulcast.onnx
from simulcast.onnx import ModelError, infer

MODELS = Path(__file__).parents[2] / "crates" / "simulcast-onnx" / "models"
HOME = Path(onnx.__file__).parent / "backend" / "test" / "data"


def without_shapes(model):
    """The model without the shapes of its results."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    return model


def light_models():
    return sorted(HOME.glob("light/*.onnx"))


@pytest.mark.parametrize("path", [*MODELS.glob("*.onnx"), *light_models()], ids=lambda path: path.stem)
def test_only_shapes_change_and_the_result_is_accepted(path):
    made = infer(path)
    before, after = onnx.load(path), onnx.load_from_string(made.bytes)
    assert without_shapes(before) == without_shapes(after)
    if made.errors:
        return
    onnx.checker.check_model(after, full_check=before.ir_version > 3)
    known = {info.name: info.type.tensor_type for info in after.graph.value_info}
    for node in after.graph.node:
        outputs = {output.name for output in after.graph.output}
        for name in node.output:
            assert not name or name in known or name in outputs
    assert infer(made.bytes).bytes == made.bytes


@pytest.mark.parametrize("path", light_models(), ids=lambda path: path.stem)
def test_shapes_are_those_that_onnx_infers(path):
    model = onnx.load(path)
    ours = {info.name: info for info in infer(path).model.graph.value_info}
    theirs = onnx.shape_inference.infer_shapes(without_shapes(model), strict_mode=True, data_prop=True).graph
    compared = 0
    for info in theirs.value_info:
        sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        if info.name in ours and all(sizes):
            compared += 1
            own = ours[info.name].type.tensor_type
            assert own.elem_type == info.type.tensor_type.elem_type, info.name
            assert [dim.dim_value for dim in own.shape.dim] == sizes, info.name
    assert compared > 5


def test_the_runtime_takes_what_was_written():
    def dims(*sizes):
        return helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)

    nodes = [
        helper.make_node("Concat", ["x", "x"], ["twice"], axis=0),
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("MatMul", ["twice", "t"], ["product"]),
        helper.make_node("NonZero", ["product"], ["places"]),
        helper.make_node("Cast", ["places"], ["y"], to=TensorProto.FLOAT),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [dims("N", "M")], [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = infer(model)
    shapes = {
        info.name: [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in made.model.graph.value_info
    }
    assert shapes == {"twice": ["2*N", "M"], "t": ["M", "N"], "product": ["2*N", "N"], "places": [2, "places.1"]}
    assert made.report["not_known_after"] == {"NonZero": 1}
    x = np.ones((3, 4), np.float32)
    for source in (model.SerializeToString(), made.bytes):
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {"x": x})
        assert result.shape == (2, 18)
    fixed = infer(model, sizes={"N": 3, "M": 4}).model
    assert [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim] == [3, 4]


def test_files_are_whole_and_errors_are_told(tmp_path):
    made = infer(MODELS / "loss.onnx")
    assert "errors" in repr(made) and not made.errors
    made.save(tmp_path / "new.onnx")
    assert (tmp_path / "new.onnx").read_bytes() == bytes(made)
    with pytest.raises(OSError):
        made.save(tmp_path / "gone" / "new.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["new.onnx"]
    assert infer(MODELS / "clash.onnx").errors
    with pytest.raises(ModelError, match="no input"):
        infer(MODELS / "loss.onnx", sizes={"gone": 3})
    with pytest.raises(ModelError):
        infer(b"no model")
    assert simulcast.onnx.infer is infer
