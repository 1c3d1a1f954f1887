"""The tests of the package onnx: every node test, and the models that its wheel carries."""

import os
import tempfile
import unittest
import warnings

os.environ.setdefault("ONNX_HOME", tempfile.mkdtemp(prefix="onnx-"))

import numpy as np
import onnx.backend.test
import pytest

from onnx_backend_list import PAGE, page

from simulcast.onnx import Backend, UnsupportedError


def cases():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # The expected values of some tests are made by overflowing casts.
        warnings.simplefilter("ignore")
        tests = onnx.backend.test.BackendTest(Backend, __name__).test_cases
    for case in tests.values():
        for name in [name for name in vars(case) if name.endswith("_cuda")]:
            delattr(case, name)
    return tests


globals().update(cases())


def test_what_has_no_code_is_skipped_and_no_less_an_error():
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["y"])]
    values = [onnx.helper.make_tensor_value_info(name, 1, [1, 1, 3, 3]) for name in "xwy"]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", values[:2], values[2:]))
    assert not Backend.is_compatible(model)
    with pytest.raises(UnsupportedError, match="Conv"):
        Backend.prepare(model)
    with pytest.raises(unittest.SkipTest, match="Conv"):
        Backend.prepare(model)


def test_the_page_of_skipped_tests_is_current():
    text, counts = page()
    assert text == PAGE.read_text(), "run python python/tests/onnx_backend_list.py"
    (count, skipped), (more, skipped_too), *_, (most, others) = counts.values()
    assert count >= 257 and more >= 382 and (skipped, skipped_too) == (0, 0)
    # Two are about sequences and optional values.
    assert most >= 1300 and others == 2
