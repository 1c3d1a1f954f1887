"""Models run here, by NumPy and by ONNX Runtime: operators, element types, shapes, chains, exported networks."""

import base64
import copy
import itertools
import json
import pickle
import subprocess
import sys
import types
import unicodedata
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import simulcast.onnx
from simulcast.onnx import ModelError, Session, UnsupportedError

onnxruntime.set_default_logger_severity(4)
RECORDED = Path(__file__).parents[2] / "conformance" / "models.jsonl"

FLOATS = ["float16", "float32", "float64", "bfloat16"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
REAL = FLOATS + INTEGERS


def dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def model(nodes, inputs, outputs, opset=21, initializers=()):
    """A model of nodes on arrays, of whose outputs nothing is declared."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", values, results, list(initializers))
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=3 if opset < 7 else 10)


def by_runtime(made, inputs):
    """The outputs of ONNX Runtime; `None` where it has no kernel."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(made.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception as error:  # Its exceptions have no common class of their own.
        if "NOT_IMPLEMENTED" in str(error) or "not currently registered or supported" in str(error):
            return None
        raise
    return session.run(None, inputs)


def close(ours, theirs, loose=1.0):
    """Equal but for the last bits of floats."""
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (ours.dtype, ours.shape, theirs.dtype, theirs.shape)
    if ours.dtype.kind in "fV" and ours.dtype != object:
        digits = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}[ours.dtype.name] * loose
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=digits, atol=digits)
    else:
        np.testing.assert_array_equal(ours, theirs)


@st.composite
def shapes(draw, count):
    """Shapes that broadcast, of rank 0 to 6, sizes 0, 1 and more, none of the first necessarily the largest."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 0, 4]), min_size=0, max_size=6))
    while np.prod(full, dtype=np.int64) > 600:
        full.pop()
    made = []
    for _ in range(count):
        own = [size if draw(st.booleans()) else 1 for size in full]
        made.append(tuple(own[draw(st.integers(0, len(own))) :] if draw(st.booleans()) else own))
    return made


def values(seed, shape, name):
    """Values of a type that no operator here makes overflow in floats."""
    random = np.random.default_rng(seed)
    own = dtype(name)
    if name == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if own.kind in "iu":
        low = 0 if own.kind == "u" else -20
        return np.asarray(random.integers(low, 20, shape)).astype(own)
    return np.asarray(random.normal(0, 2, shape)).astype(own)


def divide(a, b):
    """Integers are divided towards 0."""
    if a.dtype.kind not in "iu":
        return a / b
    with np.errstate(all="ignore"):
        safe = np.where(b == 0, np.ones_like(b), b)
        quotient = np.abs(a.astype(object)) // np.abs(safe.astype(object))
        return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient)).astype(a.dtype)


BINARY = {
    "Add": (REAL, np.add),
    "Sub": (REAL, np.subtract),
    "Mul": (REAL, np.multiply),
    "Div": (REAL, divide),
    "Equal": ([*REAL, "bool"], np.equal),
    "Greater": (REAL, np.greater),
    "GreaterOrEqual": (REAL, np.greater_equal),
    "Less": (REAL, np.less),
    "LessOrEqual": (REAL, np.less_equal),
    "And": (["bool"], np.logical_and),
    "Or": (["bool"], np.logical_or),
    "Xor": (["bool"], np.logical_xor),
    "BitwiseAnd": (INTEGERS, np.bitwise_and),
    "BitwiseOr": (INTEGERS, np.bitwise_or),
    "BitwiseXor": (INTEGERS, np.bitwise_xor),
    "Mod": (INTEGERS, np.mod),
}


@pytest.mark.parametrize("op", BINARY)
@given(data=st.data())
def test_binary_operators_broadcast_as_numpy(op, data):
    names, by_numpy = BINARY[op]
    name, seed = data.draw(st.sampled_from(names)), data.draw(st.integers(0, 2**32))
    one, other = data.draw(shapes(2))
    a, b = values(seed, one, name), values(seed + 1, other, name)
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.ones_like(b), b)
    made = model([helper.make_node(op, ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    ours = Session(made).run({"a": a, "b": b})["y"]
    close(ours, np.asarray(by_numpy(a, b)))
    theirs = by_runtime(made, {"a": a, "b": b}) if "bfloat16" != name else None
    if theirs is not None:
        close(ours, theirs[0])


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
@given(data=st.data())
def test_one_to_five_operands_broadcast_as_numpy(op, data):
    count, seed = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 2**32))
    name = data.draw(st.sampled_from(REAL if op in ("Max", "Min") else FLOATS))
    arrays = {f"x{n}": values(seed + n, shape, name) for n, shape in enumerate(data.draw(shapes(count)))}
    made = model([helper.make_node(op, list(arrays), ["y"])], arrays, ["y"])
    ours = Session(made).run(arrays)["y"]
    wide = np.broadcast_arrays(*arrays.values())
    if op in ("Max", "Min"):
        expected = np.stack(wide).max(0) if op == "Max" else np.stack(wide).min(0)
    else:
        total = sum(array.astype(np.float64) for array in wide)
        expected = total if op == "Sum" else total / count
    close(ours, np.asarray(expected).astype(dtype(name)), 4)
    theirs = by_runtime(made, arrays) if name not in ("bfloat16", "int8", "int16", "uint8", "uint16") else None
    if theirs is not None:
        close(ours, theirs[0], 4)


@given(data=st.data())
def test_where_broadcasts_three_operands(data):
    name, seed = data.draw(st.sampled_from([*REAL, "bool"])), data.draw(st.integers(0, 2**32))
    condition, one, other = data.draw(shapes(3))
    arrays = {"c": values(seed, condition, "bool"), "a": values(seed + 1, one, name), "b": values(seed + 2, other, name)}
    made = model([helper.make_node("Where", ["c", "a", "b"], ["y"])], arrays, ["y"])
    close(Session(made).run(arrays)["y"], np.where(*arrays.values()).astype(dtype(name)))


@given(data=st.data())
def test_pow_takes_exponents_of_another_type(data):
    base, power = data.draw(st.sampled_from(["float32", "float64", "int32", "int64"])), data.draw(st.sampled_from(REAL))
    assume("bfloat16" not in (base, power))
    one, other = data.draw(shapes(2))
    seed = data.draw(st.integers(0, 2**32))
    a = (np.abs(values(seed, one, base)) % 5 + 1).astype(base)
    b = (np.abs(values(seed + 1, other, power)) % 4).astype(power)
    made = model([helper.make_node("Pow", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    ours = Session(made).run({"a": a, "b": b})["y"]
    with np.errstate(all="ignore"):
        close(ours, np.asarray(np.power(a, b)).astype(base), 4)


@given(data=st.data())
def test_an_expansion_is_a_copy_bit_by_bit(data):
    name = data.draw(st.sampled_from([*REAL, "bool"]))
    one, other = data.draw(shapes(2))
    x, shape = values(1, one, name), np.array(other, np.int64)
    made = model([helper.make_node("Expand", ["x", "s"], ["y"])], {"x": x, "s": shape}, ["y"])
    expected = np.array(np.broadcast_to(x, np.broadcast_shapes(one, other)))
    ours = Session(made).run({"x": x, "s": shape})["y"]
    assert (ours.dtype, ours.shape, ours.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


@given(data=st.data())
def test_the_old_rule_lays_the_second_operand_from_an_axis(data):
    full = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    start = data.draw(st.integers(0, len(full)))
    end = data.draw(st.integers(start, len(full)))
    op = data.draw(st.sampled_from(["Add", "Sub", "Mul"]))
    a, b = values(1, full, "float32"), values(2, full[start:end], "float32")
    expected = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op](
        a, b.reshape(b.shape + (1,) * (len(full) - end))
    )
    node = helper.make_node(op, ["a", "b"], ["y"], broadcast=1, axis=start)
    made = model([node], {"a": a, "b": b}, ["y"], opset=6)
    close(Session(made).run({"a": a, "b": b})["y"], expected)


REDUCED = {
    "ReduceSum": lambda x, **how: np.sum(x, **how),
    "ReduceProd": lambda x, **how: np.prod(x, **how),
    "ReduceMean": lambda x, **how: np.mean(x, **how),
    "ReduceMax": lambda x, **how: np.max(x, initial=-np.inf, **how),
    "ReduceMin": lambda x, **how: np.min(x, initial=np.inf, **how),
    "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
    "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x), **how)),
}


@pytest.mark.parametrize("op", REDUCED)
@given(data=st.data())
def test_reductions(op, data):
    (shape,) = data.draw(shapes(1))
    keep = data.draw(st.booleans())
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    x = values(data.draw(st.integers(0, 2**32)), shape, "float64") / 4
    over = tuple(axes) or tuple(range(len(shape)))
    assume(op != "ReduceMean" or all(shape[axis] for axis in over))
    signs = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    arrays = {"x": x, "axes": np.array(signs, np.int64)}
    made = model([helper.make_node(op, ["x", "axes"], ["y"], keepdims=int(keep))], arrays, ["y"])
    with np.errstate(all="ignore"):
        expected = REDUCED[op](x, axis=over, keepdims=keep)
    close(Session(made).run(arrays)["y"], np.asarray(expected), 10)


@given(data=st.data())
def test_products_of_matrices_broadcast_their_batches(data):
    left, right = data.draw(shapes(2))
    m, k, n = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    name = data.draw(st.sampled_from(["float32", "float64", "int32", "int64", "uint32"]))
    a, b = values(1, (*left[:3], m, k), name), values(2, (*right[:3], k, n), name)
    try:
        expected = np.matmul(a, b)
    except ValueError:
        assume(False)
    made = model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, ["y"])
    close(Session(made).run({"a": a, "b": b})["y"], expected, 20)


UNARY = ["Abs", "Neg", "Exp", "Tanh", "Sigmoid", "Relu", "Softplus", "Erf", "Sqrt", "Floor", "Cos", "LeakyRelu", "Elu"]


@st.composite
def chains(draw):
    """A graph of element-wise nodes, of which some values are read more than once, and some are outputs."""
    name = draw(st.sampled_from(["float32", "float64"]))
    arrays = {f"x{n}": values(n, shape, name) for n, shape in enumerate(draw(shapes(draw(st.integers(1, 4)))))}
    known, nodes = list(arrays), []
    for n in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from([*UNARY, "Add", "Sub", "Mul", "Max", "Min"]))
        picked = [draw(st.sampled_from(known)) for _ in range(1 if op in UNARY else 2)]
        if op in ("Sqrt", "Exp"):
            # Within what is a number, and not too large a one.
            nodes.append(helper.make_node("Tanh", [picked[0]], [f"t{n}"]))
            nodes.append(helper.make_node("Abs", [f"t{n}"], [f"a{n}"]))
            picked = [f"a{n}"]
        nodes.append(helper.make_node(op, picked, [f"v{n}"]))
        known.append(f"v{n}")
    made = [name for name in known if name.startswith("v")]
    outputs = sorted({made[-1], *draw(st.lists(st.sampled_from(made), max_size=3))})
    return arrays, nodes, outputs


@given(chains())
def test_fused_chains_are_what_onnx_runtime_computes(case):
    arrays, nodes, outputs = case
    made = model(nodes, arrays, outputs, opset=13)
    session = Session(made)
    theirs = by_runtime(made, arrays)
    assume(theirs is not None and all(np.isfinite(array).all() and (np.abs(array) < 1e6).all() for array in theirs))
    ours = session.run(arrays)
    for name, expected in zip(outputs, theirs):
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        close(ours[name] / scale, expected / scale, 300)


def test_a_chain_is_one_program_and_shared_values_are_arrays():
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Exp", ["square"], ["power"]),
        helper.make_node("Add", ["power", "x"], ["sum"]),
        helper.make_node("Softmax", ["sum"], ["soft"]),
        helper.make_node("Sub", ["sum", "soft"], ["rest"]),
        helper.make_node("Relu", ["rest"], ["y"]),
    ]
    made = model(nodes, {"x": x}, ["y"])
    session = Session(made)
    assert session.fused == (3, 2)
    close(session.run({"x": x})["y"], by_runtime(made, {"x": x})[0], 4)
    assert Session(model(nodes, {"x": x}, ["y", "power"])).fused == (2, 1, 2)


def recorded():
    lines = RECORDED.read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def test_exported_networks_compute_what_onnx_runtime_does():
    run, refused, known = set(), set(), {}
    for case in recorded():
        if "model" not in case:
            continue
        raw = base64.b64decode(case["model"]) or known[case["name"]]
        known[case["name"]] = raw
        made = onnx.load_model_from_string(raw)
        random = np.random.default_rng(5)
        arrays = {}
        for value in made.graph.input:
            dims = value.type.tensor_type.shape.dim
            sizes = [case["symbols"].get(dim.dim_param, dim.dim_value) for dim in dims]
            arrays[value.name] = random.normal(size=sizes).astype(np.float32)
        try:
            session = Session(raw)
        except UnsupportedError as error:
            assert "no code for Conv (" in str(error)
            refused.add(case["name"])
            continue
        theirs = by_runtime(made, arrays)
        for ours, expected in zip(session.run(arrays).values(), theirs):
            close(ours, expected, 50)
        run.add(case["name"])
    assert run == {"mlp old", "mlp new", "attention old", "attention new"}
    assert refused == {"residual old", "residual new"}


WINDOWS = {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool"}


def test_random_models_compute_what_onnx_runtime_does():
    compared = 0
    for case in (case for case in recorded() if "nodes" in case and isinstance(case["out"], dict)):
        random = np.random.default_rng(7)
        arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in case["inputs"].items()}
        constants = [
            onnx.numpy_helper.from_array(np.array(value, np.int64), name) for name, value in case["constants"].items()
        ]
        nodes, outputs, known = [], [], {"", *arrays, *case["constants"]}
        for op, ins, outs, attributes in case["nodes"]:
            # Convolutions and pools are out of scope, and with them what reads their results.
            if op not in WINDOWS and known.issuperset(ins):
                nodes.append(helper.make_node(op, ins, outs, **attributes))
                outputs += [name for name in outs if name]
                known.update(outs)
        if not nodes:
            continue
        made = model(nodes, arrays, outputs, opset=17, initializers=constants)
        made.ir_version = 8
        theirs = by_runtime(made, arrays)
        ours = Session(made).run(arrays)
        sources = {node.output[0]: node.input[0] for node in nodes if node.op_type == "Cast"}
        theirs_by_name = dict(zip(outputs, theirs))
        for name, expected in theirs_by_name.items():
            # What casts make of NaN and infinities is nobody's promise; nor are the last bits of large numbers.
            asked = theirs_by_name.get(sources.get(name), expected)
            finite = np.isfinite(asked) & (np.abs(asked) < 1e4) if asked.dtype.kind == "f" else ...
            close(ours[name][finite], expected[finite], 100)
            compared += 1
    assert compared > 1500


def test_errors_name_the_node_and_the_operands():
    x, y = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "y"], ["z"], name="join")]
    session = Session(model(nodes, {"x": x, "y": y}, ["z"]))
    with pytest.raises(ModelError, match=r"^join \(Add\): E1: "):
        session.run({"x": x, "y": y})
    with pytest.raises(ModelError, match="the input \"y\" is missing"):
        session.run({"x": x})
    with pytest.raises(ModelError, match="\"z\" is no input of the model"):
        session.run({"x": x, "z": x})
    with pytest.raises(ModelError, match="the input \"y\" is float32, not float64"):
        session.run({"x": x, "y": y.astype(np.float64)})
    with pytest.raises(ModelError, match=r"the input \"x\" has sizes \(2, 3\), not \(3, 2\)"):
        session.run({"x": x.T, "y": y})
    nodes = [helper.make_node("Conv", ["x", "y"], ["c"], name="first"), helper.make_node("LSTM", ["x", "y"], ["d"], name="second")]
    with pytest.raises(UnsupportedError, match=r"no code for Conv \(node first\), LSTM \(node second\)"):
        Session(model(nodes, {"x": x, "y": y}, ["c", "d"]))


def test_no_value_is_larger_than_allowed():
    shape = np.array([1 << 20, 1 << 20], np.int64)
    made = model([helper.make_node("ConstantOfShape", ["s"], ["y"], name="huge")], {"s": shape}, ["y"])
    with pytest.raises(ModelError, match=r"^huge \(ConstantOfShape\): a result float32 \(1048576, 1048576\) is larger"):
        Session(made).run({"s": shape})
    x = np.zeros((1 << 12, 1), np.float32)
    made = model([helper.make_node("Add", ["x", "t"], ["y"])], {"x": x, "t": x.T}, ["y"])
    with pytest.raises(ModelError, match="larger than 1000000 bytes"):
        Session(made, limit=1_000_000).run({"x": x, "t": x.T})


def test_outputs_go_into_arrays_that_are_there():
    x = np.linspace(-2, 2, 5000, dtype=np.float32).reshape(50, 100)
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Neg", ["square"], ["y"]),
        helper.make_node("Transpose", ["x"], ["t"]),
    ]
    session = Session(model(nodes, {"x": x}, ["square", "y", "t"]))
    fresh = session.run({"x": x})
    # Large ones are the session's own memory, which NumPy keeps.
    assert fresh["y"].flags.writeable and not fresh["y"].flags.owndata
    fresh["y"][0] = 1
    for names in (["y"], ["square", "t"], ["square", "y", "t"]):
        out = {name: np.full_like(fresh[name], 7) for name in names}
        out["y"] = np.full((50, 200), 7, np.float32)[:, ::2]
        made = session.run({"x": x}, out=out)
        assert all(made[name] is out[name] for name in out)
        for name, expected in {"square": x * x, "y": -x * x, "t": x.T}.items():
            np.testing.assert_array_equal(made[name], expected)
    for wrong in (np.zeros((50, 99), np.float32), np.zeros((50, 100))):
        with pytest.raises(ModelError, match="the output \"y\" is float32 \\(50, 100\\), its place"):
            session.run({"x": x}, out={"y": wrong})
    shared = np.zeros((50, 100), np.float32)
    for wrong in ({"y": x}, {"y": shared, "square": shared[::-1]}, {"y": np.zeros((50, 100), object)}):
        with pytest.raises(ValueError, match="cannot be written to its array"):
            session.run({"x": x}, out=wrong)
    with pytest.raises(ModelError, match="no output of the model"):
        session.run({"x": x}, out={"z": shared})


def test_inputs_are_what_numpy_makes_arrays_of_and_outputs_are_arrays():
    x, factor = np.arange(6.0).reshape(2, 3), np.float64(3)
    nodes = [helper.make_node("Mul", ["x", "f"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"], keepdims=0)]
    session = Session(model(nodes, {"x": x, "f": factor}, ["y", "t"]))

    class Changing:
        """An array that changes what it was given in."""

        def __array__(self, dtype=None, copy=None):
            inputs.clear()
            return x

    inputs = {"x": Changing(), "f": 3.0}
    swapped = x.astype(">f8")
    for given in ({"x": x, "f": factor}, {"f": 3.0, "x": x.tolist()}, {"x": swapped, "f": np.array(3.0)}, inputs):
        for run in (given, types.MappingProxyType(given)) if given is not inputs else (given,):
            made = session.run(run)
            assert list(made) == ["y", "t"] and all(type(array) is np.ndarray for array in made.values())
            assert made["y"].shape == () and made["y"] == (x * 3).sum()
            np.testing.assert_array_equal(made["t"], x * 3)
    with pytest.raises(TypeError):
        session.run({1: x})
    with pytest.raises(TypeError, match="arrays by name, not list"):
        session.run([x, factor])
    with pytest.raises(TypeError, match="mask"):
        session.run({"x": np.ma.array(x, mask=x > 2), "f": factor})


def test_sessions_pickle_with_their_options(tmp_path):
    a, b = np.ones((2, 3), "f4"), np.arange(3, dtype="f4")
    weight = onnx.numpy_helper.from_array(np.arange(300, dtype="f4").reshape(100, 1, 3), "w")
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Mul", ["c", "w"], ["y"])]
    made = model(nodes, {"a": a, "b": b}, ["y"], 21, [weight])
    (theirs,) = by_runtime(made, {"a": a, "b": b})
    whole, parts = tmp_path / "whole.onnx", tmp_path / "parts.onnx"
    onnx.save(made, whole)
    onnx.save(copy.deepcopy(made), parts, save_as_external_data=True, location="parts.data", size_threshold=0)
    for source in (made, made.SerializeToString(), whole, str(parts)):
        session = Session(source, threads=1, limit=theirs.nbytes)
        for again in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session), copy.copy(session)):
            assert (again.inputs, again.outputs, again.fused) == (session.inputs, session.outputs, session.fused)
            assert (again.run({"a": a, "b": b})["y"] == theirs).all()
        limited = pickle.loads(pickle.dumps(Session(source, limit=theirs.nbytes - 1)))
        with pytest.raises(ModelError, match=f"larger than {theirs.nbytes - 1} bytes"):
            limited.run({"a": a, "b": b})
    session, kept = Session(whole), pickle.dumps(Session(whole))
    whole.write_bytes(b"something else")
    assert (pickle.loads(kept).run({"a": a, "b": b})["y"] == theirs).all()
    with pytest.raises(ModelError, match="was changed"):
        pickle.dumps(session)


def test_a_backend_runs_nodes_and_models():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    node = helper.make_node("Sub", ["a", "b"], ["y"])
    (y,) = simulcast.onnx.Backend.run_node(node, [a, b])
    np.testing.assert_array_equal(y, a - b)
    (y,) = simulcast.onnx.Backend.run_model(model([node], {"a": a, "b": b}, ["y"]), [a, b])
    np.testing.assert_array_equal(y, a - b)
    with pytest.raises(ModelError, match="3 inputs are given, and the model has 2: a, b"):
        simulcast.onnx.Backend.run_model(model([node], {"a": a, "b": b}, ["y"]), [a, b, b])
    (y,) = simulcast.onnx.Backend.run_node(helper.make_node("Add", ["a", "a"], ["y"]), [a, a])
    np.testing.assert_array_equal(y, a + a)
    for inputs in ([a, np.float64(2)], [a, None, np.float64(2)]):
        (y,) = simulcast.onnx.Backend.run_node(helper.make_node("Clip", ["a", "", "high"], ["y"]), inputs)
        np.testing.assert_array_equal(y, np.clip(a, None, 2))
    twice = model([node], {"a": a, "b": b}, ["y", "y"])
    ours = simulcast.onnx.Backend.run_model(twice, [a, b])
    assert len(ours) == len(by_runtime(twice, {"a": a, "b": b})) == 2
    assert simulcast.onnx.Backend.supports_device("CPU") and not simulcast.onnx.Backend.supports_device("CUDA")


def test_a_check_finds_what_is_wrong():
    x, y = np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32)
    nodes = [helper.make_node("Add", ["x", "y"], ["z"], name="join")]
    found = simulcast.onnx.check(model(nodes, {"x": x, "y": y}, ["z"]))
    assert not found.ok and found.errors[0].startswith("join (Add): E1: ") and "join" in str(found)
    assert found.to_dict()["schema"] == 1 and "<svg" in found.to_html()
    assert simulcast.onnx.check(model(nodes, {"x": x, "y": x}, ["z"])).ok
    with pytest.raises(ModelError, match="not an ONNX model"):
        simulcast.onnx.check(b"\x08")
    made = model(nodes, {"x": x, "y": x}, ["z"])
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    assert simulcast.onnx.check(made, sizes={"batch": 2}).ok
    with pytest.raises(ValueError, match="negative"):
        simulcast.onnx.check(made, sizes={"batch": -1})
    column = model(nodes, {"x": x[:, :1], "y": x[:, 0]}, ["z"])
    assert repr(simulcast.onnx.check(column)) == str(simulcast.onnx.check(column))
    for codes in ("SC102", ["SC102"], ("SC102",)):
        assert not simulcast.onnx.check(column, deny=codes).ok and simulcast.onnx.check(column, allow=codes).ok
    assert TensorProto.FLOAT == made.graph.input[0].type.tensor_type.elem_type


@given(st.data())
def test_slices_are_what_onnx_runtime_cuts(data):
    size = data.draw(st.integers(0, 4))
    far = st.sampled_from([-(2**62), -(2**31), 2**31])
    start, end = (data.draw(st.one_of(st.integers(-6, 6), far)) for _ in range(2))
    step = data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
    inputs = {"x": np.arange(size), "start": np.array([start]), "end": np.array([end]), "axis": np.array([0]), "step": np.array([step])}
    made = model([helper.make_node("Slice", list(inputs), ["y"])], inputs, ["y"])
    (theirs,) = by_runtime(made, inputs)
    np.testing.assert_array_equal(Session(made).run(inputs)["y"], theirs)
    # Of constants the shape is inferred, as it comes out.
    constants = [onnx.numpy_helper.from_array(own, name) for name, own in inputs.items() if name != "x"]
    known = model(made.graph.node, {"x": inputs["x"]}, ["y"], initializers=constants)
    (value,) = [own for own in simulcast.onnx.check(known).to_dict()["values"] if own["name"] == "y"]
    assert value["shape"] == list(theirs.shape)


def truth_nodes():
    """Nodes on the truths `x` and `y`: those of one chain, those that move elements, and a choice between graphs."""
    node = helper.make_node
    then = helper.make_graph([node("Not", ["x"], ["t"])], "then", [], [onnx.ValueInfoProto(name="t")])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [], [onnx.ValueInfoProto(name="e")])
    return {
        "And": [node("And", ["x", "y"], ["z"])],
        "chain": [node("Not", ["x"], ["n"]), node("Or", ["n", "y"], ["z"])],
        "Where": [node("Cast", ["y"], ["n"], to=TensorProto.INT64), node("Where", ["x", "n", "many"], ["z"])],
        "Identity": [node("Identity", ["x"], ["z"])],
        "Transpose": [node("Transpose", ["x"], ["z"])],
        "turned": [node("Transpose", ["x"], ["t"], perm=[0, 1]), node("Xor", ["t", "y"], ["z"])],
        "Cast": [node("Cast", ["x"], ["z"], to=TensorProto.FLOAT)],
        "Concat": [node("Concat", ["x", "y"], ["z"], axis=0)],
        "NonZero": [node("NonZero", ["x"], ["z"])],
        "If": [node("Slice", ["x", "zero", "one"], ["c"]), node("Reshape", ["c", "none"], ["s"]),
               node("If", ["s"], ["z"], then_branch=then, else_branch=other)],
    }


@pytest.mark.parametrize("nodes", truth_nodes().values(), ids=truth_nodes())
@pytest.mark.parametrize("columns", [3, 3000])
def test_truths_of_other_bytes(nodes, columns):
    bytes_ = np.resize(np.array([255, 0, 2, 1, 0], np.uint8), (4, columns))
    inputs = {"x": bytes_.view(bool), "y": bytes_[::-1, ::-1].copy().view(bool)}
    numbers = {"zero": [0, 0], "one": [1, 1], "none": [], "many": 7}
    initializers = [onnx.numpy_helper.from_array(np.array(n, np.int64), name) for name, n in numbers.items()]
    made = model(nodes, inputs, ["z"], initializers=initializers)
    theirs = by_runtime(made, {name: array.view(np.uint8) != 0 for name, array in inputs.items()})[0]
    session = Session(made)
    ours = session.run(inputs)["z"]
    assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
    if "NonZero" not in {node.op_type for node in nodes}:
        place = np.empty_like(theirs)
        session.run(inputs, out={"z": place})
        assert place.tobytes() == theirs.tobytes()


def test_tables_of_checks_are_aligned_whatever_names_are_made_of():
    x = np.ones((2, 3), "f4")
    nodes = [
        helper.make_node("Add", ["画像", "b"], ["c"], name="加算"),
        helper.make_node("Mul", ["c", "re\u0301"], ["y"], name="product"),
    ]
    inputs = {"画像": x[:, :1], "b": x[0], "re\u0301": np.ones((4, 1, 1), "f4")}
    text = str(simulcast.onnx.check(model(nodes, inputs, ["y"])))
    (first, *rows) = (line for line in text.splitlines() if "numpy" in line or "rule" in line)

    def columns(text):
        wide = [unicodedata.east_asian_width(c) in "WF" for c in text if not unicodedata.combining(c)]
        return len(wide) + sum(wide)

    for row in rows:
        for name, value in [("op", "Add" if "Add" in row else "Mul"), ("rule", "numpy"), ("growth", "x  ")]:
            # The last one stands to the right, so that it ends where its name does.
            own, theirs = row.index(value), first.index(name) + (5 if name == "growth" else 0)
            assert columns(row[:own]) == columns(first[:theirs]), text
    assert len(rows) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited as on Linux")
@pytest.mark.parametrize("held", [False, True])
def test_results_end_in_an_error_before_the_address_space_does(held, tmp_path):
    import resource

    x = np.ones(4, "f4")
    # Without end; or to 64 MiB, of which many results are held.
    names = ["x", *(f"y{n}" for n in range(22 if held else 300))]
    nodes = [helper.make_node("Concat", [one, one], [other], axis=0) for one, other in itertools.pairwise(names)]
    outputs = [f"z{n}" for n in range(100)] if held else names[-1:]
    nodes += [helper.make_node("Concat", names[-2:-1] * 2, [name], axis=0) for name in outputs if held]
    path = tmp_path / "doubling.onnx"
    onnx.save(model(nodes, {"x": x}, outputs), path)
    command = Path(sys.executable).with_name("simulcast")
    ran = subprocess.run(
        [command, "onnx", "run", path, "--input", "x=ones(4, dtype=float32)", "--threads", "1"],
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )
    assert ran.returncode not in (0, -6, 134) and ran.stdout == "", ran
    assert "(Concat): a result float32" in ran.stderr and "bytes" in ran.stderr
