"""JSON: what the command and `to_dict` give are documents of the published schemas."""

import json
import random
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import simulcast

ROOT = Path(__file__).parents[2]
SCHEMAS = {path.name: json.loads(path.read_text()) for path in (ROOT / "docs/reference/schemas").glob("*.schema.json")}
REGISTRY: Registry[Any] = Registry().with_resources((name, Resource.from_contents(s)) for name, s in SCHEMAS.items())
COMMAND = str(Path(sysconfig.get_path("scripts")) / "simulcast")
LOSS = "crates/simulcast-onnx/models/loss.onnx"
ONNX_INPUTS = [
    "x=ones(2,8, dtype=float32)",
    "weight=full((8,1), 0.125, dtype=float32)",
    "target=array([1,2], dtype=float32)",
]

CALLS = [
    ("explain", ["explain", "8,1,6,1", "7,1,5"]),
    ("explain", ["explain", "image:2,3,4", "mask:2,4"]),
    ("explain", ["explain", "pred:32,1", "target:32"]),
    ("explain", ["explain", "N,3,H,W", "M,1,1,4"]),
    ("explain", ["explain", "2..8,3", "?,1", "..."]),
    ("explain", ["explain", "N@2..8", "1"]),
    ("explain", ["explain", "h=2,w=3", "w=4", "--rule", "named"]),
    ("explain", ["explain", "--rule", "axes:2,3/0", "3"]),
    ("explain", ["explain", "--rule", "pdpd:3", "2,3", "3"]),
    ("explain", ["explain", "--rule", "mapping:2,3/1,1", "3,3"]),
    ("explain", ["explain", "--rule", "exact", "2", "2,1"]),
    ("explain", ["explain", "9223372036854775807,9223372036854775807", "1"]),
    ("explain", ["explain", "0,1", "3"]),
    ("shape", ["shape", "2,3", "3"]),
    ("shape", ["shape", "2,3", "4"]),
    ("shape", ["shape", "N,3", "M,1"]),
    ("eval", ["eval", "a * b + 1", "a=(2,3)", "b=[10,20,30]", "--explain", "--time"]),
    ("eval", ["eval", "x + exp(sin(r)) * tanh(r)", "x=rand(300,300)", "r=rand(300)", "--explain"]),
    ("eval", ["eval", "a * b; sum(a)", "a=(2,3)", "b=[10,20,30]", "--explain", "--time"]),
    ("eval", ["eval", "a; a + 'b'", "a=['c']"]),
    ("eval", ["eval", "a - b; a", "a=rand(100,100)", "b=2"]),
    ("eval", ["eval", "a; a + b", "a=(2,3)", "b=[1,2]"]),
    ("eval", ["eval", "a + b", "a=(2,3)", "b=[1,2]"]),
    ("eval", ["eval", "(a +", "a=1"]),
    ("eval", ["eval", "a / 0", "a=[1.5, nan]"]),
    ("eval", ["eval", "a", "a=rand(100,100)"]),
    ("eval", ["eval", "a == a", "a=(2,0)"]),
    ("onnx-check", ["onnx", "check", LOSS]),
    ("onnx-check", ["onnx", "check", LOSS, "--set", "batch=32", "--deny", "SC110"]),
    ("onnx-check", ["onnx", "check", "crates/simulcast-onnx/models/clash.onnx"]),
    ("onnx-run", ["onnx", "run", LOSS, "--time", *(f"--input={word}" for word in ONNX_INPUTS)]),
]


def hold(name: str, document: Any) -> None:
    validator = Draft202012Validator(SCHEMAS[f"{name}.schema.json"], registry=REGISTRY)
    errors = sorted(validator.iter_errors(document), key=lambda error: error.json_path)
    assert not errors, f"{errors[0].json_path}: {errors[0].message}\n{json.dumps(document)[:2000]}"


def run(*words: str, text: str | None = None) -> list[Any]:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, cwd=ROOT, timeout=60, input=text)
    assert done.returncode in (0, 1, 2), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize(
    ("name", "words"), CALLS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_a_call_prints_what_its_schema_says(name: str, words: list[str]) -> None:
    (document,) = run(*words, "--json")
    hold(name, document)
    # A schema that takes anything would pass too.
    for key in ("schema", *(key for key in ("rule", "error", "shape", "results") if key in document)):
        with pytest.raises(AssertionError):
            hold(
                name,
                {own: value for own, value in document.items() if own != key}
                if key != "schema"
                else {**document, "schema": 2},
            )
    with pytest.raises(AssertionError):
        hold(name, {**document, "unheard_of": 1})


def test_every_line_of_jsonl_is_described() -> None:
    lines = [
        {"rule": "numpy", "shapes": [[2, 1], [3]]},
        {"rule": "numpy", "shapes": [[2], [3]]},
        {"rule": "pdpd", "axis": 7, "shapes": [[2, 3], [3]]},
        {"rule": "numpy", "shapes": [["N", 1], ["2..8"]]},
        {"rule": "nothing", "shapes": []},
        {"rule": "numpy", "shapes": [[-1]]},
        [],
    ]
    documents = run("shape", "--jsonl", text="".join(json.dumps(line) + "\n" for line in lines))
    assert len(documents) == len(lines)
    for document in documents:
        hold("shape", document)


def test_random_explanations_are_described() -> None:
    draw = random.Random(7)
    rules = [
        "numpy",
        "exact",
        "unidirectional",
        "pdpd",
        "pdpd:1",
        "legacy",
        "paddle:0",
        "to:2,3",
        "bidirectional:3,1",
        "axes:2,3/1",
    ]
    kinds = set()
    for _ in range(2000):
        shapes = [
            ",".join(
                draw.choice(["0", "1", "2", "3", "N", "M", "?", "1..3"][: draw.choice([4, 8])])
                for _ in range(draw.randint(0, 4))
            )
            or "()"
            for _ in range(draw.randint(1, 3))
        ]
        document = simulcast.explain(*shapes, rule=draw.choice(rules)).to_dict()
        kinds.add("error" if "error" in document else "cost" if "cost" in document else "constraints")
        hold("explain", json.loads(json.dumps(document)))
    assert kinds == {"error", "cost", "constraints"}
