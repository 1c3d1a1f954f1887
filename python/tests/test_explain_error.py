"""`explain_error`: errors of array libraries, from text and from exceptions."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import simulcast

ROOT = Path(__file__).parents[2]


def caught(call, *args):
    try:
        call(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_an_exception_gives_names_shapes_and_the_line():
    image, batch = np.ones((2, 3, 4)), {"mask": np.ones((2, 4))}

    def step():
        return image * batch["mask"]

    (own,) = simulcast.explain_error(caught(step))
    assert own.library == "NumPy" and own.shapes == ((2, 3, 4), (2, 4)) and own.missing is None
    assert own.place[0] == __file__ and own.place[2] == 'return image * batch["mask"]'
    text = str(own)
    if sys.version_info >= (3, 11):
        assert own.names == ("image", "batch['mask']")
        assert "batch['mask'][:, None, :] is (2, 1, 4)" in text and "^^^^" in text
    assert own.explanation.to_dict()["error"]["code"] == "E1" and "<svg" in own._repr_html_()
    assert own.to_dict()["explanation"] == own.explanation.to_dict() and repr(own) in text


def test_shapes_come_from_the_operands_where_a_message_has_none():
    a, b = np.ones((3, 4)), np.ones(3)

    def like_torch(a, b):
        raise RuntimeError("The size of tensor a (4) must match the size of tensor b (3) at non-singleton dimension 1")

    like_torch.__globals__["__name__"], before = "torch.fake", like_torch.__globals__["__name__"]
    try:
        error = caught(eval, "like_torch(a, b)", {"__name__": "own", "like_torch": like_torch, "a": a, "b": b})
    finally:
        like_torch.__globals__["__name__"] = before
    (own,) = simulcast.explain_error(error)
    assert own.library == "PyTorch"


def test_chained_exceptions_are_followed():
    def step():
        try:
            np.ones(3) + np.ones(4)
        except ValueError as error:
            raise RuntimeError("the step failed") from error

    assert [own.shapes for own in simulcast.explain_error(caught(step))] == [((3,), (4,))]


def test_our_own_errors():
    (own,) = simulcast.explain_error(caught(simulcast.add, np.ones((2, 3)), np.ones(2)))
    assert own.shapes == ((2, 3), (2,)) and own.library == "Simulcast" and "error    E1" in str(own)


def test_what_is_no_error_of_shapes_has_no_explanation():
    assert simulcast.explain_error("all is well") == []
    assert simulcast.explain_error(caught(int, "x")) == [] == simulcast.explain_error(KeyError("x"))
    with pytest.raises(TypeError, match="a text or an exception, not int"):
        simulcast.explain_error(3)


def test_recorded_messages_are_read():
    path = ROOT / "conformance/messages.jsonl"
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    recorded = [own for own in recorded if own["text"] and not own["silent"]]
    libraries = set()
    for own in recorded:
        for found in simulcast.explain_error(own["text"]):
            libraries.add(found.library)
            assert str(found) and (found.missing is None) == bool(found.shapes)
            assert (found.explanation is None) == (not found.shapes)
            if found.shapes:
                assert [list(shape) for shape in found.shapes] == own["shapes"], own
    assert {"NumPy", "PyTorch", "JAX", "TensorFlow"} <= libraries
