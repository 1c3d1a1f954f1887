"""A program of `simulcast.onnx` that passes strict checks of types."""

import numpy as np
from simulcast import onnx

session = onnx.Session("model.onnx", threads=2, limit=1 << 30)
names: tuple[str, ...] = session.inputs + session.outputs
fused: tuple[int, ...] = session.fused
for _name, result in session.run({"x": np.ones(3, np.float32)}, out={"y": np.empty(3)}).items():
    size: int = result.size
found = onnx.check("model.onnx", sizes={"N": 3}, allow="SC103", deny=["SC110"])
ok: bool = found.ok
errors: tuple[str, ...] = found.errors
page: str = found.html("model")
nodes = found.to_dict()["schema"]
upgraded: bytes = onnx.upgrade(b"")
wrong: type[ValueError] = onnx.ModelError
missing: type[NotImplementedError] = onnx.UnsupportedError
