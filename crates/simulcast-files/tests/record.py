"""Writes the files of tests/data with NumPy and safetensors, and what is in them; reads ours back.

    python -m pip install numpy==2.4.6 ml_dtypes==0.6.0 safetensors==0.8.0
    python record.py            write the files, and expected.json
    python record.py check      ours*.npz, which our writer wrote, read by NumPy
"""

import io
import json
import math
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import safetensors.numpy

DATA = Path(__file__).parent / "data"
NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"


def number(x):
    """JSON has no infinities, and no numbers that are not."""
    x = float(x)
    return x if math.isfinite(x) else str(x)


def value(x):
    if isinstance(x, bool | int | str):
        return x
    if isinstance(x, bytes):
        return x.decode()
    if isinstance(x, complex):
        return [number(x.real), number(x.imag)]
    return number(x)


def told(array):
    """The type, the shape, and the elements in row-major order."""
    name = "string" if array.dtype.kind in "US" else array.dtype.name
    return {"dtype": name, "shape": array.shape, "values": [value(x) for x in array.ravel().tolist()]}


def sample(dtype, shape=(2, 3)):
    """Small numbers, and the ends of the type."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([[True, False, True], [False, False, True]])
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return np.array([ends.min, 0, 1, 2, 3, ends.max], dtype).reshape(shape)
    numbers = np.array([-0.0, 1.5, -2.25, np.inf, np.nan, 0.1]).astype(dtype)
    if dtype.kind == "c":
        numbers = (numbers.real + 0).astype(dtype)
        numbers.imag = [7, -0.5, 0.1, 2, 3, -np.inf]
    return numbers.reshape(shape)


def arrays():
    found = {name: sample(name) for name in NUMBERS.split()}
    found["bfloat16"] = sample(ml_dtypes.bfloat16)
    for name in "int16 int32 uint64 float16 float32 float64 complex64 complex128".split():
        found[f"big_{name}"] = found[name].astype(np.dtype(name).newbyteorder(">"))
    for name in "uint8 float32 complex128".split():
        found[f"fortran_{name}"] = np.asfortranarray(found[name])
    found["big_fortran"] = np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4))
    found["text"] = np.array([["a", "", "größer"], ["日本", "🦀", "a\0b"]])
    found["big_text"] = found["text"].astype(found["text"].dtype.newbyteorder(">"))
    found["bytes"] = np.array([b"abc", b"", "ü".encode(), b"a\0b"])
    found["no_text"] = np.empty((2, 2), "<U0")
    found["scalar"] = np.array(2.5)
    found["empty"] = np.empty((2, 0, 3), "float32")
    found["ones"] = np.ones((1, 1, 1, 1), "int8")
    # A byte of 2 is true to NumPy.
    found["odd_bool"] = np.array([0, 1, 2, 255], "uint8").view(bool)
    found["größe/../x"] = np.arange(3)
    return found


def expect(found):
    expected = {name: told(array) for name, array in found.items()}
    if "odd_bool" in found:
        # Python's own list of it would show what the bytes happen to be.
        expected["odd_bool"]["values"] = (found["odd_bool"].view("uint8") != 0).tolist()
    return expected


def refused():
    return {
        "object": np.array([None, 1], object),
        "record": np.zeros(2, [("a", "<f4"), ("b", "<i8")]),
        "date": np.array(["2001-01-01"], "M8[D]"),
        "duration": np.array([1], "m8[s]"),
        "longdouble": np.zeros(2, np.longdouble),
        "float8": np.zeros(2, ml_dtypes.float8_e4m3fn),
        "raw": np.zeros(2, "V3"),
        "variable": np.array(["a"], np.dtypes.StringDType()),
    }


class Stream(io.RawIOBase):
    """A pipe, as far as a writer can see: it cannot go back to write sizes before the bytes."""

    def __init__(self):
        self.bytes = b""

    def writable(self):
        return True

    def write(self, more):
        self.bytes += bytes(more)
        return len(more)

    def seekable(self):
        return False

    def tell(self):
        raise OSError


def streamed(arrays):
    """Sizes after the bytes, and a comment after everything."""
    stream = Stream()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.comment = b"written to a pipe"
        for name, array in arrays.items():
            # The same bytes on any day.
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, array)
    return stream.bytes


def write():
    found = arrays()
    np.savez(DATA / "numpy.npz", **found)
    np.savez_compressed(DATA / "deflated.npz", **found)
    np.savez(DATA / "refused.npz", **refused())
    expected = {"npz": expect(found), "refused": sorted(refused())}
    few = {name: found[name] for name in ("float32", "text", "scalar")}
    (DATA / "stream.npz").write_bytes(streamed(few))
    for version in (1, 0), (2, 0), (3, 0):
        with (DATA / f"version{version[0]}.npy").open("wb") as file:
            np.lib.format.write_array(file, found["float32"], version)
    np.save(DATA / "fortran.npy", found["fortran_complex128"])
    np.save(DATA / "big.npy", found["big_fortran"])
    tensors = {name: found[name] for name in NUMBERS.split() if name != "complex128"}
    tensors |= {name: found[name] for name in ("bfloat16", "scalar", "empty")}
    safetensors.numpy.save_file(tensors, DATA / "tensors.safetensors", {"format": "np"})
    expected["safetensors"] = expect(tensors)
    text = json.dumps(expected, ensure_ascii=False, allow_nan=False)
    (DATA / "expected.json").write_text(text.replace('}, "', '},\n"') + "\n")


def check():
    """Our archives hold what NumPy's hold, but for byte order and memory order."""
    expected = json.loads((DATA / "expected.json").read_text())["npz"]
    for name in "ours.npz", "ours64.npz":
        raw = (DATA / name).read_bytes()
        assert zipfile.ZipFile(io.BytesIO(raw)).testzip() is None
        with np.load(io.BytesIO(raw)) as ours:
            assert sorted(ours) == sorted(expected), name
            for key, what in expected.items():
                array = ours[key]
                if what["dtype"] == "bfloat16":
                    array = array.view(ml_dtypes.bfloat16)
                assert array.flags.c_contiguous
                assert json.loads(json.dumps(told(array))) == what, (name, key)
        print(name, "is read by NumPy", np.__version__)


if __name__ == "__main__":
    check() if sys.argv[1:] == ["check"] else write()
