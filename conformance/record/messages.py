"""Records what libraries say when arrays do not broadcast: one JSON object a line, for those that can be imported.

    python record/messages.py > messages.jsonl

`shapes` are the shapes that the message tells of, in the order of the operands; `rule` is the rule under which they met.
`silent` marks messages that tell no shapes; `shapes` are then those that met. The recorder calls the libraries and writes what they said, nothing else.
"""

import json
import sys
import warnings


def record(library, version, call, shapes, rule, action, silent=False):
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
        said = [f"{w.category.__name__}: {w.message}" for w in caught]
        text = "\n".join(said)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    # Where the recorder lies is no part of what a library says.
    text = text.replace(__file__, "messages.py")
    if not text:
        print(f"{library} {call} said nothing", file=sys.stderr)
        return
    row = {"library": library, "version": version, "call": call, "shapes": shapes, "rule": rule, "silent": silent}
    print(json.dumps({**row, "text": text}))


def numpy():
    import numpy as np

    z = np.zeros

    def case(call, shapes, rule, action, silent=False):
        record("numpy", np.__version__, call, shapes, rule, action, silent)

    def assign(key, shape, value):
        z(shape)[key] = z(value)

    def in_place():
        x = z(3)
        x += z((3, 3))

    case("add", [[2, 3], [2]], "numpy", lambda: z((2, 3)) + z(2))
    case("add", [[4, 1, 3], [2, 5], [3]], "numpy", lambda: np.where(z((4, 1, 3)) > 0, z((2, 5)), z(3)))
    case("add", [[0], [2]], "numpy", lambda: z(0) + z(2))
    case("broadcast_shapes", [[2, 3], [2]], "numpy", lambda: np.broadcast_shapes((2, 3), (2,)))
    case("broadcast_arrays", [[5], [4]], "numpy", lambda: np.broadcast_arrays(z(5), z(4), z(3)))
    case("broadcast_to", [[3]], "to:2", lambda: np.broadcast_to(z(3), (2,)))
    case("broadcast_to", [[3, 2]], "to:2,3", lambda: np.broadcast_to(z((3, 2)), (2, 3)))
    case("broadcast_to", [[2, 3]], "to:3", lambda: np.broadcast_to(z((2, 3)), 3), True)
    case("broadcast_to", [[2]], "to:()", lambda: np.broadcast_to(z(2), ()), True)
    case("setitem", [[3]], "to:2", lambda: assign(slice(None), 2, 3))
    case("setitem", [[3]], "to:4,2", lambda: assign(slice(None), (4, 2), 3))
    case("setitem", [[3]], "to:2", lambda: assign([0, 1], 4, 3))
    case("getitem", [[2], [3]], "numpy", lambda: z((4, 4))[np.array([0, 1]), np.array([0, 1, 2])])
    case("iadd", [[3, 3]], "to:3", in_place)
    case("add", [[3], [3], [2]], "numpy", lambda: np.add(z(3), z(3), out=z(2)))
    case("copyto", [[3]], "to:2", lambda: np.copyto(z(2), z(3)))
    case("matmul", [[2, 1, 1], [3, 1, 1]], "numpy", lambda: z((2, 4, 4)) @ z((3, 4, 4)))
    case("random.normal", [[3], [2]], "numpy", lambda: np.random.normal(z(3), z(2) + 1))


def torch():
    import torch
    import torch.nn.functional as F

    z = torch.zeros

    def case(call, shapes, rule, action, silent=False):
        record("torch", torch.__version__.partition("+")[0], call, shapes, rule, action, silent)

    def assign(key, shape, value):
        z(shape)[key] = z(value)

    case("add", [[2, 3], [2]], "numpy", lambda: z(2, 3) + z(2), True)
    case("where", [[4], [3], [2]], "numpy", lambda: torch.where(z(4) > 0, z(3), z(2)), True)
    case("add_", [[3, 3]], "to:3", lambda: z(3).add_(z(3, 3)))
    case("add_", [[2, 3]], "to:2,1", lambda: z(2, 1).add_(z(2, 3)))
    case("expand", [[3]], "to:4", lambda: z(3).expand(4))
    case("expand", [[3, 1]], "to:4,2,5", lambda: z(3, 1).expand(4, 2, 5))
    case("expand", [[2, 3]], "to:3", lambda: z(2, 3).expand(3))
    case("setitem", [[3]], "to:2", lambda: assign(slice(None), 2, 3))
    case("setitem", [[3]], "to:2", lambda: assign(torch.tensor([0, 1]), 4, 3))
    case("getitem", [[2], [3]], "numpy", lambda: z(4, 4)[torch.arange(2), torch.arange(3)])
    case("broadcast_shapes", [[2, 3], [2]], "numpy", lambda: torch.broadcast_shapes((2, 3), (2,)))
    case("broadcast_tensors", [[2, 3], [2]], "numpy", lambda: torch.broadcast_tensors(z(2, 3), z(2)), True)
    case("add", [[2, 3], [2]], "numpy", lambda: z(2, 3, device="meta") + z(2, device="meta"))
    case("mse_loss", [[32, 1], [32]], "numpy", lambda: F.mse_loss(z(32, 1), z(32)))
    case("l1_loss", [[4], [4, 1]], "numpy", lambda: F.l1_loss(z(4), z(4, 1)))
    case("binary_cross_entropy", [[8, 1], [8]], "exact", lambda: F.binary_cross_entropy(z(8, 1), z(8)))
    case(
        "binary_cross_entropy_with_logits",
        [[8, 1], [8]],
        "exact",
        lambda: F.binary_cross_entropy_with_logits(z(8, 1), z(8)),
    )
    case("Normal", [[3], [2]], "numpy", lambda: torch.distributions.Normal(z(3), z(2) + 1), True)
    case("log_prob", [[4], [3]], "numpy", lambda: torch.distributions.Normal(z(3), 1.0).log_prob(z(4)))
    case("copy_", [[3]], "to:2", lambda: z(2).copy_(z(3)), True)
    case("masked_fill", [[2, 3], [2]], "numpy", lambda: z(2, 3).masked_fill(z(2) > 0, 1.0), True)


def jax():
    import jax
    import jax.numpy as jnp

    z = jnp.zeros

    def case(call, shapes, rule, action, silent=False):
        record("jax", jax.__version__, call, shapes, rule, action, silent)

    case("add", [[2, 3], [2]], "numpy", lambda: z((2, 3)) + z(2))
    case("where", [[4], [3], [2]], "numpy", lambda: jnp.where(z(4) > 0, z(3), z(2)))
    case("broadcast_shapes", [[2, 3], [2]], "numpy", lambda: jnp.broadcast_shapes((2, 3), (2,)))
    case("broadcast_arrays", [[2, 3], [2]], "numpy", lambda: jnp.broadcast_arrays(z((2, 3)), z(2)))
    case("broadcast_to", [[3]], "to:2", lambda: jnp.broadcast_to(z(3), (2,)))
    case("broadcast_to", [[2, 3]], "to:3", lambda: jnp.broadcast_to(z((2, 3)), (3,)))
    case("at.set", [[3]], "to:2", lambda: z(4).at[:2].set(z(3)))
    case("getitem", [[2], [3]], "numpy", lambda: z((4, 4))[jnp.arange(2), jnp.arange(3)])
    case("lax.add", [[2, 3], [2, 4]], "exact", lambda: jax.lax.add(z((2, 3)), z((2, 4))))
    case("lax.add", [[2, 3], [3]], "exact", lambda: jax.lax.add(z((2, 3)), z(3)), True)
    with jax.numpy_rank_promotion("raise"):
        case("add", [[2, 3], [3]], "numpy", lambda: z((2, 3)) + z(3))
    with jax.numpy_rank_promotion("warn"):
        case("add", [[2, 3], [3]], "numpy", lambda: z((2, 3)) + z(3))
    case("jit", [[2, 3], [2]], "numpy", lambda: jax.jit(lambda a, b: a * b)(z((2, 3)), z(2)))


def tensorflow():
    import tensorflow as tf

    z = tf.zeros

    def case(call, shapes, rule, action, silent=False):
        record("tensorflow", tf.__version__, call, shapes, rule, action, silent)

    def graph(action, *shapes):
        return tf.function(action).get_concrete_function(*(tf.TensorSpec(shape) for shape in shapes))

    case("add", [[2, 3], [2]], "numpy", lambda: z((2, 3)) + z(2))
    case("multiply", [[2, 3], [4, 3]], "numpy", lambda: z((2, 3)) * z((4, 3)))
    case("less", [[4, 3], [2]], "numpy", lambda: z((4, 3)) < z(2))
    case("maximum", [[4, 3], [2]], "numpy", lambda: tf.maximum(z((4, 3)), z(2)))
    case("where", [[4], [3], [2]], "numpy", lambda: tf.where(z(4) > 0, z(3), z(2)))
    case("broadcast_to", [[3]], "to:2", lambda: tf.broadcast_to(z(3), [2]))
    static, dynamic = tf.broadcast_static_shape, tf.broadcast_dynamic_shape
    case("static", [[2, 3], [2]], "numpy", lambda: static(tf.TensorShape([2, 3]), tf.TensorShape([2])))
    case("dynamic", [[2, 3], [2]], "numpy", lambda: dynamic(tf.constant([2, 3]), tf.constant([2])))
    case("graph add", [[2, 3], [2]], "numpy", lambda: graph(lambda a, b: a + b, [2, 3], [2]))
    unranked = tf.function(lambda a, b: a + b, input_signature=[tf.TensorSpec(None)] * 2)
    case("graph run", [[2, 3], [2]], "numpy", lambda: unranked(z((2, 3)), z(2)))
    case("assign_add", [[2], [3]], "exact", lambda: tf.Variable(z(2)).assign_add(z(3)))


def models():
    from onnx import TensorProto, helper

    def model(op, *shapes):
        names = [f"x{i}" for i in range(len(shapes))]
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        node = helper.make_node(op, names, ["y"], name=f"/head/{op}")
        inputs = [value(name, shape) for name, shape in zip(names, shapes)]
        graph = helper.make_graph([node], "g", inputs, [value("y", None)])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return names, made

    return model


def onnxruntime():
    import numpy as np
    import onnxruntime as ort

    model = models()
    ort.set_default_logger_severity(4)

    def run(op, declared, shapes):
        names, made = model(op, *declared)
        session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        session.run(None, {name: np.zeros(shape, np.float32) for name, shape in zip(names, shapes)})

    def case(call, shapes, action, silent):
        record("onnxruntime", ort.__version__, call, shapes, "numpy", action, silent)

    case("Add", [[2, 3], [2]], lambda: run("Add", [["A", "B"], ["C"]], [(2, 3), (2,)]), True)
    case("Mul", [[4, 3], [2, 3]], lambda: run("Mul", [["A", 3], ["C", 3]], [(4, 3), (2, 3)]), True)
    case("Max", [[4, 3], [2]], lambda: run("Max", [["A", "B"], ["C"]], [(4, 3), (2,)]), True)
    case("Add", [[2, 3], [2]], lambda: run("Add", [[2, 3], [2]], [(2, 3), (2,)]), True)


def openvino():
    import numpy as np
    import openvino as ov
    from openvino import opset13 as ops

    version = ov.__version__.partition("-")[0]

    def case(call, shapes, action, silent):
        record("openvino", version, call, shapes, "numpy", action, silent)

    def parameter(shape):
        return ops.parameter(shape, np.float32)

    def run(first, second):
        a, b = parameter([-1] * len(first)), parameter([-1] * len(second))
        compiled = ov.compile_model(ov.Model([ops.add(a, b)], [a, b]), "CPU")
        compiled([np.zeros(first, np.float32), np.zeros(second, np.float32)])

    case("Add", [[2, 3], [2]], lambda: ops.add(parameter([2, 3]), parameter([2])), False)
    case("Select", [[4], [3], [2]], lambda: ops.select(ops.parameter([4], bool), parameter([3]), parameter([2])), False)
    case("Add at run time", [[2, 3], [2]], lambda: run((2, 3), (2,)), True)


def main():
    for library in (numpy, torch, jax, tensorflow, onnxruntime, openvino):
        try:
            library()
        except ImportError as error:
            print(f"{library.__name__} is left out: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
