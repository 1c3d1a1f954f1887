"""Upgraded models, run by ONNX Runtime and compared with NumPy.

    python upgrade.py path/to/simulcast

For every way to lay B onto A by `axis` there is a model of opset 6 (and 1) for each operator; it is
upgraded by the command, run, and compared with what NumPy gives where B is put in place by hand.
The models of opset 6 that come with the onnx wheel are upgraded too and compared with the results
that come with them. Needs the packages of record/requirements-onnxruntime.txt.
"""

import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ort.set_default_logger_severity(4)
FLOATS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power}
TRUTHS = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
COMPARED = {"Greater": np.greater, "Less": np.less}


def upgraded(command, model, folder):
    """The model as the command rewrites it; None and what it says where it refuses."""
    old, new = os.path.join(folder, "old.onnx"), os.path.join(folder, "new.onnx")
    with open(old, "wb") as out:
        out.write(model.SerializeToString())
    done = subprocess.run([command, "onnx", "upgrade", old, "-o", new], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    model = onnx.load(new)
    onnx.checker.check_model(model)
    os.remove(new)
    return model, ""


def run(model, feeds):
    session = ort.InferenceSession(model.SerializeToString())
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds)))


def model_of(op, a, b, out, kind, result, opset, **attributes):
    node = helper.make_node(op, ["a", "b"], ["c"], **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("a", kind, a), helper.make_tensor_value_info("b", kind, b)],
        [helper.make_tensor_value_info("c", result, out)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def every_axis(command, folder):
    count = 0
    for a in ([4], [3, 3], [2, 3, 4], [3, 3, 3], [2, 3, 4, 5]):
        for start in range(len(a)):
            for end in range(start, len(a) + 1):
                for ones in ([], [0], [-1]):
                    b = list(a[start:end])
                    if ones and not b:
                        continue
                    for at in ones:
                        b[at] = 1
                    axes = [start] + ([None] if end == len(a) else [])
                    for axis in axes:
                        count += all_ops(command, folder, a, b, start, axis)
    return count


def all_ops(command, folder, a, b, start, axis):
    place = b + [1] * (len(a) - start - len(b))
    rng = np.random.default_rng(len(a) * 100 + len(b) * 10 + start)
    kinds = [(FLOATS, TensorProto.FLOAT, np.float32), (TRUTHS, TensorProto.BOOL, np.bool_),
             (COMPARED, TensorProto.FLOAT, np.float32)]
    count = 0
    for ops, kind, dtype in kinds:
        result = TensorProto.FLOAT if ops is FLOATS else TensorProto.BOOL
        for op, of in ops.items():
            x, y = [np.asarray(rng.integers(0, 2, size) if dtype is np.bool_ else rng.random(size) + 0.5, dtype=dtype)
                    for size in (a, b)]
            attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
            for opset in (1, 6):
                old = model_of(op, a, b, a, kind, result, opset, **attributes)
                new, said = upgraded(command, old, folder)
                assert new is not None, (op, a, b, axis, said)
                [got] = run(new, [x, y])
                want = of(x, y.reshape(place))
                assert got.shape == want.shape and np.allclose(got, want), (op, a, b, axis)
                count += 1
    return count


def slopes(command, folder):
    count = 0
    for a, b in (([2, 3], [3]), ([2, 3, 4], [3]), ([1, 3, 2, 3], [3]), ([2, 3, 4, 5], [1]), ([4], [1])):
        x, y = np.linspace(-1, 1, int(np.prod(a)), dtype=np.float32).reshape(a), np.arange(1, b[0] + 1, dtype=np.float32)
        new, said = upgraded(command, model_of("PRelu", a, b, a, TensorProto.FLOAT, TensorProto.FLOAT, 6), folder)
        assert new is not None, said
        [got] = run(new, [x, y])
        slope = y.reshape([-1] + [1] * (len(a) - 2)) if len(a) > 1 else y
        assert np.allclose(got, np.where(x < 0, x * slope, x)), (a, b)
        count += 1
    return count


def wheel(command, folder):
    """Models that come with onnx and import an opset below 7."""
    home = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    right, refused = 0, {}
    for path in sorted(glob.glob(os.path.join(home, "*", "*", "model.onnx"))):
        model = onnx.load(path)
        opset = max([own.version for own in model.opset_import if own.domain in ("", "ai.onnx")] or [1])
        if opset >= 7:
            continue
        new, said = upgraded(command, model, folder)
        if new is None:
            refused[os.path.basename(os.path.dirname(path))] = said.split(": ", 2)[-1]
            continue
        for case in sorted(glob.glob(os.path.join(os.path.dirname(path), "test_data_set_*"))):
            read = lambda name: [numpy_helper.to_array(onnx.load_tensor(file)) for file in
                                 sorted(glob.glob(os.path.join(case, name + "_*.pb")))]
            for got, want in zip(run(new, read("input")), read("output")):
                assert np.allclose(got, want, rtol=1e-3, atol=1e-5, equal_nan=True), path
            right += 1
    return right, refused


def main():
    command = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        print("every axis: %d models" % every_axis(command, folder))
        print("slopes: %d models" % slopes(command, folder))
        right, refused = wheel(command, folder)
        print("models of the onnx wheel below opset 7: %d right, %d refused" % (right, len(refused)))
        for name, why in refused.items():
            print("  %s: %s" % (name, why))


if __name__ == "__main__":
    main()
