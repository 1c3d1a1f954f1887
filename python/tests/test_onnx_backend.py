"""The tests of the package onnx: every node test, and the models that its wheel carries."""

import os
import tempfile
import unittest
import warnings

os.environ.setdefault("ONNX_HOME", tempfile.mkdtemp(prefix="onnx-"))

import numpy as np
import onnx.backend.test

from onnx_backend_list import PAGE, page

from simulcast.onnx import Backend, UnsupportedError


class Tested(Backend):
    """Models that there is no code for are skipped, and say why."""

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        try:
            return super().prepare(model, device, **kwargs)
        except UnsupportedError as error:
            raise unittest.SkipTest(str(error)) from None


def cases():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # The expected values of some tests are made by overflowing casts.
        warnings.simplefilter("ignore")
        tests = onnx.backend.test.BackendTest(Tested, __name__).test_cases
    for case in tests.values():
        for name in [name for name in vars(case) if name.endswith("_cuda")]:
            delattr(case, name)
    return tests


globals().update(cases())


def test_the_page_of_skipped_tests_is_current():
    text, counts = page()
    assert text == PAGE.read_text(), "run python python/tests/onnx_backend_list.py"
    (count, skipped), (more, skipped_too), *_, (most, others) = counts.values()
    assert count >= 257 and more >= 382 and (skipped, skipped_too) == (0, 0)
    # Two are about sequences and optional values.
    assert most >= 1300 and others == 2
