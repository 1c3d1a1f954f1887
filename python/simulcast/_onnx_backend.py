"""`onnx.backend.base.Backend`, over `simulcast.onnx.Session`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.backend.base
from onnx import helper

from .onnx import ModelError, Session, UnsupportedError


def _skipped(error: UnsupportedError) -> Exception:
    """The error as one that the runner of onnx's own tests takes for a skipped test, too."""
    from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

    class Unsupported(UnsupportedError, BackendIsNotSupposedToImplementIt):
        """A model with nodes or types that there is no code for."""

    Unsupported.__qualname__ = Unsupported.__name__ = "UnsupportedError"
    return Unsupported(str(error))


class BackendRep(onnx.backend.base.BackendRep):
    """A model that is ready to run, with its inputs in order."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in order, for inputs in order or by name."""
        if not isinstance(inputs, dict):
            if isinstance(inputs, np.ndarray) or np.isscalar(inputs):
                inputs = [inputs]
            names = self.session.inputs
            if len(inputs) > len(names):
                raise ModelError(f"{len(inputs)} inputs are given, and the model has {len(names)}: {', '.join(names)}")
            inputs = dict(zip(names, inputs))
        results = self.session.run(inputs)
        return tuple(results[name] for name in self.session.outputs)


class Backend(onnx.backend.base.Backend):
    """ONNX models on the CPU."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Makes a model ready to run."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}, only CPU")
        try:
            return BackendRep(Session(model, threads=kwargs.get("threads")))
        except UnsupportedError as error:
            raise _skipped(error) from None

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether there is code for every node of a model."""
        try:
            Session(model)
        except UnsupportedError:
            return False
        return cls.supports_device(device)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """The outputs of a node on arrays."""
        given = dict(zip([name for name in node.input if name], [own for own in inputs if own is not None]))
        if len(inputs) == len(node.input):
            # One for each, those without a name too.
            given = {name: own for name, own in zip(node.input, inputs) if name and own is not None}
        given = {name: np.asarray(own) for name, own in given.items()}
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", values, results)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return cls.run_model(model, given, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether it runs on that device: on the CPU alone."""
        return device.split(":")[0] == "CPU"
