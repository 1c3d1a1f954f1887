"""Operators of other domains than ONNX's first, by ONNX Runtime: sums and products of codes, scalers, linear models."""

import numpy as np
import onnx
import pytest
from onnx import helper
from test_onnx_differential import by_runtime

from simulcast.onnx import ModelError, Session, UnsupportedError

SHAPES = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (1, 5)), ((1,), (2, 7)), ((), (6,)), ((64, 65), (64, 65))]


def model(node, inputs, outputs, constants=()):
    """A model of one node of any domain; the constants are initializers."""
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "graph", values, results, initializers)
    imports = [
        helper.make_opsetid("", 17),
        helper.make_opsetid("ai.onnx.ml", 1),
        helper.make_opsetid("com.microsoft", 1),
    ]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def both(made, inputs):
    """What this library gives, and ONNX Runtime."""
    return list(Session(made).run(inputs).values()), by_runtime(made, inputs)


def codes(seed, shape, name):
    own = np.iinfo(name)
    return np.asarray(np.random.default_rng(seed).integers(own.min, own.max + 1, shape), name)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("name", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("exact", [True, False])
def test_sums_and_products_of_codes(op, name, zeros, exact):
    # With powers of two nothing is rounded on the way; else both round, at most to neighbours.
    scales = [0.5, 0.25, 2.0] if exact else [0.013, 0.0071, 0.029]
    if op == "QLinearMul" and exact:
        scales = [0.5, 0.25, 64.0]
    constants = {}
    for index, (side, scale) in enumerate(zip("abc", scales, strict=True)):
        constants[f"{side}_scale"] = np.array(scale, np.float32)
        constants[f"{side}_zero"] = np.array((5, 100, 17)[index] if zeros else 0, name)
    scaled = {slot: array for slot, array in constants.items() if slot.endswith("scale")}
    named = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "c_scale", "c_zero"]
    node = helper.make_node(op, named, ["y"], domain="com.microsoft")
    without = ["" if slot.endswith("zero") else slot for slot in named]
    without = helper.make_node(op, without, ["y"], domain="com.microsoft")
    for seed, (one, other) in enumerate(SHAPES):
        inputs = {"a": codes(seed, one, name), "b": codes(seed + 99, other, name)}
        made = model(node, inputs, ["y"], constants)
        theirs = by_runtime(made, inputs)
        if not zeros:
            # ONNX Runtime has no types for sums without them, so it is given zeros.
            made = model(without, inputs, ["y"], scaled)
        ours = list(Session(made).run(inputs).values())
        assert ours[0].dtype == theirs[0].dtype == np.dtype(name) and ours[0].shape == theirs[0].shape
        apart = np.abs(ours[0].astype(int) - theirs[0].astype(int))
        assert apart.max() <= (0 if exact else 1), (one, other, apart.max())
        assert (apart > 0).mean() <= 0.01
    # Something is there to be told apart.
    assert len(np.unique(theirs[0])) > 20


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("count", [1, 5])
def test_scalers(name, count):
    x = np.asarray(np.random.default_rng(7).normal(0, 30, (6, 5)), name)
    offset, scale = np.linspace(-2, 3, count).tolist(), np.linspace(0.25, 4, count).tolist()
    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=offset, scale=scale)
    ours, theirs = both(model(node, {"x": x}, ["y"]), {"x": x})
    assert ours[0].dtype == theirs[0].dtype == np.float32
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6, atol=1e-6)


def binarizer(**threshold):
    return helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", **threshold)


@pytest.mark.parametrize("shape", [(6, 5), (5,), (2, 3, 4), (0, 3)])
@pytest.mark.parametrize("threshold", [{}, {"threshold": 1.5}, {"threshold": -0.0}])
def test_binarizers(shape, threshold):
    x = np.random.default_rng(5).integers(-3, 4, shape).astype(np.float32) / 2
    x.flat[:4] = [np.inf, -np.inf, -0.0, 1.5][: x.size]
    ours, theirs = both(model(binarizer(**threshold), {"x": x}, ["y"]), {"x": x})
    np.testing.assert_array_equal(ours[0], theirs[0], strict=True)
    # ONNX Runtime has no code for the other types.
    for name in ["float64", "int32", "int64"]:
        own = np.nan_to_num(x, posinf=9, neginf=-9).astype(name)
        made = Session(model(binarizer(**threshold), {"x": own}, ["y"])).run({"x": own})["y"]
        np.testing.assert_array_equal(made, (own > threshold.get("threshold", 0)).astype(name), strict=True)


def test_binarizers_of_nan():
    x = np.array([1, np.nan], np.float32)
    made = model(binarizer(), {"x": x}, ["y"])
    with pytest.raises(Exception, match="index: 1 is NaN"):
        by_runtime(made, {"x": x})
    with pytest.raises(ModelError, match="an element is NaN"):
        Session(made).run({"x": x})


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("shape", [(6, 5), (5,), (0, 5)])
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_imputers(count, shape, name):
    x = np.random.default_rng(2).integers(-1, 2, shape).astype(name)
    kind = "float" if name == "float32" else "int64"
    gone = [0, 1] if name == "int64" else [0.0, -1.0, float("nan")]
    for own in gone:
        given = np.where(x == 1, np.nan, x).astype(name) if own != own else x
        values = np.arange(7, 7 + count).astype(name).tolist()
        attributes = {f"imputed_value_{kind}s": values, f"replaced_value_{kind}": own}
        node = helper.make_node("Imputer", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
        ours, theirs = both(model(node, {"x": given}, ["y"]), {"x": given})
        np.testing.assert_array_equal(ours[0], theirs[0], strict=True)
        assert given.size == 0 or (ours[0] >= 7).any()


@pytest.mark.parametrize(
    ("shape", "attributes", "why"),
    [
        ((2, 3), {"imputed_value_int64s": [1]}, "no imputed_value_floats"),
        ((2, 3), {}, "no imputed_value_floats"),
        # ONNX Runtime takes the first of them for all columns.
        ((2, 3), {"imputed_value_floats": [1.0, 2.0]}, "2 values for columns of"),
        ((2, 3, 3), {"imputed_value_floats": [1.0, 2.0, 3.0]}, "3 values for columns of"),
    ],
)
def test_imputers_that_do_not_fit(shape, attributes, why):
    x = np.zeros(shape, np.float32)
    node = helper.make_node("Imputer", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    with pytest.raises(ModelError, match=why):
        Session(model(node, {"x": x}, ["y"])).run({"x": x})


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(6, 5), (5,)])
def test_normalizers(norm, name, shape):
    x = np.random.default_rng(3).normal(0, 30, shape)
    if x.ndim == 2:
        # Nothing to divide by; below 0 only; the largest is 0.
        x[1], x[2], x[3] = 0, -np.abs(x[2]) - 1, -np.abs(x[3])
        x[3, 0] = 0
    x = np.asarray(x, name)
    node = helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm=norm)
    ours, theirs = both(model(node, {"x": x}, ["y"]), {"x": x})
    assert ours[0].dtype == theirs[0].dtype == np.float32 and ours[0].shape == theirs[0].shape
    np.testing.assert_allclose(ours[0], theirs[0], rtol=2e-6, atol=1e-6)


def classifier(classes, labels, post, intercepts=True, **more):
    random = np.random.default_rng(classes)
    attributes = {"coefficients": random.normal(0, 1, classes * 4).tolist(), "post_transform": post, **more}
    if intercepts:
        attributes["intercepts"] = random.normal(0, 1, classes).tolist()
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    return helper.make_node(
        "LinearClassifier", ["x"], ["label", "y"], domain="ai.onnx.ml", **{kind: labels}, **attributes
    )


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(
    ("classes", "labels"),
    [(3, ["low", "some", "high"]), (3, [7, -1, 4]), (2, ["no", "yes"]), (2, [0, 1]), (1, ["no", "yes"]), (1, [3, 8])],
)
def test_linear_classifiers(post, name, classes, labels):
    x = np.asarray(np.random.default_rng(11).normal(0, 3, (40, 4)), name)
    made = model(classifier(classes, labels, post), {"x": x}, ["label", "y"])
    ours, theirs = both(made, {"x": x})
    assert ours[0].tolist() == theirs[0].tolist()
    assert len(set(ours[0].tolist())) == max(classes, 2)
    assert ours[1].dtype == theirs[1].dtype == np.float32 and ours[1].shape == theirs[1].shape
    np.testing.assert_allclose(ours[1], theirs[1], rtol=2e-5, atol=2e-6)


def test_linear_classifiers_that_do_not_fit():
    x = np.ones((2, 4), np.float32)
    with pytest.raises(UnsupportedError, match="post_transform PROBIT"):
        Session(model(classifier(3, [1, 2, 3], "PROBIT"), {"x": x}, ["label", "y"]))
    for made, why in [
        (classifier(3, [1, 2], "NONE"), "2 labels"),
        (classifier(3, [1, 2, 3], "NONE", coefficients=[1.0]), "coefficients has 1 numbers, not 12"),
    ]:
        with pytest.raises(ModelError, match=why):
            Session(model(made, {"x": x}, ["label", "y"])).run({"x": x})
