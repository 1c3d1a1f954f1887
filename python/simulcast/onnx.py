"""ONNX models: run, every broadcast in them checked, shapes written back, and legacy ones upgraded.

>>> import numpy as np, simulcast.onnx
>>> session = simulcast.onnx.Session("loss.onnx")  # doctest: +SKIP
>>> session.run({"pred": np.ones((4, 1), np.float32), "target": np.ones(4, np.float32)})  # doctest: +SKIP
>>> print(simulcast.onnx.check("loss.onnx", deny=["SC110"]))  # doctest: +SKIP

A model is a path, its bytes, or an `onnx.ModelProto`. `Backend` is the interface of `onnx.backend.base`; it needs
the package `onnx`, the rest does not. What there is no code for is named before anything runs. Arrays of `bfloat16`,
float8, float4 and of less than 8 bits are those of the package `ml_dtypes`; without it the last three are codes, one in
each byte of an array of `uint8`.
"""

from __future__ import annotations

import json as _json
import os as _os
import tempfile as _tempfile
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import TYPE_CHECKING
from typing import Any as _Any

import numpy as _np

from ._inputs import plain as _plain
from ._simulcast import OnnxCheck as _OnnxCheck
from ._simulcast import OnnxSession as _OnnxSession
from ._simulcast import onnx_infer as _infer
from ._simulcast import onnx_upgrade as _upgrade

if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from ._onnx_backend import Backend, BackendRep

    class _Proto(Protocol):
        """A message of the package `onnx`, which is not needed here."""

        def SerializeToString(self) -> bytes: ...

    _Model: TypeAlias = str | _os.PathLike[str] | bytes | bytearray | memoryview | _Proto
    _Array: TypeAlias = NDArray[_Any]
    _Made: TypeAlias = tuple[bytes | str, int | None, int | None]

__all__ = [
    "Backend",
    "BackendRep",
    "Check",
    "Inferred",
    "ModelError",
    "Session",
    "UnsupportedError",
    "check",
    "infer",
    "upgrade",
]


class ModelError(ValueError):
    """A model that is none, or that cannot work on its inputs."""


class UnsupportedError(ModelError, NotImplementedError):
    """A model with nodes or types that there is no code for."""


def _source(model: _Model) -> bytes | str | _os.PathLike[str]:
    """What the extension loads: bytes, or a path."""
    if isinstance(model, (bytes, str, _os.PathLike)):
        return model
    if isinstance(model, (bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")


class Session:
    """A model that is ready to run.

    It pickles as the bytes of its model, with its options; one whose data are in other files, as its path.
    """

    def __init__(self, model: _Model, *, threads: int | None = None, limit: int | None = None) -> None:
        source = _source(model)
        self._session = _OnnxSession(source, threads, limit)
        if not isinstance(source, bytes):
            # It is read again only to be pickled: until then the bytes would be in memory for nothing.
            source = _os.path.abspath(_os.fspath(source))
            self._read = _version(source)
        self._made: _Made = source, threads, limit

    def __reduce__(self) -> tuple[_Any, ...]:
        source, *options = self._made
        if not isinstance(source, bytes):
            source = self._file(source, *options)
        return _session, (type(self), source, *options)

    def _file(self, path: str, threads: int | None, limit: int | None) -> bytes | str:
        """The bytes of the file that the model was read from, or its path where they are not all of it."""
        with open(path, "rb") as file:
            source = file.read()
        if _version(path) != self._read:
            raise ModelError(f"{path} was changed since the session was made of it")
        try:
            _OnnxSession(source, threads, limit)
        except ModelError:
            return path
        return source

    def __deepcopy__(self, memo: dict[int, _Any]) -> Session:
        # Nothing of it changes.
        return self

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(self._session.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(self._session.outputs)

    @property
    def fused(self) -> tuple[int, ...]:
        """How many nodes each program computes: chains of element-wise nodes are one."""
        return tuple(self._session.fused)

    def run(
        self,
        inputs: _Mapping[str, ArrayLike] | _Iterable[tuple[str, ArrayLike]],
        *,
        out: dict[str, _Array] | None = None,
    ) -> dict[str, _Array]:
        """The outputs by name, for arrays by name; those that `out` names are written into its arrays."""
        if not isinstance(inputs, dict):
            try:
                inputs = dict(inputs)
            except (TypeError, ValueError):
                raise TypeError(f"inputs are arrays by name, not {type(inputs).__name__}") from None
        return self._session.run(inputs, out)


def _session(kind: type[Session], model: bytes | str, threads: int | None, limit: int | None) -> Session:
    return kind(model, threads=threads, limit=limit)


def _version(path: str) -> tuple[int, int, int]:
    """What tells a file from what it is after somebody wrote to it."""
    status = _os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


# The names of ml_dtypes, and those of ONNX.
_ELEMENTS = {
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
    "float4_e2m1fn": "float4e2m1",
    "uint4": "uint4",
    "int4": "int4",
    "uint2": "uint2",
    "int2": "int2",
}


# The extension calls these three for what is rare; arrays of numbers never come here.


def _input(name: str, value: ArrayLike, declared: str | None) -> _Array:
    """An input as an array; one of a type that nothing computes with, as its codes."""
    array: _Array = _plain(value)
    element = _ELEMENTS.get(array.dtype.name)
    if element is None:
        return array
    if declared not in (None, element):
        raise ModelError(f"the input {name!r} is {declared}, not {element}")
    return array.view(_np.uint8)


def _numbers(codes: _Array, element: str) -> _Array:
    """Codes as an array of their type, where there is a package that has it."""
    try:
        import ml_dtypes
    except ImportError:
        return codes
    name = next(name for name, own in _ELEMENTS.items() if own == element)
    own = getattr(ml_dtypes, name, None)
    return codes if own is None else codes.view(own)


def _text(words: list[str], shape: list[int]) -> _Array:
    return _np.array(words, dtype=object).reshape(shape)


class Check:
    """What a check of a model found."""

    def __init__(self, found: _OnnxCheck) -> None:
        self._found = found

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong, and nothing was found that was denied."""
        return not self._found.errors

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong, a line each."""
        return tuple(self._found.errors)

    def to_dict(self) -> dict[str, _Any]:
        """Everything that was found: nodes, operands, shapes, findings, constraints."""
        found: dict[str, _Any] = _json.loads(self._found.json())
        return found

    def html(self, title: str = "model") -> str:
        """A page with a picture of each broadcast."""
        return self._found.html(title)

    to_html = html

    def __str__(self) -> str:
        return str(self._found)

    __repr__ = __str__


def check(
    model: _Model,
    *,
    sizes: _Mapping[str, int] | None = None,
    allow: str | _Iterable[str] = (),
    deny: str | _Iterable[str] = (),
) -> Check:
    """Checks every broadcast of a model, with sizes for some of its symbols.

    `allow` and `deny` name findings by their codes: one, or several.
    """
    allowed, denied = ([codes] if isinstance(codes, str) else list(codes) for codes in (allow, deny))
    return Check(_OnnxCheck(_source(model), dict(sizes or {}), allowed, denied))


class Inferred:
    """A model with its inferred shapes."""

    def __init__(self, made: bytes, report: dict[str, _Any], errors: _Iterable[str]) -> None:
        self.bytes = made
        self.report = report
        self.errors = tuple(errors)

    def __bytes__(self) -> bytes:
        return self.bytes

    @property
    def model(self) -> _Any:
        """The model as an `onnx.ModelProto`; this needs the package `onnx`."""
        import onnx

        return onnx.load_from_string(self.bytes)

    def save(self, path: str | _os.PathLike[str]) -> None:
        """Writes the model to a file, which gets its name when it is whole."""
        path = _os.fspath(path)
        handle, temporary = _tempfile.mkstemp(dir=_os.path.dirname(path) or ".", prefix=".simulcast-")
        try:
            with open(handle, "wb") as file:
                file.write(self.bytes)
            umask = _os.umask(0)
            _os.umask(umask)
            _os.chmod(temporary, 0o666 & ~umask)
            _os.replace(temporary, path)
        except BaseException:
            _os.unlink(temporary)
            raise

    def __repr__(self) -> str:
        results = self.report["results"]
        counts = ", ".join(f"{name} {count}" for name, count in results.items())
        return f"<Inferred: {counts}; {len(self.errors)} errors>"


def infer(model: _Model, *, sizes: _Mapping[str, int] | None = None, trust_names: bool = True) -> Inferred:
    """A model with its inferred shapes written into it; everything else stays as it is, byte for byte.

    `sizes` binds symbols, in the inputs too. With `trust_names=False` equal names of sizes do not mean equal sizes.
    What is wrong with the model is in `errors`; results of nodes that cannot work have no shapes.

    >>> simulcast.onnx.infer("loss.onnx").save("annotated.onnx")  # doctest: +SKIP
    """
    made, report, errors = _infer(_source(model), dict(sizes or {}), trust_names)
    return Inferred(made, _json.loads(report), errors)


def upgrade(model: _Model) -> bytes:
    """The bytes of a model of opset 1 to 6, rewritten for opset 7: `broadcast` and `axis` become NumPy's rule."""
    return _upgrade(_source(model))


def __getattr__(name: str) -> _Any:
    # The package onnx is asked for only where its interface is.
    if name in ("Backend", "BackendRep"):
        from . import _onnx_backend

        return getattr(_onnx_backend, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
