"""ONNX models: run, and every broadcast in them checked.

>>> import numpy as np, simulcast.onnx
>>> session = simulcast.onnx.Session("loss.onnx")  # doctest: +SKIP
>>> session.run({"pred": np.ones((4, 1), np.float32), "target": np.ones(4, np.float32)})  # doctest: +SKIP
>>> print(simulcast.onnx.check("loss.onnx", deny=["SC110"]))  # doctest: +SKIP

A model is a path, its bytes, or an `onnx.ModelProto`. `Backend` is the interface of `onnx.backend.base`; it needs
the package `onnx`, the rest does not. What there is no code for is named before anything runs.
"""

import json as _json
import os as _os

import numpy as _np

from ._simulcast import OnnxCheck as _OnnxCheck
from ._simulcast import OnnxSession as _OnnxSession

__all__ = ["Backend", "BackendRep", "Check", "ModelError", "Session", "UnsupportedError", "check"]


class ModelError(ValueError):
    """A model that is none, or that cannot work on its inputs."""


class UnsupportedError(ModelError, NotImplementedError):
    """A model with nodes or types that there is no code for."""


def _source(model):
    """What the extension loads: bytes, or a path."""
    if isinstance(model, (bytes, str, _os.PathLike)):
        return model
    if isinstance(model, (bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")


class Session:
    """A model that is ready to run."""

    def __init__(self, model, *, threads=None, limit=None):
        self._session = _OnnxSession(_source(model), threads, limit)

    @property
    def inputs(self):
        """The names of the inputs."""
        return tuple(self._session.inputs)

    @property
    def outputs(self):
        """The names of the outputs."""
        return tuple(self._session.outputs)

    @property
    def fused(self):
        """How many nodes each program computes: chains of element-wise nodes are one."""
        return tuple(self._session.fused)

    def run(self, inputs, *, out=None):
        """The outputs by name, for arrays by name; those that `out` names are written into its arrays."""
        arrays = {name: _np.asarray(array) for name, array in inputs.items()}
        return dict(zip(self.outputs, map(_array, self._session.run(arrays, out))))


def _array(result):
    if isinstance(result, tuple):
        words, shape = result
        return _np.array(words, dtype=object).reshape(shape)
    return _np.asarray(result)


class Check:
    """What a check of a model found."""

    def __init__(self, found):
        self._found = found

    @property
    def ok(self):
        """Whether nothing is wrong, and nothing was found that was denied."""
        return not self._found.errors

    @property
    def errors(self):
        """What is wrong, a line each."""
        return tuple(self._found.errors)

    def to_dict(self):
        """Everything that was found: nodes, operands, shapes, findings, constraints."""
        return _json.loads(self._found.json())

    def to_html(self, title="model"):
        """A page with a picture of each broadcast."""
        return self._found.html(title)

    def __str__(self):
        return str(self._found)


def check(model, *, sizes=None, allow=(), deny=()):
    """Checks every broadcast of a model, with sizes for some of its symbols.

    `allow` and `deny` name findings by their codes.
    """
    return Check(_OnnxCheck(_source(model), dict(sizes or {}), list(allow), list(deny)))


def __getattr__(name):
    # The package onnx is asked for only where its interface is.
    if name in ("Backend", "BackendRep"):
        from . import _onnx_backend

        return getattr(_onnx_backend, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
