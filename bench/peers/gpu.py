"""The cases of ../gpu.json on a GPU: ours from Python beside PyTorch, torch.compile, CuPy and JAX (see ../README.md).

    python3 gpu.py --json FILE [--rust FILE] [--table FILE] [--plot FILE] [--case PART] [--engine NAME] [--seconds N]

Shares are those of a device-to-device copy of the same run, of the bytes that must move: each stored operand read once,
the result written once. `--rust` adds what the benchmark of simulcast-cuda wrote, `--table` writes all as Markdown, and `--plot` as a
picture.
An engine that fails at a case is left out there. After `--seconds` no further case is begun.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

CASES = json.loads((pathlib.Path(__file__).parent.parent / "gpu.json").read_text())
SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i8": 1, "u8": 1, "i64": 8, "bool": 1}
TITLES = {
    "simulcast-rust": "simulcast (Rust)", "simulcast-python": "simulcast (Python)", "torch": "PyTorch eager",
    "torch-compile": "torch.compile", "cupy": "CuPy", "jax": "jax.jit",
}


def types(case):
    return case.get("types", [case["type"]] * len(case["shapes"]))


def seen(case, first):
    """The first operand as the case looks at it."""
    return first.T if case.get("transposed") else first


def axes_of(case):
    (shape, *_), result = case["shapes"], case["result"]
    lead = len(shape) - len(result)
    return tuple(k for k, size in enumerate(shape) if k < lead or result[k - lead] != size)


def function(case, module, extra):
    names = {name: getattr(module, name) for name in ("exp", "log", "sin", "tanh", "where", "sum", "mean") if hasattr(module, name)}
    names.update(extra)
    return eval(f"lambda {', '.join('abcde'[:len(case['shapes'])])}: {case['op']}", names)


class Torch:
    """Arrays of PyTorch, which most engines take."""

    def __init__(self):
        import torch

        self.torch = torch
        self.kinds = {
            "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
            "u8": torch.uint8, "i64": torch.int64, "bool": torch.bool,
        }

    def arrays(self, case):
        torch, made = self.torch, []
        for kind, shape in zip(types(case), case["shapes"]):
            numbers = torch.rand(shape, device="cuda") * 6 + 0.0625
            made.append((numbers * 16 % 3 < 1) if kind == "bool" else numbers.to(self.kinds[kind]))
        return made

    def copy_rate(self):
        x, y = (self.torch.empty(1 << 29, device="cuda") for _ in "ab")
        return 2 * (1 << 31) / self.seconds(lambda: y.copy_(x))

    def seconds(self, call):
        """The median seconds of one of many calls, by the device's clock."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in "ab")

        def timed(count):
            start.record()
            for _ in range(count):
                call()
            end.record()
            end.synchronize()
            return start.elapsed_time(end) / 1000 / count

        timed(2)
        count = max(3, min(500, int(0.012 / timed(2))))
        return statistics.median(timed(count) for _ in range(5))


def engines(case, arrays, base):
    """For each engine a function that makes its call, or None where it has none for the case."""
    torch, op = base.torch, case["op"]

    def of_torch(compiled):
        own = list(arrays)
        own[0] = seen(case, own[0])
        if case.get("backwards"):
            return None
        if op == "copy":
            shape = case["result"]
            call = lambda a: a.expand(shape).contiguous() if not case.get("transposed") else a.contiguous()
        elif op == "sum_to":
            axes, result = axes_of(case), case["result"]
            call = lambda a: a.sum(axes).reshape(result)
        else:
            call = function(case, torch, {})
        if compiled:
            call = torch.compile(call, dynamic=False)
        if "wrt" in case:
            own = [x.detach().requires_grad_(name in case["wrt"]) for name, x in zip("abcde", own)]
            wrt = [x for x in own if x.requires_grad]

            def value_and_gradients():
                value = call(*own)
                torch.autograd.grad(value, wrt)
                return value

            return value_and_gradients
        return lambda: call(*own)

    def ours():
        import simulcast

        own = list(arrays)
        own[0] = seen(case, own[0])
        if case.get("backwards"):
            return None
        if op == "copy":
            return lambda: simulcast.broadcast_to(own[0], case["result"])
        if op == "sum_to":
            return lambda: simulcast.sum_to(own[0], case["result"])
        names = dict(zip("abcde", own))
        if "wrt" in case:
            loss = simulcast.value_and_grad(op, wrt=case["wrt"])
            return lambda: loss(**names)[0]
        expression = simulcast.compile(op)
        return lambda: expression(**names)

    def of_cupy():
        import cupy

        if "bf16" in types(case) or "wrt" in case:
            return None
        own = [cupy.from_dlpack(x) for x in arrays]
        own[0] = seen(case, own[0])
        if case.get("backwards"):
            own[0] = own[0][..., ::-1]
        if op == "copy":
            shape = tuple(case["result"])
            return lambda: cupy.ascontiguousarray(cupy.broadcast_to(own[0], shape))
        if op == "sum_to":
            axes = axes_of(case)
            return lambda: own[0].sum(axis=axes)
        call = function(case, cupy, {})
        if "sum" not in op and "mean" not in op:
            fused = cupy.fuse(call)
            try:
                fused(*own)
            except cupy.cuda.compiler.CompileException:
                # It cannot compile its own kernel here: operation by operation, then.
                fused = call
            call = fused
        return lambda: call(*own)

    def of_jax():
        import jax

        jax.config.update("jax_enable_x64", True)
        own = [jax.dlpack.from_dlpack(x) for x in arrays]
        extra = {name: getattr(jax.numpy, name) for name in ("exp", "log", "sin", "tanh", "where", "sum", "mean")}
        if op == "copy":
            shape = tuple(case["result"])
            if case.get("transposed"):
                call = jax.jit(lambda a: a.T + 0)
            else:
                call = jax.jit(lambda a: jax.numpy.broadcast_to(a, shape))
        elif op == "sum_to":
            axes, shape = axes_of(case), tuple(case["result"])
            call = jax.jit(lambda a: a.sum(axis=axes).reshape(shape))
        elif "wrt" in case:
            places = ["abcde".index(name) for name in case["wrt"]]
            both = jax.jit(jax.value_and_grad(function(case, jax.numpy, extra), argnums=places))
            return lambda: both(*own)[0]
        else:
            inner = function(case, jax.numpy, extra)
            turned, back = case.get("transposed"), case.get("backwards")
            first = (lambda a: a.T) if turned else (lambda a: a[..., ::-1]) if back else (lambda a: a)
            call = jax.jit(lambda a, *rest: inner(first(a), *rest))
        return lambda: call(*own)

    return {
        "simulcast-python": ours, "torch": lambda: of_torch(False), "torch-compile": lambda: of_torch(True),
        "cupy": of_cupy, "jax": of_jax,
    }


def device_seconds(name, call, base):
    if name == "jax":
        import jax

        def timed(count):
            start = time.perf_counter()
            for _ in range(count):
                made = call()
            jax.block_until_ready(made)
            return (time.perf_counter() - start) / count

        timed(2)
        count = max(3, min(500, int(0.02 / timed(2))))
        return statistics.median(timed(count) for _ in range(5))
    # CuPy works on the default stream, as PyTorch does.
    return base.seconds(call)


def call_seconds(call, base):
    """The median seconds of a call until it returns, by the host's clock."""
    for _ in range(50):
        call()
    times = []
    for _ in range(25):
        base.torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            call()
        times.append((time.perf_counter() - start) / 200)
    return statistics.median(times)


def moved(case, arrays, result_shape):
    gives = case.get("gives", case["type"])
    read = sum(x.numel() * x.element_size() for x in arrays)
    return read + math.prod(result_shape) * SIZES[gives]


def measure(options, lines, sink):
    base, begin = Torch(), time.perf_counter()
    copy = base.copy_rate()
    print(f"{base.torch.cuda.get_device_name()}: a copy moves {copy / 1e12:.3f} TB/s", flush=True)
    for case in CASES:
        if options.case not in case["name"]:
            continue
        if time.perf_counter() - begin > options.seconds:
            print(f"no time for {case['name']} and those after it")
            break
        kind, said = case.get("kind", "large"), []
        arrays = base.arrays(case)
        for name, make in engines(case, arrays, base).items():
            if options.engine not in name:
                continue
            try:
                call = make()
                if call is None:
                    continue
                shape = tuple(call().shape)
                line = {"engine": name, "case": case["name"], "copy": copy, "bytes": moved(case, arrays, shape)}
                line["seconds"] = device_seconds(name, call, base)
                if kind == "small":
                    line["call_seconds"] = call_seconds(call, base)
            except Exception as error:
                said.append(f"{name} fails ({type(error).__name__}: {str(error)[:80]})")
                continue
            finally:
                call = None
            lines.append(line)
            sink.write(json.dumps(line) + "\n")
            sink.flush()
            own = line.get("call_seconds")
            said.append(f"{name} " + (f"{own * 1e6:.1f} µs" if own else f"{share(line):.0%}"))
        print(f"{case['name']}: " + ", ".join(said), flush=True)
        del arrays
        base.torch._dynamo.reset()
        base.torch.cuda.empty_cache()
    # What PyTorch's own call of one operation costs.
    x, y = base.torch.rand(64, device="cuda"), base.torch.rand(64, device="cuda")
    added = {"engine": "torch.add", "case": "small_64", "call_seconds": call_seconds(lambda: base.torch.add(x, y), base)}
    if "simulcast" in options.engine or not options.engine:
        import simulcast

        line = {"engine": "simulcast.add", "case": "small_64"}
        line["call_seconds"] = call_seconds(lambda: simulcast.add(x, y), base)
        lines.append(line)
        sink.write(json.dumps(line) + "\n")
        print(f"simulcast.add {line['call_seconds'] * 1e6:.2f} µs")
    lines.append(added)
    sink.write(json.dumps(added) + "\n")
    print(f"torch.add {added['call_seconds'] * 1e6:.2f} µs")


def share(line):
    return line["bytes"] / line["seconds"] / line["copy"]


def mean(shares):
    return math.exp(statistics.fmean(map(math.log, shares))) if shares else float("nan")


def table(lines):
    """All of it as Markdown."""
    known = {(line["engine"], line["case"]): line for line in lines if "case" in line}
    names = [name for name in TITLES if any(engine == name for engine, _ in known)]
    text = ["| case | expression | " + " | ".join(TITLES[name] for name in names) + " |"]
    text.append("|---|---|" + "--:|" * len(names))
    shares = {name: {} for name in names}
    for case in CASES:
        own = [known.get((name, case["name"])) for name in names]
        if case.get("kind", "large") != "large" or not any(own):
            continue
        cells = []
        for name, line in zip(names, own):
            if line:
                shares[name][case["name"]] = share(line)
            cells.append(f"{share(line):.0%}" if line else "")
        text.append(f"| {case['name']} | `{case['op'].replace('|', '/')}` | " + " | ".join(cells) + " |")
    text.append("| geometric mean | | " + " | ".join(f"{mean(list(shares[name].values())):.0%}" for name in names) + " |")
    text += ["", "| case | " + " | ".join(TITLES[name] for name in names) + " |", "|---|" + "--:|" * len(names)]
    for case in CASES:
        own = [known.get((name, case["name"])) for name in names]
        if case.get("kind") == "small" and any(own):
            cells = [f"{line['call_seconds'] * 1e6:.1f} µs" if line and "call_seconds" in line else "" for line in own]
            text.append(f"| {case['name']} | " + " | ".join(cells) + " |")
    extra = [f"`{e}` {known[e, 'small_64']['call_seconds'] * 1e6:.1f} µs" for e in ("simulcast.add", "torch.add") if (e, "small_64") in known]
    first = [line["first_call_ms"] for line in lines if "first_call_ms" in line]
    if extra:
        text += ["", "A call on 64 elements: " + ", ".join(extra) + "."]
    if first:
        text += ["", f"The first call of a new expression, from Rust: {first[0][0]:.1f} ms."]
    ours = [name for name in names if name.startswith("simulcast")]
    for name in ours:
        others = {c: max((shares[n][c] for n in names if n not in ours and c in shares[n]), default=0) for c in shares[name]}
        behind = [c for c, own in shares[name].items() if own < others[c] * 0.98]
        ties = [c for c, own in shares[name].items() if abs(own / (others[c] or 1) - 1) <= 0.02]
        text += ["", f"{TITLES[name]}: {len(shares[name])} large cases, behind the best peer on {', '.join(behind) or 'none'}; "
                 f"within 2% of it on {', '.join(ties) or 'none'}; below 95% of a copy on "
                 f"{', '.join(c for c, own in shares[name].items() if own < 0.95) or 'none'}."]
    return "\n".join(text) + "\n"


COLOURS = {
    "simulcast-rust": "#1f6f8b", "simulcast-python": "#5aa0b8", "torch": "#c9a26b", "torch-compile": "#a9762f",
    "cupy": "#8f8f8f", "jax": "#b07aa1",
}


def plot(lines):
    """The large cases as a picture: a dot for each engine, on a line from nothing to more than a copy."""
    known = {(line["engine"], line["case"]): share(line) for line in lines if "bytes" in line}
    cases = [case["name"] for case in CASES if case.get("kind", "large") == "large" and any(case["name"] == own for _, own in known)]
    left, width, step = 150, 640, 20
    height = 70 + step * len(cases)
    x = lambda value: left + width * min(value, 1.15) / 1.15
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{height}" font-family="sans-serif" font-size="11">',
            f'<rect width="{left + width + 20}" height="{height}" fill="white"/>',
            '<text x="10" y="18" font-size="13">Share of a device-to-device copy, further right is better: NVIDIA H200</text>']
    for at, (name, colour) in enumerate(COLOURS.items()):
        text.append(f'<circle cx="{16 + 130 * at}" cy="34" r="4" fill="{colour}"/><text x="{24 + 130 * at}" y="38">{TITLES[name]}</text>')
    for part in (25, 50, 75, 100):
        colour = "#444" if part == 100 else "#ddd"
        text.append(f'<line x1="{x(part / 100):.0f}" y1="58" x2="{x(part / 100):.0f}" y2="{height}" stroke="{colour}"/>'
                    f'<text x="{x(part / 100):.0f}" y="54" text-anchor="middle">{part}%</text>')
    for at, case in enumerate(cases):
        y = 70 + step * at
        text.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{case}</text>')
        # Ours last, so that they lie above the others.
        for name in reversed(COLOURS):
            if (name, case) in known:
                text.append(f'<circle cx="{x(known[name, case]):.0f}" cy="{y}" r="4" fill="{COLOURS[name]}"/>')
    return "\n".join([*text, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", default="gpu.jsonl")
    parser.add_argument("--rust")
    parser.add_argument("--table")
    parser.add_argument("--plot")
    parser.add_argument("--case", default="")
    parser.add_argument("--engine", default="")
    parser.add_argument("--seconds", type=float, default=3600)
    options = parser.parse_args()
    lines = []
    with open(options.json, "w") as sink:
        measure(options, lines, sink)
    if options.rust:
        lines += [json.loads(line) for line in open(options.rust)]
    if options.table:
        with open(options.table, "w") as file:
            file.write(table(lines))
    if options.plot:
        with open(options.plot, "w") as file:
            file.write(plot(lines))


if __name__ == "__main__":
    main()
