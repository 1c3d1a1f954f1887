"""The element types that the inputs of ONNX's operators take, by opset: from the schemas of the `onnx` package.

A line is `NAME VERSION...`, in the order of names; a version is `OPSET:TYPES,TYPES`: the types of the first inputs
since that opset, of which the last holds for all after it: a number in hexadecimal, in which bit k stands for the
element type with ONNX's number k.

    python conformance/record/operator_types.py > crates/simulcast-onnx/src/operators/types.txt
"""

import collections
import re
import sys
from pathlib import Path

from onnx import TensorProto, defs

CODES = {f"tensor({name.lower()})": code for name, code in TensorProto.DataType.items()}
# Domains, and the titles of their tables.
DOMAINS = {"": "The standard domain", "ai.onnx.ml": "ai.onnx.ml"}
# The operators that are known: the others are no rows of the table.
PAGE = Path(__file__).parents[2] / "docs/reference/onnx-operators.md"


def mask(types):
    return sum(1 << code for name, code in CODES.items() if name in types)


def versions():
    """Each operator with its versions: the first opset, and the types of its inputs."""
    found = collections.defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            name = f"{schema.domain}.{schema.name}".lstrip(".")
            masks = [mask(own.types) for own in schema.inputs]
            found[name].append((schema.since_version, masks))
    return found


def sequence(own):
    parts, last = [], None
    for since, masks in sorted(own):
        while len(masks) > 1 and masks[-1] == masks[-2]:
            masks.pop()
        if masks and masks != last:
            parts.append(f"{since}:{','.join(f'{one:x}' for one in masks)}")
            last = masks
    return " ".join(parts)


def main():
    rows = set()
    for domain, title in DOMAINS.items():
        table = PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        rows |= {f"{domain}.{name}".lstrip(".") for name in re.findall(r"^\| `(\w+)`", table, re.MULTILINE)}
    for name, own in sorted(versions().items()):
        types = sequence(own)
        if types and name in rows:
            print(name, types)


if __name__ == "__main__":
    sys.exit(main())
