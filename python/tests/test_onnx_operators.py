"""Every operator on every element type that the standard allows it, by NumPy and by ONNX Runtime.

Types are those of the schemas of the package onnx, so that no one is left out. Shapes have ranks 0 to 6 and sizes
from 0. Where ONNX Runtime has no kernel NumPy decides alone; where it answers otherwise, `DEVIATIONS` says why.
"""

import math
import re
import warnings
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from simulcast.onnx import ModelError, Session, UnsupportedError
from test_onnx_differential import by_runtime, close, divide, dtype, model, shapes, values

OPSET = onnx.defs.onnx_opset_version()
# The newest that ONNX Runtime has all of.
RUNTIME_OPSET = 23
NAMES = {"float": "float32", "double": "float64"}
FLOATS = {"float16", "float32", "float64", "bfloat16"}


def types(op, number=0, opset=OPSET):
    """The element types that the standard allows the operator, NumPy's and bfloat16."""
    schema = onnx.defs.get_schema(op, opset)
    parameter = schema.inputs[number].type_str
    constraints = {own.type_param_str: own.allowed_type_strs for own in schema.type_constraints}
    names = [own.removeprefix("tensor(").removesuffix(")") for own in constraints[parameter] if own.startswith("tensor")]
    names = [NAMES.get(name, name) for name in names]
    return sorted(name for name in names if not re.match("float[468]e|u?int[24]$", name))


@dataclass(frozen=True)
class Deviation:
    """Answers of ONNX Runtime that are others than ours, and an example of them."""

    why: str
    operators: tuple
    when: object
    arrays: dict
    attributes: dict


REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def is_negative(arrays, attributes):
    return attributes.get("axis", 0) < 0 or (len(arrays) > 1 and (arrays[1] < 0).any())


DEVIATIONS = [
    Deviation(
        "negative axes count from the end; of an input without elements ONNX Runtime takes them for none at all",
        (*(f"Reduce{name}" for name in REDUCTIONS), "ArgMax", "ArgMin"),
        lambda arrays, attributes: arrays[0].size == 0 and is_negative(arrays, attributes),
        {"x": np.zeros((0, 2), np.float32)},
        {"axis": -1},
    ),
    Deviation(
        "the mean of nothing is undefined by the standard: NaN here, as in NumPy, and 0 in ONNX Runtime",
        ("ReduceMean",),
        lambda arrays, attributes: arrays[0].size == 0,
        {"x": np.zeros((0, 2), np.float32), "axes": np.array([0])},
        {},
    ),
    Deviation(
        "ONNX Runtime computes in float32",
        ("Shrink",),
        lambda arrays, attributes: arrays[0].dtype == np.float64,
        {"x": np.array(1.1)},
        {},
    ),
    Deviation(
        "of matrices without elements ONNX Runtime loses the batches, or refuses them (microsoft/onnxruntime#25663)",
        ("MatMul",),
        lambda arrays, attributes: arrays[0].size == 0 or arrays[1].size == 0,
        {"a": np.zeros((1, 1, 0, 0)), "b": np.zeros((1, 2, 0, 0))},
        {},
    ),
    Deviation(
        "where the product is one of no elements ONNX Runtime forgets beta",
        ("Gemm",),
        lambda arrays, attributes: arrays[0].size == 0 and arrays[0].dtype == np.float16,
        {"a": np.zeros((1, 0), np.float16), "b": np.zeros((0, 1), np.float16), "c": np.ones(1, np.float16)},
        {"beta": 3.0},
    ),
]


def differs(op, arrays, attributes):
    return any(op in own.operators and own.when(list(arrays.values()), attributes) for own in DEVIATIONS)


def compare(op, arrays, expected, attributes=None, loose=1.0, outputs=("y",)):
    """Ours against NumPy's, and against ONNX Runtime's where it has one."""
    attributes = attributes or {}
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    node = helper.make_node(op, list(arrays), list(outputs), **attributes)
    session = Session(model([node], arrays, outputs, OPSET))
    ours = session.run(arrays)
    for own, by_numpy in zip(ours.values(), expected):
        close(own, by_numpy, loose)
    if any(array.dtype.name == "bfloat16" for array in arrays.values()) or differs(op, arrays, attributes):
        return
    number = 1 if op == "Where" else 0
    known = onnx.defs.has(op, RUNTIME_OPSET) and list(arrays.values())[number].dtype.name in types(op, number, RUNTIME_OPSET)
    if not known:
        return
    theirs = by_runtime(model([node], arrays, outputs, RUNTIME_OPSET), arrays)
    for own, by_other in zip(ours.values(), theirs or ()):
        close(own, by_other, loose)


@pytest.mark.parametrize("own", DEVIATIONS, ids=lambda own: own.operators[0])
def test_every_deviation_is_one(own):
    """So that the list has nothing that ONNX Runtime has mended."""
    for op in own.operators:
        arrays, attributes = dict(own.arrays), dict(own.attributes)
        if op.startswith("Reduce") and "axis" in attributes:
            arrays["axes"] = np.array([attributes.pop("axis")])
        assert own.when(list(arrays.values()), attributes)
        made = model([helper.make_node(op, list(arrays), ["y"], **attributes)], arrays, ["y"], RUNTIME_OPSET)
        (theirs,), ours = by_runtime(made, arrays), Session(made).run(arrays)["y"]
        assert ours.shape != theirs.shape or (ours != theirs).any(), op
        assert ours.dtype == theirs.dtype


def wide(array):
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


ALPHA, GAMMA = float(np.float32(1.6732632423543772)), float(np.float32(1.0507009873554805))
ANY = (-4, 4)
UNARY = {
    "Abs": (np.abs, ANY),
    "Acos": (np.arccos, (-1, 1)),
    "Acosh": (np.arccosh, (1, 9)),
    "Asin": (np.arcsin, (-1, 1)),
    "Asinh": (np.arcsinh, ANY),
    "Atan": (np.arctan, ANY),
    "Atanh": (np.arctanh, (-0.9, 0.9)),
    "BitwiseNot": (np.invert, ANY),
    "Ceil": (np.ceil, ANY),
    "Celu": (lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)), ANY),
    "Cos": (np.cos, ANY),
    "Cosh": (np.cosh, ANY),
    "Elu": (lambda x: np.where(x < 0, np.expm1(x), x), ANY),
    "Erf": (erf, ANY),
    "Exp": (np.exp, ANY),
    "Floor": (np.floor, ANY),
    "Gelu": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), ANY),
    "HardSigmoid": (lambda x: np.clip(float(np.float32(0.2)) * x + 0.5, 0, 1), ANY),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), ANY),
    "IsInf": (np.isinf, ANY),
    "IsNaN": (np.isnan, ANY),
    "LeakyRelu": (lambda x: np.where(x < 0, float(np.float32(0.01)) * x, x), ANY),
    "Log": (np.log, (0.01, 9)),
    "Mish": (lambda x: x * np.tanh(softplus(x)), ANY),
    "Neg": (np.negative, ANY),
    "Not": (np.logical_not, ANY),
    "Reciprocal": (lambda x: 1 / x, (0.1, 9)),
    "Relu": (lambda x: np.maximum(x, 0), ANY),
    "Round": (np.rint, ANY),
    "Selu": (lambda x: GAMMA * np.where(x > 0, x, ALPHA * np.expm1(x)), ANY),
    "Shrink": (lambda x: np.where(np.abs(x.astype(float)) > 0.5, x, 0), ANY),
    "Sigmoid": (sigmoid, ANY),
    "Sign": (np.sign, ANY),
    "Sin": (np.sin, ANY),
    "Sinh": (np.sinh, ANY),
    "Softplus": (softplus, ANY),
    "Softsign": (lambda x: x / (1 + np.abs(x)), ANY),
    "Sqrt": (np.sqrt, (0, 9)),
    "Swish": (lambda x: x * sigmoid(x), ANY),
    "Tan": (np.tan, (-1, 1)),
    "Tanh": (np.tanh, ANY),
    "ThresholdedRelu": (lambda x: np.where(x > 1, x, 0), ANY),
}


def drawn(seed, shape, name, bounds=ANY):
    """Numbers between bounds, where they are floats."""
    if dtype(name).kind not in "fV" or name == "string":
        return values(seed, shape, name)
    return np.asarray(np.random.default_rng(seed).uniform(*bounds, shape)).astype(dtype(name))


SEED = st.integers(0, 2**32)
BY_TYPE = settings(max_examples=10)


@pytest.mark.parametrize("op, name", [(op, name) for op in UNARY for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_one_operand(op, name, data):
    by_numpy, bounds = UNARY[op]
    (shape,) = data.draw(shapes(1))
    x = drawn(data.draw(SEED), shape, name, bounds)
    made = np.asarray(by_numpy(wide(x)))
    compare(op, {"x": x}, [made.astype(bool if op.startswith("Is") else x.dtype)], loose=4)


def shifted(direction):
    def shift(a, b):
        return np.left_shift(a, b) if direction == "LEFT" else np.right_shift(a, b)

    return shift


BINARY = {
    "Add": (np.add, {}),
    "And": (np.logical_and, {}),
    "BitShift": (shifted("LEFT"), {"direction": "LEFT"}),
    "BitwiseAnd": (np.bitwise_and, {}),
    "BitwiseOr": (np.bitwise_or, {}),
    "BitwiseXor": (np.bitwise_xor, {}),
    "Div": (divide, {}),
    "Equal": (np.equal, {}),
    "Greater": (np.greater, {}),
    "GreaterOrEqual": (np.greater_equal, {}),
    "Less": (np.less, {}),
    "LessOrEqual": (np.less_equal, {}),
    "Mod": (np.mod, {}),
    "Mul": (np.multiply, {}),
    "Or": (np.logical_or, {}),
    "Pow": (np.power, {}),
    "Sub": (np.subtract, {}),
    "Xor": (np.logical_xor, {}),
}
LOGIC = {"And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}


@pytest.mark.parametrize("op, name", [(op, name) for op in BINARY for name in types(op) if name != "string"])
@BY_TYPE
@given(data=st.data())
def test_two_operands(op, name, data):
    by_numpy, attributes = BINARY[op]
    one, other = data.draw(shapes(2))
    seed = data.draw(SEED)
    a, b = drawn(seed, one, name), drawn(seed + 1, other, name)
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.ones_like(b), b)
    if op == "Mod" and name in FLOATS:
        attributes, by_numpy = {"fmod": 1}, np.fmod
    if op == "Pow":
        a, b = np.abs(a) % 5 + 1, np.abs(b) % 4
        a, b = a.astype(dtype(name)), b.astype(dtype(name))
    if op == "BitShift":
        b = b % 8
    expected = np.asarray(by_numpy(wide(a), wide(b))).astype(bool if op in LOGIC else a.dtype)
    compare(op, {"a": a, "b": b}, [expected], attributes, 4)


@pytest.mark.parametrize("op, name", [(op, name) for op in ["Max", "Min", "Sum", "Mean"] for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_one_to_five_operands(op, name, data):
    seed, some = data.draw(SEED), data.draw(shapes(data.draw(st.integers(1, 5))))
    arrays = {f"x{n}": drawn(seed + n, shape, name) for n, shape in enumerate(some)}
    stack = np.stack(np.broadcast_arrays(*map(wide, arrays.values())))
    by_numpy = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}[op]
    compare(op, arrays, [np.asarray(by_numpy(stack, axis=0)).astype(dtype(name))], loose=4)


@pytest.mark.parametrize("name", [name for name in types("Where", 1) if name != "string"])
@BY_TYPE
@given(data=st.data())
def test_where(name, data):
    seed, (condition, one, other) = data.draw(SEED), data.draw(shapes(3))
    arrays = {"c": values(seed, condition, "bool"), "a": drawn(seed, one, name), "b": drawn(seed + 1, other, name)}
    compare("Where", arrays, [np.asarray(np.where(*arrays.values())).astype(dtype(name))])


@pytest.mark.parametrize("name", types("PRelu"))
@BY_TYPE
@given(data=st.data())
def test_a_slope(name, data):
    seed, (shape, other) = data.draw(SEED), data.draw(shapes(2))
    shape = np.broadcast_shapes(shape, other)
    x, slope = drawn(seed, shape, name), drawn(seed + 1, other, name)
    made = np.where(wide(x) < 0, wide(x) * wide(slope), wide(x))
    compare("PRelu", {"x": x, "slope": slope}, [np.asarray(made).astype(x.dtype)])


@pytest.mark.parametrize("name", types("Clip"))
@BY_TYPE
@given(data=st.data())
def test_bounds(name, data):
    seed, (shape,) = data.draw(SEED), data.draw(shapes(1))
    x, (low, high) = drawn(seed, shape, name), sorted(drawn(seed + 1, (2,), name))
    arrays = {"x": x, "low": np.asarray(low), "high": np.asarray(high)}
    compare("Clip", arrays, [np.asarray(np.clip(x, low, high)).astype(x.dtype)])


REDUCED = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(np.square(x.astype(float)), **how)),
    "ReduceSumSquare": lambda x, **how: np.sum(np.square(x), **how),
    "ReduceLogSum": lambda x, **how: np.log(np.sum(x.astype(float), **how)),
    "ReduceLogSumExp": lambda x, **how: np.log(np.sum(np.exp(x.astype(float)), **how)),
}


def least(name, op):
    """What the largest (`ReduceMax`) or the smallest of no elements is, by the standard."""
    if dtype(name).kind == "b":
        return op == "ReduceMin"
    if dtype(name).kind in "iu":
        return getattr(np.iinfo(dtype(name)), "min" if op == "ReduceMax" else "max")
    return -np.inf if op == "ReduceMax" else np.inf


@pytest.mark.parametrize("op, name", [(op, name) for op in REDUCED for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_reductions(op, name, data):
    (shape,) = data.draw(shapes(1))
    keep, noop = data.draw(st.booleans()), data.draw(st.booleans())
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    bounds = (0.1, 1.5) if op in ("ReduceLogSum", "ReduceProd") else (-1, 1)
    x = drawn(data.draw(SEED), shape, name, bounds)
    if dtype(name).kind in "iu":
        # So that sums, products and exponentials of what is drawn fit in the type.
        x = np.abs(x) % 2 + (op == "ReduceLogSum")
        x = x.astype(dtype(name))
    over = tuple(axes) or (() if noop else tuple(range(len(shape))))
    how = {"axis": over, "keepdims": keep}
    if op in ("ReduceMax", "ReduceMin"):
        how["initial"] = least(name, op)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The mean of nothing is NaN.
        expected = REDUCED[op](wide(x), **how)
        if op == "ReduceMean" and dtype(name).kind in "iu":
            expected = np.trunc(expected)
        expected = np.asarray(expected)
        if expected.dtype.kind == "f" and dtype(name).kind in "iu":
            expected = np.where(np.isfinite(expected), np.trunc(expected + 1e-9), 0)
    signs = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    arrays = {"x": x, "axes": np.array(signs, np.int64)}
    compare(op, arrays, [expected.astype(x.dtype)], {"keepdims": int(keep), "noop_with_empty_axes": int(noop)}, 20)


@pytest.mark.parametrize("op, name", [(op, name) for op in ["ArgMax", "ArgMin"] for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_places(op, name, data):
    (shape,) = data.draw(shapes(1))
    shape = (*shape, 3)
    axis, keep = data.draw(st.sampled_from(range(-len(shape), len(shape)))), data.draw(st.booleans())
    last = data.draw(st.booleans())
    x = drawn(data.draw(SEED), shape, name)
    if shape[axis] == 0:
        rest = [size for own, size in enumerate(shape) if own != axis % len(shape)]
        node = helper.make_node(op, ["x"], ["y"], axis=axis)
        if all(rest):
            with pytest.raises(ModelError, match="no largest or smallest of no elements"):
                Session(model([node], {"x": x}, ["y"], OPSET)).run({"x": x})
        return
    best = np.argmax if op == "ArgMax" else np.argmin
    expected = shape[axis] - 1 - best(np.flip(wide(x), axis), axis=axis) if last else best(wide(x), axis=axis)
    expected = np.asarray(expected, np.int64)
    expected = np.expand_dims(expected, axis) if keep else expected
    attributes = {"axis": axis, "keepdims": int(keep), "select_last_index": int(last)}
    compare(op, {"x": x}, [expected], attributes)


@pytest.mark.parametrize("op, name", [(op, name) for op in ["CumSum", "CumProd"] for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_running_sums(op, name, data):
    (shape,) = data.draw(shapes(1))
    shape = (*shape, 3)
    axis = data.draw(st.sampled_from(range(-len(shape), len(shape))))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    x = drawn(data.draw(SEED), shape, name)
    own = np.flip(wide(x), axis) if reverse else wide(x)
    run = (np.cumsum if op == "CumSum" else np.cumprod)(own, axis=axis, dtype=own.dtype)
    if exclusive:
        first = np.full_like(np.take(run, [0] if shape[axis] else [], axis), op == "CumProd")
        run = np.concatenate([first, np.take(run, range(max(shape[axis] - 1, 0)), axis)], axis)
    run = np.flip(run, axis) if reverse else run
    arrays = {"x": x, "axis": np.asarray(axis, np.int64)}
    compare(op, arrays, [run.astype(x.dtype)], {"exclusive": int(exclusive), "reverse": int(reverse)}, 10)


def softmax(x, axis):
    power = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return power / np.sum(power, axis=axis, keepdims=True)


def hardmax(x, axis):
    first = np.argmax(x, axis=axis, keepdims=True) if x.size else np.zeros(0, int)
    return (np.arange(x.shape[axis]).reshape([-1] + [1] * (-axis - 1)) == first).astype(float) if x.size else x


SOFT = {"Softmax": softmax, "LogSoftmax": lambda x, axis: np.log(softmax(x, axis)), "Hardmax": hardmax}


@pytest.mark.parametrize("op, name", [(op, name) for op in SOFT for name in types(op)])
@BY_TYPE
@given(data=st.data())
def test_shares(op, name, data):
    (shape,) = data.draw(shapes(1))
    shape = (*shape, 3)
    axis = data.draw(st.sampled_from(range(-len(shape), 0)))
    x = drawn(data.draw(SEED), shape, name)
    compare(op, {"x": x}, [np.asarray(SOFT[op](wide(x), axis)).astype(x.dtype)], {"axis": axis}, 10)


@pytest.mark.parametrize("name", types("MatMul"))
@BY_TYPE
@given(data=st.data())
def test_products(name, data):
    left, right = data.draw(shapes(2))
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    try:
        np.broadcast_shapes(left[-4:], right[-4:])
    except ValueError:
        return
    seed = data.draw(SEED)
    a, b = drawn(seed, (*left[-4:], m, k), name), drawn(seed + 1, (*right[-4:], k, n), name)
    if data.draw(st.booleans()):
        a = a.reshape(-1)[:0].reshape(0) if k == 0 else drawn(seed, (k,), name)
    expected = np.matmul(wide(a), wide(b)).astype(a.dtype)
    compare("MatMul", {"a": a, "b": b}, [np.asarray(expected)], loose=20)


@pytest.mark.parametrize("name", types("Gemm"))
@BY_TYPE
@given(data=st.data())
def test_sums_of_products(name, data):
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    seed, turned = data.draw(SEED), [data.draw(st.booleans()) for _ in range(2)]
    a, b = drawn(seed, (k, m) if turned[0] else (m, k), name), drawn(seed + 1, (n, k) if turned[1] else (k, n), name)
    c = drawn(seed + 2, data.draw(st.sampled_from([(), (1,), (n,), (1, n), (m, 1), (m, n), (1, 1)])), name)
    product = wide(a.T if turned[0] else a) @ wide(b.T if turned[1] else b)
    expected = (2 * product + 3 * wide(c)).astype(a.dtype)
    attributes = {"alpha": 2.0, "beta": 3.0, "transA": int(turned[0]), "transB": int(turned[1])}
    compare("Gemm", {"a": a, "b": b, "c": c}, [expected], attributes, 20)


PLAIN = [name for name in types("Cast") if name not in ("string", "complex64", "complex128")]


@pytest.mark.parametrize("source, target", [(source, target) for source in PLAIN for target in PLAIN])
@settings(max_examples=4)
@given(data=st.data())
def test_casts(source, target, data):
    (shape,) = data.draw(shapes(1))
    x = drawn(data.draw(SEED), shape, source)
    if dtype(target).kind == "u":
        x = np.abs(x)
    expected = wide(x).astype(dtype(target))
    element = helper.np_dtype_to_tensor_dtype(dtype(target))
    if target == "bfloat16":
        # NumPy's own comparison decides: ONNX Runtime gives back what NumPy cannot hold.
        node = helper.make_node("Cast", ["x"], ["y"], to=element)
        return close(Session(model([node], {"x": x}, ["y"], OPSET)).run({"x": x})["y"], expected)
    compare("Cast", {"x": x}, [expected], {"to": element})


def test_no_operator_that_works_by_elements_is_left_out():
    named = {*UNARY, *BINARY, *REDUCED, "Max", "Min", "Sum", "Mean", "Where", "PRelu", "Clip", "Cast", "MatMul", "Gemm"}
    tested = named | {"ArgMax", "ArgMin", "CumSum", "CumProd", *SOFT}
    from onnx_backend_list import BROADCASTING, REDUCTIONS, UNARY as ONE

    elsewhere = {"Expand", "StringConcat", "TopK", "Clip"}
    assert set(f"{BROADCASTING} {ONE} {REDUCTIONS}".split()) - tested == elsewhere - tested


CODES = {
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "UINT4": ml_dtypes.uint4,
    "INT4": ml_dtypes.int4,
    "UINT2": ml_dtypes.uint2,
    "INT2": ml_dtypes.int2,
}


def cast(x, to, **attributes):
    """What a cast gives here; `x` may be of a type that only ml_dtypes has."""
    node = helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    return Session(model([node], {"x": x}, ["y"], OPSET)).run({"x": x})["y"]


def every_code(element):
    bits = int(re.search(r"INT(\d)|FLOAT(\d)", element)[0][-1])
    return np.arange(1 << bits, dtype=np.uint8).view(CODES[element])


def same(ours, theirs):
    """Equal in value and, for 0, in sign."""
    assert ours.dtype == theirs.dtype
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


@pytest.mark.parametrize("element", CODES)
def test_every_code_is_the_number_that_it_is_in_ml_dtypes(element):
    codes = every_code(element)
    for target in ("float32", "float64", "float16", "bfloat16"):
        with np.errstate(all="ignore"):
            expected = codes.astype(np.float32).astype(dtype(target))
        same(cast(codes, helper.np_dtype_to_tensor_dtype(dtype(target))), expected)


def around(element):
    """Each number of a type, those between two, their neighbours, and what is no number or too large."""
    numbers = np.sort(every_code(element).astype(np.float32))
    numbers = numbers[np.isfinite(numbers)]
    middles = (numbers[1:] + numbers[:-1]) / 2
    large = [np.float32(x) for x in (1e6, 3e38, 460, 464, 465, 248, 249, 61439, 61440, 61441, 1e-30, 0, np.inf, np.nan)]
    points = np.concatenate([numbers, middles, large, np.negative(large)]).astype(np.float32)
    return np.concatenate([points, np.nextafter(points, np.float32(9e9)), np.nextafter(points, np.float32(-9e9))])


@pytest.mark.parametrize("element", [element for element in CODES if "INT" not in element and "E8M0" not in element])
def test_numbers_become_the_codes_that_ml_dtypes_and_onnx_give_them(element):
    x, own = around(element), np.dtype(CODES[element])
    with np.errstate(all="ignore"):
        if element == "FLOAT4E2M1":
            # It has no NaN: here, and in the tests of onnx, 0 stands for it.
            x = x[~np.isnan(x)]
        else:
            same(cast(x, getattr(onnx.TensorProto, element)), onnx.numpy_helper.saturate_cast(x, own))
        same(cast(x, getattr(onnx.TensorProto, element), saturate=0), x.astype(own))


@pytest.mark.parametrize("how", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_those_of_onnx(how, saturate):
    x = np.abs(around("FLOAT8E8M0"))
    # Of infinity, and of what is smaller than every code, the text and the code of onnx say different things.
    x = x[np.isfinite(x) & (x >= 2.0**-126)]
    ours = cast(x, onnx.TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=how)
    same(ours, onnx.numpy_helper.to_float8e8m0(x, bool(saturate), how))


@pytest.mark.parametrize("element", ["UINT4", "INT4", "UINT2", "INT2"])
def test_integers_lose_the_bits_that_do_not_fit(element):
    for x in (np.arange(-40, 40, dtype=np.int32), np.arange(-9, 16).astype(np.float32), np.arange(9, dtype=np.uint8)):
        same(cast(x, getattr(onnx.TensorProto, element)), x.astype(CODES[element]))
    # Of integers that no float holds, the lowest bits are theirs too.
    wide = np.array([2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**60 + 5, -(2**63)], np.int64)
    bits = 2 if element.endswith("2") else 4
    for x in (wide, wide.astype(np.uint64)):
        ours = cast(x, getattr(onnx.TensorProto, element)).view(np.uint8)
        assert (ours & (2**bits - 1)).tolist() == [int(n) % 2**bits for n in x]


def test_codes_are_moved_and_of_one_type():
    x = every_code("FLOAT8E4M3FN").reshape(16, 16)
    node = helper.make_node("Transpose", ["x"], ["y"])
    ours = Session(model([node], {"x": x}, ["y"], OPSET)).run({"x": x})["y"]
    assert ours.dtype == x.dtype and ours.view(np.uint8).tobytes() == x.view(np.uint8).T.tobytes()
    session = Session(model([node], {"x": x}, ["y"], OPSET))
    with pytest.raises(ModelError, match="the input 'x' is float8e4m3fn, not float8e5m2"):
        session.run({"x": x.view(ml_dtypes.float8_e5m2)})
    with pytest.raises(UnsupportedError, match="float8e4m3fn cannot be computed with"):
        Session(model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": x}, ["y"], OPSET))


def by_reference(made, inputs):
    return onnx.reference.ReferenceEvaluator(made).run(None, inputs)


def test_corners_are_those_of_the_reference():
    nan, ints = np.array([[np.nan]], np.float32), np.array([[1, 2]], np.int32)
    one = np.ones((1, 1), np.float32)
    gemm = {"A": ints, "B": np.array([[3], [4]], np.int32), "C": np.array([[7]], np.int32)}
    cases = [
        # Parts of whole numbers are added before they are dropped.
        ("Gemm", gemm, {"alpha": 0.5, "beta": 1.5}),
        ("Gemm", gemm, {"alpha": 2.0, "beta": 3.0}),
        # What counts for nothing is not read.
        ("Gemm", {"A": one, "B": one, "C": nan}, {"beta": 0.0}),
        ("OneHot", {"i": np.zeros((0, 2), np.int64), "d": np.array(3), "v": np.array([0, 1], np.float32)}, {}),
    ]
    for op, arrays, attributes in cases:
        made = model([helper.make_node(op, list(arrays), ["y"], **attributes)], arrays, ["y"], 17)
        ours, [theirs] = Session(made).run(arrays)["y"], by_reference(made, arrays)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("other", ["float16", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64"])
def test_powers_of_and_by_bfloat16(other):
    x, y = np.array([1, 2, 3], ml_dtypes.bfloat16), np.array([2, 3, 2], other)
    for arrays in ({"x": x, "y": y}, {"x": y, "y": x}):
        made = model([helper.make_node("Pow", ["x", "y"], ["z"])], arrays, ["z"], 15)
        ours = Session(made).run(arrays)["z"]
        assert ours.dtype == arrays["x"].dtype
        expected = arrays["x"].astype(np.float64) ** arrays["y"].astype(np.float64)
        np.testing.assert_array_equal(ours.astype(np.float64), expected)


def test_what_a_normalization_saves_is_of_the_type_that_it_is_said_to_be():
    arrays = {"x": np.arange(6.0).reshape(2, 3), "s": np.ones(3)}
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y", "mean", "inverse"])
    made = model([node], arrays, ["y", "mean", "inverse"], 17)
    ours, theirs = Session(made).run(arrays), by_runtime(made, arrays)
    for name, own in zip(["y", "mean", "inverse"], theirs):
        assert ours[name].dtype == own.dtype
        np.testing.assert_allclose(ours[name], own, rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "data", "indices", "updates", "wanted"),
    [("ScatterND", (4, 2), (2, 1), (4,), r"\(2, 2\)"), ("ScatterElements", (4, 2), (1, 2), (2, 1), r"\(1, 2\)")],
)
def test_updates_have_the_shape_of_what_they_replace(op, data, indices, updates, wanted):
    arrays = {"data": np.zeros(data, np.float32), "at": np.zeros(indices, np.int64), "new": np.ones(updates, np.float32)}
    made = model([helper.make_node(op, list(arrays), ["y"])], arrays, ["y"], 18)
    with pytest.raises(ModelError, match=f"not float32 {wanted}"):
        Session(made).run(arrays)


def test_data_in_a_file_may_go_on_after_a_tensor_without_a_length(tmp_path):
    x = np.arange(3, dtype=np.float32)
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(x.tobytes() + bytes(28))
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": x}, ["y"], 17, [tensor])
    onnx.save(made, tmp_path / "m.onnx")
    np.testing.assert_array_equal(Session(tmp_path / "m.onnx").run({"x": x})["y"], x + x)
    (tmp_path / "w.bin").write_bytes(x.tobytes()[:-1])
    with pytest.raises(ModelError, match="need 12 bytes, not 11"):
        Session(tmp_path / "m.onnx")
