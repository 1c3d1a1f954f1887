"""What ONNX Runtime and the shape inference of onnx say of whole models.

Random models of a few nodes are written as lists of nodes, small enough to read; networks exported
by PyTorch, by its old and its new exporter, as the model itself. Every value of a model is made an
output and the model is run, so `out` has the sizes that each value really had; `inferred` has those
that onnx infers, where they are others.
"""

import base64
import os
import io
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper, shape_inference

from common import REFUSED, Draw, write

OPSET = 17
IR = 8
RANDOM = 420
ort.set_default_logger_severity(4)


class Random:
    """A model that is drawn: inputs, constants, and nodes that mostly fit."""

    def __init__(self, number):
        self.draw = Draw("model %d" % number)
        self.inputs, self.constants, self.nodes, self.pool = {}, {}, [], []
        self.misfit = self.draw.chance(0.15)
        for _ in range(1 + self.draw.below(2)):
            self.input(self.shape())
        while len(self.nodes) < 2 or self.draw.chance(0.7):
            self.step()

    def shape(self, low=0, high=4):
        rank = low + self.draw.below(high - low + 1)
        return [self.draw.of([1, 1, 2, 3, 3, 4, 5, 0]) if self.draw.chance(0.35)
                else 2 + self.draw.below(4) for _ in range(rank)]

    def input(self, shape):
        name = "i%d" % len(self.inputs)
        self.inputs[name] = shape
        self.pool.append((name, shape, "f"))
        return name

    def constant(self, values, scalar=False):
        name = "c%d" % len(self.constants)
        self.constants[name] = values if scalar else list(values)
        return name

    def node(self, op, inputs, shapes, kind="f", **attributes):
        outputs = ["v%d" % (len(self.pool) + at) for at in range(len(shapes))]
        self.nodes.append([op, inputs, outputs, attributes])
        self.pool.extend((name, shape, kind) for name, shape in zip(outputs, shapes))
        return outputs

    def pick(self, kind="f", low=0):
        fit = [v for v in self.pool if v[2] == kind and len(v[1]) >= low]
        if not fit:
            shape = self.shape(low, max(low, 4))
            return self.input(shape), shape
        name, shape, _ = self.draw.of(fit)
        return name, shape

    def partner(self, shape, one_way=False):
        """A value that broadcasts with `shape`: often a new input, sometimes at odds."""
        own = [1 if self.draw.chance(0.3) else size for size in shape]
        cut = self.draw.below(len(own) + 1) if self.draw.chance(0.5) else 0
        own = own[cut:]
        if not one_way and self.draw.chance(0.3):
            own = self.shape(1, 2) + own if not cut else own
        if self.misfit and own and self.draw.chance(0.4):
            own[self.draw.below(len(own))] = 7
        return self.input(own), own

    def step(self):
        getattr(self, self.draw.of([name for name in dir(self) if name.startswith("op_")]))()

    @staticmethod
    def meet(*shapes):
        try:
            return list(np.broadcast_shapes(*[tuple(shape) for shape in shapes]))
        except ValueError:
            return list(shapes[0])

    def op_arithmetic(self):
        (a, x) = self.pick()
        (b, y) = self.partner(x)
        op = self.draw.of(["Add", "Sub", "Mul", "Div", "Pow", "Mod"])
        more = {"fmod": 1} if op == "Mod" else {}
        both = [a, b] if self.draw.chance(0.5) else [b, a]
        self.node(op, both, [self.meet(x, y)], **more)

    op_more_arithmetic = op_arithmetic

    def op_variadic(self):
        (a, x) = self.pick()
        own = [self.partner(x) for _ in range(self.draw.below(3))]
        self.node(self.draw.of(["Max", "Min", "Sum", "Mean"]), [a] + [name for name, _ in own],
                  [self.meet(x, *[shape for _, shape in own])])

    def op_compare(self):
        (a, x) = self.pick()
        (b, y) = self.partner(x)
        op = self.draw.of(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"])
        self.node(op, [a, b], [self.meet(x, y)], kind="b")

    def op_where(self):
        if not any(kind == "b" for _, _, kind in self.pool):
            self.op_compare()
        (c, z) = self.pick("b")
        (a, x) = self.partner(z)
        (b, y) = self.partner(x)
        self.node("Where", [c, a, b], [self.meet(z, x, y)])

    def op_logic(self):
        if not any(kind == "b" for _, _, kind in self.pool):
            self.op_compare()
        (a, x), (b, y) = self.pick("b"), self.pick("b")
        self.node(self.draw.of(["And", "Or", "Xor"]), [a, b], [self.meet(x, y)], kind="b")

    def op_prelu(self):
        (a, x) = self.pick()
        (b, _) = self.partner(x, one_way=True)
        self.node("PRelu", [a, b], [x])

    def op_expand(self):
        (a, x) = self.pick()
        target = [1 if self.draw.chance(0.4) else size for size in x]
        if self.draw.chance(0.5):
            target = [2, 3][:1 + self.draw.below(2)] + target
        self.node("Expand", [a, self.constant(target)], [self.meet(x, target)])

    def op_matmul(self):
        (a, x) = self.pick(low=1)
        inner, columns = x[-1], 1 + self.draw.below(4)
        batch = [1 if self.draw.chance(0.5) else size for size in x[:-2]]
        batch = batch[self.draw.below(len(batch) + 1):]
        if self.misfit and batch and self.draw.chance(0.4):
            batch[-1] = 7
        # ONNX Runtime refuses to multiply nothing by a vector.
        y = [inner] if 0 not in x and self.draw.chance(0.2) else batch + [inner, columns]
        out = self.meet(x[:-2], y[:-2]) + (x[-2:-1]) + (y[-1:] if len(y) > 1 else [])
        self.node("MatMul", [a, self.input(y)], [out])

    def op_gemm(self):
        m, k, n = [1 + self.draw.below(4) for _ in range(3)]
        ta, tb = self.draw.below(2), self.draw.below(2)
        a, b = self.input([k, m] if ta else [m, k]), self.input([n, k] if tb else [k, n])
        c = self.draw.of([[], [n], [1, n], [m, 1], [m, n], [1], [7] if self.misfit else [n]])
        self.node("Gemm", [a, b, self.input(c)], [[m, n]], transA=ta, transB=tb)

    def op_layer_norm(self):
        (a, x) = self.pick(low=1)
        axis = self.draw.below(len(x))
        scale = x[axis:]
        # ONNX Runtime does not normalise over nothing.
        if 0 in x:
            return
        self.node("LayerNormalization", [a, self.input(scale), self.input(scale)], [x], axis=axis)

    def op_unary(self):
        (a, x) = self.pick()
        self.node(self.draw.of(["Relu", "Tanh", "Neg", "Exp", "Identity", "Sigmoid", "Erf"]), [a], [x])

    def op_clip(self):
        (a, x) = self.pick()
        self.node("Clip", [a, self.input([])], [x])

    def op_softmax(self):
        (a, x) = self.pick(low=1)
        self.node("Softmax", [a], [x], axis=-1 - self.draw.below(len(x)))

    def op_cast(self):
        (a, x) = self.pick()
        to = self.draw.of([TensorProto.DOUBLE, TensorProto.INT32, TensorProto.FLOAT16])
        self.node("Cast", [a], [x], kind="other", to=to)

    def op_reduce(self):
        (a, x) = self.pick(low=1)
        axes = sorted({self.draw.below(len(x)) for _ in range(1 + self.draw.below(2))})
        keep = self.draw.below(2)
        out = [1 if at in axes else size for at, size in enumerate(x) if keep or at not in axes]
        axes = [axis - len(x) if self.draw.chance(0.5) else axis for axis in axes]
        # Over no elements, ONNX Runtime keeps the axes whatever `keepdims` says.
        if 0 in x:
            return
        if self.draw.chance(0.5):
            self.node("ReduceSum", [a, self.constant(axes)], [out], keepdims=keep)
        else:
            self.node("ReduceL2", [a], [out], axes=axes, keepdims=keep)

    def op_reduce_all(self):
        (a, x) = self.pick()
        self.node("ReduceSum", [a], [[]], keepdims=0)

    def op_arg(self):
        (a, x) = self.pick(low=1)
        axis, keep = self.draw.below(len(x)), self.draw.below(2)
        if 0 in x:
            return
        out = [1 if at == axis else size for at, size in enumerate(x) if keep or at != axis]
        self.node("ArgMax", [a], [out], kind="other", axis=axis, keepdims=keep)

    def op_transpose(self):
        (a, x) = self.pick()
        order = sorted(range(len(x)), key=lambda _: self.draw.random())
        self.node("Transpose", [a], [[x[at] for at in order]], **({"perm": order} if x else {}))

    def op_unsqueeze(self):
        (a, x) = self.pick()
        axis = self.draw.below(len(x) + 1)
        self.node("Unsqueeze", [a, self.constant([axis])], [x[:axis] + [1] + x[axis:]])

    def op_squeeze(self):
        (a, x) = self.pick()
        axes = [at for at, size in enumerate(x) if size == 1]
        if axes:
            own = [self.constant(axes)] if self.draw.chance(0.5) else []
            self.node("Squeeze", [a] + own, [[size for size in x if size != 1]])

    def op_reshape(self):
        (a, x) = self.pick(low=1)
        if 0 in x:
            return
        target = self.draw.of([[-1], [0, -1], [int(np.prod(x))], [-1, x[-1]], x[::-1]])
        out = [x[0] if size == 0 else size for size in target]
        if -1 in out:
            known = int(np.prod([size for size in out if size != -1]))
            out[out.index(-1)] = int(np.prod(x)) // known
        self.node("Reshape", [a, self.constant(target)], [out])

    def op_flatten(self):
        (a, x) = self.pick()
        axis = self.draw.below(len(x) + 1)
        self.node("Flatten", [a], [[int(np.prod(x[:axis])), int(np.prod(x[axis:]))]], axis=axis)

    def op_concat(self):
        (a, x) = self.pick(low=1)
        axis = self.draw.below(len(x))
        y = x[:axis] + [self.draw.below(4)] + x[axis + 1:]
        out = x[:axis] + [x[axis] + y[axis]] + x[axis + 1:]
        self.node("Concat", [a, self.input(y)], [out], axis=axis)

    def op_split(self):
        (a, x) = self.pick(low=1)
        axis = self.draw.below(len(x))
        if x[axis] < 2:
            return
        part = 1 + self.draw.below(x[axis] - 1)
        parts = [part, x[axis] - part]
        outs = [x[:axis] + [size] + x[axis + 1:] for size in parts]
        self.node("Split", [a, self.constant(parts)], outs, axis=axis)

    def op_slice(self):
        (a, x) = self.pick(low=1)
        axis = self.draw.below(len(x))
        start, end = self.draw.below(8) - 4, self.draw.of([-1, 1, 2, 3, 100, -100])
        step = self.draw.of([1, 1, 2, -1, -2])
        size = len(range(x[axis])[slice(start, None if end == -100 and step < 0 else end, step)])
        names = [self.constant([value]) for value in (start, end, axis, step)]
        self.node("Slice", [a] + names, [x[:axis] + [size] + x[axis + 1:]])

    def op_gather(self):
        (a, x) = self.pick(low=1)
        axis = self.draw.below(len(x))
        if x[axis] == 0:
            return
        index = self.draw.of([0, [0], [0, -1]])
        own = self.constant(index, scalar=index == 0)
        out = x[:axis] + ([] if index == 0 else [len(index)]) + x[axis + 1:]
        self.node("Gather", [a, own], [out], axis=axis)

    def op_pad(self):
        (a, x) = self.pick(low=1)
        pads = [self.draw.below(3) for _ in range(2 * len(x))]
        out = [size + pads[at] + pads[at + len(x)] for at, size in enumerate(x)]
        self.node("Pad", [a, self.constant(pads)], [out])

    def op_tile(self):
        (a, x) = self.pick(low=1)
        times = [1 + self.draw.below(3) for _ in x]
        self.node("Tile", [a, self.constant(times)], [[s * t for s, t in zip(x, times)]])

    def op_shape_chain(self):
        """What exporters write: the sizes of one value become the shape of another."""
        (a, x) = self.pick(low=2)
        if 0 in x:
            return
        [shape] = self.node("Shape", [a], [[len(x)]], kind="size")
        axis = self.draw.below(len(x))
        [one] = self.node("Gather", [shape, self.constant(axis, scalar=True)], [[]], kind="size", axis=0)
        [back] = self.node("Unsqueeze", [one, self.constant([0])], [[1]], kind="size")
        [rest] = self.node("Concat", [back, self.constant([-1])], [[2]], kind="size", axis=0)
        self.node("Reshape", [a, rest], [[x[axis], int(np.prod(x)) // x[axis]]])

    def op_shape_arithmetic(self):
        (a, x) = self.pick(low=2)
        if 0 in x:
            return
        [shape] = self.node("Shape", [a], [[len(x)]], kind="size")
        [half] = self.node("Slice", [shape, self.constant([0]), self.constant([2])], [[2]], kind="size")
        [front] = self.node("ReduceProd", [half], [[1]], kind="size", axes=[0], keepdims=1)
        [rest] = self.node("Concat", [front, self.constant(x[2:])], [[len(x) - 1]], kind="size", axis=0)
        self.node("Reshape", [a, rest], [[x[0] * x[1]] + x[2:]])

    def op_expand_as(self):
        (a, x) = self.pick(low=1)
        (b, y) = self.partner(x, one_way=True)
        [shape] = self.node("Shape", [a], [[len(x)]], kind="size")
        self.node("Expand", [b, shape], [self.meet(x, y)])

    def op_conv(self):
        channels, group = self.draw.of([(2, 1), (4, 2), (3, 3)])
        data = [1 + self.draw.below(2), channels, 4 + self.draw.below(5), 5 + self.draw.below(4)]
        kernel = [1 + self.draw.below(3), 1 + self.draw.below(3)]
        filters = group * (1 + self.draw.below(2))
        weight = [filters, channels // group] + kernel
        pads, strides = [self.draw.below(2) for _ in range(4)], [1 + self.draw.below(2) for _ in range(2)]
        dilations = [1 + self.draw.below(2) for _ in range(2)]
        out = [(data[2 + at] + pads[at] + pads[at + 2] - dilations[at] * (kernel[at] - 1) - 1)
               // strides[at] + 1 for at in range(2)]
        more = {"auto_pad": "SAME_UPPER", "strides": strides} if self.draw.chance(0.2) else {
            "pads": pads, "strides": strides, "dilations": dilations}
        if "auto_pad" in more:
            out = [-(-data[2 + at] // strides[at]) for at in range(2)]
        inputs = [self.input(data), self.input(weight)]
        if self.draw.chance(0.5):
            inputs.append(self.input([filters]))
        self.node("Conv", inputs, [[data[0], filters] + out], group=group, **more)

    def op_pool(self):
        data = [1, 2, 5 + self.draw.below(5), 5 + self.draw.below(5)]
        kernel = [1 + self.draw.below(3), 1 + self.draw.below(3)]
        strides = [1 + self.draw.below(3), 1 + self.draw.below(3)]
        ceil = self.draw.below(2)
        round_up = (lambda a, b: -(-a // b)) if ceil else (lambda a, b: a // b)
        out = [round_up(data[2 + at] - kernel[at], strides[at]) + 1 for at in range(2)]
        out = [size - 1 if ceil and (size - 1) * strides[at] >= data[2 + at] else size
               for at, size in enumerate(out)]
        self.node(self.draw.of(["MaxPool", "AveragePool"]), [self.input(data)], [data[:2] + out],
                  kernel_shape=kernel, strides=strides, ceil_mode=ceil)

    def op_global_pool(self):
        (a, x) = self.pick(low=3)
        if 0 in x:
            return
        self.node("GlobalAveragePool", [a], [x[:2] + [1] * (len(x) - 2)])

    def op_einsum(self):
        (a, x) = self.pick(low=2)
        letters = "abcd"[:len(x)]
        y = [x[-1], 3]
        equation = "%s,%sz->%sz" % (letters, letters[-1], letters[:-1])
        self.node("Einsum", [a, self.input(y)], [x[:-1] + [3]], equation=equation)

    def op_range(self):
        start, end, step = self.draw.below(5), self.draw.below(12), self.draw.of([1, 2, 3, -1])
        own = [self.constant(value, scalar=True) for value in (start, end, step)]
        self.node("Range", own, [[len(range(start, end, step))]], kind="size")

    def model(self):
        nodes = [helper.make_node(op, inputs, outputs, name="%s_%d" % (op, at), **attributes)
                 for at, (op, inputs, outputs, attributes) in enumerate(self.nodes)]
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                  for name, shape in self.inputs.items()]
        constants = [numpy_helper.from_array(np.array(values, dtype=np.int64), name)
                     for name, values in self.constants.items()]
        outputs = [onnx.ValueInfoProto(name=name) for _, _, names, _ in self.nodes for name in names]
        graph = helper.make_graph(nodes, "random", inputs, outputs, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)

    def case(self):
        return {"inputs": self.inputs, "constants": self.constants, "nodes": self.nodes}


def ran(model, feeds):
    """The sizes of every output, or REFUSED."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options)
        names = [output.name for output in session.get_outputs()]
        return {name: list(np.shape(value)) for name, value in zip(names, session.run(None, feeds))}
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        return REFUSED


def inferred(model):
    """The sizes that onnx infers of every value; None for those that it does not know."""
    try:
        graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError:
        return REFUSED
    out = {}
    for value in list(graph.output) + list(graph.value_info):
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            out[value.name] = [dim.dim_value if dim.HasField("dim_value") else None
                               for dim in kind.shape.dim]
    return out


def random_cases():
    for number in range(RANDOM):
        drawn = Random(number)
        model = drawn.model()
        feeds = {name: np.ones(shape, dtype=np.float32) for name, shape in drawn.inputs.items()}
        out = ran(model, feeds)
        case = drawn.case()
        case["out"] = out
        guess = inferred(model)
        if guess != out:
            differs = guess if guess == REFUSED or out == REFUSED else {
                name: guess.get(name) for name in out if guess.get(name) != out[name]}
            case["inferred"] = differs
        yield case


def exported():
    """Networks by name, with inputs of two sizes and the names of sizes that may change."""
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.norm, self.b = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)

        def forward(self, x):
            return torch.log_softmax(self.b(torch.nn.functional.gelu(self.norm(self.a(x)))), -1)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.Conv2d(4, 4, 3, padding=1)
            self.down, self.norm = nn.Conv2d(3, 4, 1, stride=2), nn.BatchNorm2d(4)
            self.act, self.end = nn.PReLU(4), nn.Linear(4, 2)

        def forward(self, x):
            y = self.act(self.norm(self.a(x)))
            y = self.act(self.b(y) + self.down(x))
            gate = torch.sigmoid(y.mean((2, 3), keepdim=True))
            return self.end((y * gate).mean((2, 3)))

    class Attention(nn.Module):
        def __init__(self, width=8, heads=2):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = [nn.Linear(width, width) for _ in range(4)]
            self.norm = nn.LayerNorm(width)

        def forward(self, x, mask):
            batch, time, width = x.shape
            q, k, v = [f(x).reshape(batch, time, self.heads, width // self.heads).transpose(1, 2)
                       for f in (self.q, self.k, self.v)]
            weights = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
            weights = weights + (1 - mask)[:, None, None, :] * -1e9
            y = (torch.softmax(weights, -1) @ v).transpose(1, 2).reshape(batch, time, width)
            place = torch.arange(time, dtype=x.dtype)[None, :, None].expand(batch, time, 1)
            return self.norm(x + self.o(y) + place)

    image = {0: "batch", 2: "height", 3: "width"}
    yield "mlp", Mlp(), ["x"], [{0: "batch"}], [[(5, 6)], [(1, 6)]]
    yield "residual", Residual(), ["x"], [image], [[(2, 3, 16, 12)], [(3, 3, 9, 7)]]
    text = {0: "batch", 1: "time"}
    yield "attention", Attention(), ["x", "mask"], [text, text], [[(2, 5, 8), (2, 5)], [(3, 4, 8), (3, 4)]]


def export(network, names, axes, shapes, new):
    import torch
    args = tuple(torch.randn(shape) for shape in shapes)
    network.eval()
    out = io.BytesIO()
    kind = {"dynamic_axes": dict(zip(names, axes)), "opset_version": 17}
    if new:
        kind = {"dynamic_shapes": tuple(axes), "opset_version": 18}
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        program = torch.onnx.export(network, args, None if new else out, input_names=names,
                                    output_names=["out"], dynamo=new, verbose=False, **kind)
    finally:
        sys.stdout = stdout
    model = program.model_proto if new else onnx.load_from_string(out.getvalue())
    # Only what bears on shapes is kept.
    del model.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    for tensor in model.graph.initializer:
        del tensor.metadata_props[:]
    return model


def network_cases():
    warnings.filterwarnings("ignore")
    for name, network, names, axes, sizes in exported():
        for new in (False, True):
            model = export(network, names, axes, sizes[0], new)
            asked = onnx.ModelProto()
            asked.CopyFrom(model)
            known = {output.name for output in asked.graph.output}
            for node in asked.graph.node:
                for output in node.output:
                    if output and output not in known:
                        asked.graph.output.append(onnx.ValueInfoProto(name=output))
            text = base64.b64encode(model.SerializeToString(deterministic=True)).decode()
            for shapes in sizes:
                symbols = {symbol: size[axis] for own, size in zip(axes, shapes)
                           for axis, symbol in own.items()}
                feeds = {own: np.ones(shape, dtype=np.float32) for own, shape in zip(names, shapes)}
                out = ran(asked, feeds)
                # The model stands in the first of its cases.
                yield {"name": "%s %s" % (name, "new" if new else "old"), "model": text,
                       "symbols": symbols, "out": out}
                text = ""


def cases():
    yield from random_cases()
    yield from network_cases()


def versions():
    import onnxscript
    import torch
    return {"onnxruntime": ort.__version__, "onnx": onnx.__version__,
            "torch": torch.__version__.split("+")[0], "onnxscript": onnxscript.__version__}


if __name__ == "__main__":
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    write("models", versions(), cases())
