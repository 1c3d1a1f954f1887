"""`onnx.backend.base.Backend`, over `simulcast.onnx.Session`."""

import numpy as np
import onnx
import onnx.backend.base
from onnx import helper

from .onnx import Session


class BackendRep(onnx.backend.base.BackendRep):
    """A model that is ready to run, with its inputs in order."""

    def __init__(self, session):
        self.session = session

    def run(self, inputs, **kwargs):
        """The outputs in order, for inputs in order or by name."""
        if not isinstance(inputs, dict):
            if isinstance(inputs, np.ndarray) or np.isscalar(inputs):
                inputs = [inputs]
            inputs = dict(zip(self.session.inputs, inputs))
        return tuple(self.session.run(inputs).values())


class Backend(onnx.backend.base.Backend):
    """ONNX models on the CPU."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        """Makes a model ready to run."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}, only CPU")
        return BackendRep(Session(model, threads=kwargs.get("threads")))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """The outputs of a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **kwargs):
        """The outputs of a node on arrays."""
        arrays = [np.asarray(array) for array in inputs]
        names = [name for name in node.input if name]
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", values, results)
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return cls.run_model(model, dict(zip(names, arrays)), device, **kwargs)

    @classmethod
    def supports_device(cls, device):
        """Whether it runs on that device: on the CPU alone."""
        return device.split(":")[0] == "CPU"
