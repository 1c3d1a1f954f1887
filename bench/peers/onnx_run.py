"""ONNX models beside ONNX Runtime: products of few rows, chains of element-wise nodes, a transformer.

    python bench/peers/onnx_run.py WORKER [--threads N] [--rounds N] [--case GLOB] [--page FILE] [--models FOLDER]

WORKER is the compiled `onnx_run` of this benchmark. Both run the same file on as many threads, in turns in one run; the
shortest call of each turn counts, and the median of the turns. Before, the sums of their outputs for the same inputs are
compared, and the run ends where they differ. For a product the bound stands beside: the bytes of its
matrix, read once, at half the time that NumPy takes to copy as many bytes, which are in the caches where they fit there.
"""

import argparse
import fnmatch
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)

# Rows; inner size and columns, from models on PyPI: openwakeword, lore_process, magika, ddddocr, rapidocr.
FEW = [1, 2, 4, 8, 16, 24, 64]
GEMM = [(128, 128), (1536, 128), (2112, 128), (1024, 8210), (4096, 4096)]
MATMUL = [(256, 256), (256, 2048), (2048, 256), (400, 1600), (120, 18710), (4096, 4096)]


def model(nodes, inputs, constants, output):
    """A model of float32 values of these shapes."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    out = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "graph", values, out, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def products():
    """Cases of products: a name, the model, the shape of x, the bytes of its matrix."""
    random = np.random.default_rng(0)
    for kind, shapes in {"gemm transB": GEMM, "matmul": MATMUL}.items():
        for inner, columns in shapes:
            over = kind != "matmul"
            weight = random.standard_normal((columns, inner) if over else (inner, columns)).astype(np.float32)
            constants = {"w": weight}
            if over:
                constants["b"] = random.standard_normal(columns).astype(np.float32)
                node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
            else:
                node = helper.make_node("MatMul", ["x", "w"], ["y"])
            for rows in FEW:
                made = model([node], {"x": [rows, inner]}, constants, "y")
                yield f"{kind} {rows} x {inner} x {columns}", made, {"x": [rows, inner]}, weight.nbytes


def chains():
    """Chains of element-wise nodes, as exporters write activations and normalizations."""

    def nodes(*texts):
        for text in texts:
            out, op, *inputs = text.split()
            yield helper.make_node(op, inputs, [out])

    half = {
        name: np.float32(value) for name, value in {"r": 2**-0.5, "one": 1, "half": 0.5, "three": 3, "six": 6}.items()
    }
    half["zero"] = np.float32(0)
    gelu = list(nodes("a Mul x r", "e Erf a", "p Add e one", "m Mul x p", "y Mul m half"))
    swish = list(nodes("a Add x three", "c Clip a zero six", "m Mul x c", "y Div m six"))
    column = np.linspace(0.5, 2, 256, dtype=np.float32).reshape(256, 1, 1)
    affine = list(nodes("a Sub x mean", "d Div a std", "m Mul d gain", "b Add m bias", "s Sigmoid b", "y Mul b s"))
    for name, own, shape, constants in [
        ("gelu of 6 nodes", gelu, [64, 197, 768], half),
        ("hard swish", swish, [1, 64, 160, 160], half),
        (
            "normalize and swish",
            affine,
            [8, 256, 28, 28],
            {"mean": column, "std": column, "gain": column, "bias": column},
        ),
    ]:
        used = {name for node in own for name in node.input}
        made = model(own, {"x": shape}, {key: array for key, array in constants.items() if key in used}, "y")
        yield f"{name}, {'x'.join(map(str, shape))}", made, {"x": shape}, None


def transformer(folder):
    """The transformer of 687 nodes of lineless-table-rec, where `cargo xtask test models` has fetched it."""
    for path in folder.glob("*lore_process.onnx"):
        yield "lore_process, 687 nodes", path, {"slct_logi_feat": [1, 24, 256], "dets": [1, 24, 8]}, None


def numbers(shape):
    """What the worker fills an input of that shape with: a linear congruential generator, between -1 and 1."""
    count = int(np.prod(shape))
    states = np.empty(count, np.uint32)
    states[:1] = 1_664_525 + 1_013_904_223
    filled, by, plus = 1, 1_664_525, 1_013_904_223
    # So many numbers on, each is `by` times it `plus` that.
    while filled < count:
        more = min(filled, count - filled)
        states[filled : filled + more] = states[:more] * np.uint32(by) + np.uint32(plus)
        by, plus = by * by % 2**32, (by * plus + plus) % 2**32
        filled += more
    return ((states >> 8).astype(np.float32) / np.float32(2**23) - 1).reshape(shape)


def agree(case, ours, theirs):
    """Ends the run where the sum of an output differs from that of ONNX Runtime by more than rounding does."""
    if len(ours) != len(theirs):
        sys.exit(f"{case}: {len(ours)} outputs, of ONNX Runtime {len(theirs)}")
    for mine, array in zip(ours, theirs):
        if array.dtype != np.float32:
            continue
        wide = array.astype(np.float64)
        # Written so that NaN differs from everything.
        if not abs(mine - wide.sum()) <= 1e-4 * np.abs(wide).sum():
            sys.exit(f"{case}: the sum of an output is {mine}, of ONNX Runtime {wide.sum()}")


class Ours:
    """Our engine, in a process of its own."""

    def __init__(self, worker, path, threads, inputs, values):
        words = [f"{name}={'x'.join(map(str, shape))}{values.get(name, '')}" for name, shape in inputs.items()]
        command = [worker, path, str(threads), *words]
        environment = {**os.environ, "SIMULCAST_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("our engine has ended")
        return answer.split()

    def turn(self, seconds):
        return int(self.ask(seconds)[0]) / 1e9

    def sums(self):
        return [float(word) for word in self.ask("show")[1::2]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """ONNX Runtime."""

    def __init__(self, path, threads, inputs, values):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feeds = {}
        for own in self.session.get_inputs():
            dtype = np.int64 if own.type == "tensor(int64)" else np.float32
            array = numbers(inputs[own.name])
            if own.name in values:
                array = np.full(inputs[own.name], float(values[own.name][1:]))
            self.feeds[own.name] = array.astype(dtype)

    def turn(self, seconds):
        begun, least, calls = time.perf_counter(), 1e9, 0
        while calls < 3 or time.perf_counter() - begun < seconds:
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            least = min(least, time.perf_counter() - start)
            calls += 1
        return least

    def close(self):
        pass


def bound(nbytes, seconds):
    """How long it takes to read so many bytes: half as long as to copy them."""
    source = np.ones(nbytes // 4, np.float32)
    target = np.empty_like(source)
    begun, least, calls = time.perf_counter(), 1e9, 0
    while calls < 5 or time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        np.copyto(target, source)
        least = min(least, time.perf_counter() - start)
        calls += 1
    return least / 2


def shown(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def measured(case, args):
    name, made, inputs, nbytes = case
    values = {"dets": "@3"}
    values = {key: value for key, value in values.items() if key in inputs}
    with tempfile.TemporaryDirectory() as folder:
        path = made
        if not isinstance(made, Path):
            path = Path(folder) / "model.onnx"
            onnx.save(made, path)
        engines = [Ours(args.worker, path, args.threads, inputs, values), Theirs(path, args.threads, inputs, values)]
        ours, theirs = engines
        agree(name, ours.sums(), theirs.session.run(None, theirs.feeds))
        turns = []
        for _ in range(args.rounds):
            turns.append([engine.turn(args.seconds) for engine in engines])
        for engine in engines:
            engine.close()
    ours, theirs = (statistics.median(column) for column in zip(*turns))
    ratio = statistics.median(mine / other for mine, other in turns)
    return [name, shown(ours), shown(theirs), f"{ratio:.2f}", shown(bound(nbytes, args.seconds)) if nbytes else ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="of a turn")
    parser.add_argument("--case", default="*")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--models", type=Path, default=Path("target/models/models"))
    args = parser.parse_args()
    heads = ["case", "simulcast", f"onnxruntime {onnxruntime.__version__}", "ratio", "bytes of B"]
    lines = ["| " + " | ".join(heads) + " |", "|---|--:|--:|--:|--:|"]
    print("\n".join(lines))
    for case in [*products(), *chains(), *transformer(args.models)]:
        if fnmatch.fnmatch(case[0], args.case):
            lines.append("| " + " | ".join(measured(case, args)) + " |")
            print(lines[-1], flush=True)
    if args.page:
        threads = "1 thread" if args.threads == 1 else f"{args.threads} threads"
        intro = [
            "# ONNX models beside ONNX Runtime",
            "",
            f"`cargo xtask bench onnx`, {threads}, {platform.machine()}, {os.cpu_count()} processors. Both run the same file in turns in",
            "one run, each until the turn is over; the shortest call of a turn counts, and the median of the turns. The ratio is",
            "our time over theirs, below 1 ours is faster. *bytes of B*: how long it takes to read the matrix once, half the",
            "time of copying it; the weights of a case come from the caches where they fit there, for both.",
            "",
        ]
        args.page.write_text("\n".join([*intro, *lines, ""]))


if __name__ == "__main__":
    main()
