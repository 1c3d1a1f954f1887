"""Arrays on CUDA devices, as far as a machine without one can say; the rest is in gpu/arrays.py."""

import os

import numpy as np
import pytest
import simulcast

pytestmark = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU here")


class OnDevice:
    """An array that says it lies on a CUDA device."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError("nobody asks without a driver")


class Described:
    """An array of the CUDA Array Interface, whose data is elsewhere."""

    __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}


CALLS = [
    lambda x: simulcast.add(x, 1),
    lambda x: simulcast.where(True, x, 2.0),
    lambda x: simulcast.clip(x, 0, 1),
    lambda x: simulcast.evaluate("x * 2 + sum(x)", x=x),
    lambda x: simulcast.compile("x + 1")(x=x),
    lambda x: simulcast.broadcast_to(x, (5, 2, 3)),
    lambda x: simulcast.sum_to(x, (3,)),
    lambda x: simulcast.vjp("multiply", (x, x), x),
]


@pytest.mark.parametrize("kind", [OnDevice, Described])
@pytest.mark.parametrize("call", CALLS)
def test_without_a_driver_the_error_says_what_is_missing(kind, call):
    with pytest.raises(RuntimeError, match="no NVIDIA driver: libcuda cannot be loaded"):
        call(kind())


def test_an_array_with_a_mask_is_refused():
    class Masked:
        __cuda_array_interface__ = {**Described.__cuda_array_interface__, "mask": Described()}

    with pytest.raises(TypeError, match="an array with a mask is not computed with"):
        simulcast.add(Masked(), 1)


def test_a_library_of_another_device_is_asked_as_before():
    class Elsewhere:
        def __dlpack_device__(self):
            return 10, 0

        def __dlpack__(self, **options):
            raise BufferError("no memory of this machine")

    with pytest.raises(TypeError, match="no array in this machine's memory"):
        simulcast.add(Elsewhere(), 1)


def test_an_array_in_memory_that_says_so_is_computed_here():
    class Here:
        def __init__(self, x):
            self.x = x

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

    assert simulcast.add(Here(np.ones(2)), 1).tolist() == [2.0, 2.0]


def test_a_device_that_cannot_be_told_is_none():
    class Lost:
        def __dlpack_device__(self):
            raise ValueError("a tracer has no device")

        def __array__(self, dtype=None, copy=None):
            return np.ones(2)

        def __dlpack__(self, **options):
            raise BufferError("no data")

    assert simulcast.add(Lost(), 1).tolist() == [2.0, 2.0]


def test_an_out_on_a_device_needs_operands_there():
    with pytest.raises(TypeError, match="argument 'out'"):
        simulcast.add(np.ones(2), 1, out=OnDevice())
