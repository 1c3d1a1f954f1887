"""Upgraded models, run by ONNX Runtime and here, compared with NumPy and with the results that come with onnx.

For every way to lay B onto A by `axis` there is a model of opset 6 and 1 for each operator; what NumPy gives where B is put
in place by hand is expected. The models of opsets below 7 that the wheel of onnx carries have results with them.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from simulcast.onnx import ModelError, Session, UnsupportedError, upgrade

onnxruntime.set_default_logger_severity(4)
FLOATS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}
TRUTHS = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
COMPARED = {"Greater": np.greater, "Less": np.less}
HOME = Path(onnx.__file__).parent / "backend" / "test" / "data"


def by_runtime(made, arrays):
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([own.name for own in session.get_inputs()], arrays)))


def model(op, a, b, kind, result, opset, **attributes):
    node = helper.make_node(op, ["a", "b"], ["c"], **attributes)
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in (("a", a), ("b", b))]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("c", result, a)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def places():
    """Shapes of A and B, where B begins, and `axis`, which may be left out where B ends with A."""
    for a in ((4,), (3, 3), (2, 3, 4), (3, 3, 3), (2, 3, 4, 5)):
        for start in range(len(a)):
            for end in range(start, len(a) + 1):
                for ones in ([], [0], [-1]):
                    b = list(a[start:end])
                    if ones and not b:
                        continue
                    for at in ones:
                        b[at] = 1
                    for axis in [start] + ([None] if end == len(a) else []):
                        yield a, tuple(b), start, axis


@pytest.mark.parametrize("op", [*FLOATS, *TRUTHS, *COMPARED])
def test_every_axis_becomes_the_rule_of_numpy(op):
    by_numpy = {**FLOATS, **TRUTHS, **COMPARED}[op]
    kind = TensorProto.BOOL if op in TRUTHS else TensorProto.FLOAT
    result = TensorProto.FLOAT if op in FLOATS else TensorProto.BOOL
    count = 0
    for a, b, start, axis in places():
        random = np.random.default_rng(len(a) * 100 + len(b) * 10 + start)
        x, y = (np.asarray(random.random(shape) + 0.5, np.float32) for shape in (a, b))
        if op in TRUTHS:
            x, y = x > 1, np.asarray(y > 1)
        expected = by_numpy(x, y.reshape(b + (1,) * (len(a) - start - len(b))))
        for opset in (1, 6):
            attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
            old = model(op, a, b, kind, result, opset, **attributes)
            new = upgrade(old)
            onnx.checker.check_model(onnx.load_model_from_string(new))
            for own in (old, new):
                ours = Session(own).run({"a": x, "b": y})["c"]
                assert ours.shape == expected.shape
                np.testing.assert_allclose(ours, expected, rtol=1e-6)
            # Beside ours, a fifth of them by ONNX Runtime: it takes a while to load each.
            if count % 5 == 0:
                (theirs,) = by_runtime(new, [x, y])
                np.testing.assert_allclose(theirs, expected, rtol=1e-6)
            count += 1
    assert count == 260


@pytest.mark.parametrize("a, b", [((2, 3), 3), ((2, 3, 4), 3), ((1, 3, 2, 3), 3), ((2, 3, 4, 5), 1), ((4,), 1)])
def test_a_slope_stays_with_its_channel(a, b):
    x = np.linspace(-1, 1, int(np.prod(a)), dtype=np.float32).reshape(a)
    slope = np.arange(1, b + 1, dtype=np.float32)
    old = model("PRelu", a, (b,), TensorProto.FLOAT, TensorProto.FLOAT, 6)
    laid = slope.reshape([-1] + [1] * (len(a) - 2)) if len(a) > 1 else slope
    expected = np.where(x < 0, x * laid, x)
    for ours in (by_runtime(upgrade(old), [x, slope])[0], Session(upgrade(old)).run({"a": x, "b": slope})["c"]):
        np.testing.assert_allclose(ours, expected)


def legacy():
    """The models that come with onnx and import an opset below 7."""
    for path in sorted(HOME.glob("*/*/model.onnx")):
        own = onnx.load(path)
        if max([own.version for own in own.opset_import if own.domain in ("", "ai.onnx")] or [1]) < 7:
            yield path


def read(folder, name):
    files = sorted(folder.glob(f"{name}_*.pb"), key=lambda file: int(file.stem.split("_")[-1]))
    return [numpy_helper.to_array(onnx.load_tensor(file)) for file in files]


def test_the_models_of_onnx_give_the_results_that_come_with_them():
    compared = run_here = 0
    for path in legacy():
        new = upgrade(path)
        for folder in sorted(path.parent.glob("test_data_set_*")):
            inputs, expected = read(folder, "input"), read(folder, "output")
            theirs = by_runtime(new, inputs)
            assert len(theirs) == len(expected)
            for given, own in zip(theirs, expected):
                np.testing.assert_allclose(given, own, rtol=1e-3, atol=1e-5)
            compared += 1
            try:
                before, after = Session(path), Session(new)
            except UnsupportedError:
                continue
            outputs = before.run(dict(zip(before.inputs, inputs))), after.run(dict(zip(after.inputs, inputs)))
            for old, given, own in zip(*(each.values() for each in outputs), expected):
                np.testing.assert_allclose(given, own, rtol=1e-3, atol=1e-5)
                assert old.tobytes() == given.tobytes()
            run_here += 1
    assert compared == 112 and run_here >= 40


def test_what_is_new_enough_is_not_upgraded():
    with pytest.raises(ModelError, match="opset 7"):
        upgrade(model("Add", (2,), (2,), TensorProto.FLOAT, TensorProto.FLOAT, 7))
