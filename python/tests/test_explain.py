"""`explain`: what it accepts, and that text, picture and data are the command's."""

import copy
import pickle
import types
import unicodedata
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import simulcast


class HasShape:
    def __init__(self, *shape):
        self.shape = shape


def test_anything_with_a_shape_is_explained():
    import xarray

    for operand in [(3, 1), [3, 1], np.ones((3, 1)), HasShape(3, 1), "3,1", "(3, 1)", {"h": 3, "w": 1}]:
        explained = simulcast.explain(operand, 4)
        assert explained.shape == (3, 4) and "result   3   4" in str(explained)
    named = xarray.DataArray(np.ones((2, 3)), dims=("h", "w"))
    assert simulcast.explain(named, named.T, rule="named").shape == (2, 3)
    assert simulcast.explain((2, 3), (3,), rule=simulcast.named(("h", "w"), ("w",))).shape == (2, 3)
    for bad in [2.5, object(), (1.5,)]:
        with pytest.raises(TypeError):
            simulcast.explain(bad)
    with pytest.raises(ValueError, match="is not a shape"):
        simulcast.explain("2,,3")
    for names in [["a"], ["a", "b", "c"]]:
        with pytest.raises(ValueError, match="and there are 2"):
            simulcast.explain((3, 1), 4, names=names)


class Torch:
    """As a tensor of torch is: `dims` is no list of names, and its sizes have a class of their own."""

    shape = type("Size", (tuple,), {})((3, 1))

    def dims(self):
        raise RuntimeError("not called")


class H5:
    """As a data set of h5py is: `dims` is an object of its own, and an empty one has no shape."""

    def __init__(self, shape):
        self.shape, self.dims, self.name = shape, object(), "/group/data"


def test_arrays_of_other_libraries_are_explained():
    for operand in [Torch(), H5((3, 1)), np.ma.ones((3, 1))]:
        assert simulcast.explain(operand, 4).shape == (3, 4)
    assert simulcast.explain(H5(None), (2, 3)).shape is None


def test_sizes_need_not_be_known():
    explained = simulcast.explain("N,3,H,W", ("M", 1, 1, 4))
    assert explained.shape == ("bcast(M, N)", 3, "H", 4)
    assert explained.constraints == ["W is 1 or 4", "M and N are equal or one is 1"]
    assert simulcast.explain((None, 3), (None, 1)).shape == (None, 3)
    assert simulcast.explain(HasShape(float("nan"), 3), (4, 1)).shape == (4, 3)
    assert simulcast.explain(None, (2, 3)).shape is None


def test_text_is_the_commands():
    explained = simulcast.explain("pred:32,1", "target:32")
    assert str(explained) == repr(explained)
    assert "SC102    a column meets a row of the same length: pred repeats along axis 1, target along axis 0" in str(explained)
    [finding] = explained.findings
    assert (finding.code, finding.operands, finding.axes) == ("SC102", [0, 1], [1, 0])
    assert finding.suggestions == ["target[:, None] is (32, 1), result (32, 1)", "pred[:, 0] is (32,), result (32,)"]
    assert str(finding).startswith("SC102: a column") and "SC102" in repr(finding)


def test_an_error_is_explained_too():
    explained = simulcast.explain((2, 3, 4), (2, 4), names=["image", "mask"])
    assert explained.shape is None and explained.findings == []
    assert "^ axis 1 (-2): image has 3, mask has 2" in str(explained)
    with pytest.raises(simulcast.BroadcastError) as caught:
        simulcast.check((2, 3, 4), (2, 4), names=["image", "mask"])
    assert explained.to_dict()["error"]["message"] == str(caught.value)


def test_data():
    data = simulcast.explain((2, 1), (3,), rule="numpy").to_dict()
    assert data["schema"] == 1 and data["result"]["shape"] == [2, 3]
    assert [operand["sum_axes"] for operand in data["operands"]] == [[1], [0]]
    assert data["cost"]["growth"] == 1.2


@pytest.mark.parametrize("shapes", [[(3, 1), (4,)], [(8, 1, 6, 1), (7, 1, 5)], [(2, 3), (2,)], ["N,1", "4"]], ids=str)
def test_pictures_are_drawn(shapes):
    explained = simulcast.explain(*shapes, names=["<b>&", "mask"])
    picture = ElementTree.fromstring(explained.svg())
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "<b>" not in explained.svg()
    assert explained._repr_html_().startswith("<figure") and explained.svg() in explained._repr_html_()
    assert explained.html().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    "operands, options",
    [
        (((2, 3, 4), (2, 4)), {"names": ["image", "mask"]}),
        (("pred:b=32,1", "target:32"), {}),
        (("N@2..8,3", ("M", None, "..4"), "x y"), {}),
        ((None, (2,)), {}),
        (("h=2,w=3", "w=3"), {"rule": "named"}),
        (("h,w", "w"), {"rule": "named"}),
        (((2, 3), (3,)), {"rule": simulcast.named(("h", "w"), ("w",))}),
        (((2, 3, 4), (3,)), {"rule": "pdpd:1"}),
        (((3, 1), types.SimpleNamespace(shape=(3,), dims=("a b",))), {}),
        ((), {}),
    ],
)
def test_explanations_and_findings_are_what_they_were_after_a_copy(operands, options):
    explained = simulcast.explain(*operands, **options)
    for again in (pickle.loads(pickle.dumps(explained)), copy.deepcopy(explained), copy.copy(explained)):
        assert again == explained and hash(again) == hash(explained)
        assert (again.to_dict(), again.svg(), str(again)) == (explained.to_dict(), explained.svg(), str(explained))
        assert again.findings == explained.findings
    assert explained != simulcast.explain((7, 1), names=["other"])
    for finding in explained.findings:
        again = pickle.loads(pickle.dumps(finding))
        assert again == finding and hash(again) == hash(finding) and copy.deepcopy(finding) == finding
        assert (again.code, again.message, again.suggestions) == (finding.code, finding.message, finding.suggestions)


def test_there_is_no_finding_of_another_code():
    (finding,) = simulcast.explain((3, 1), (3,)).findings
    kind, (code, *rest) = finding.__reduce__()
    assert kind(code, *rest) == finding
    with pytest.raises(ValueError, match="SC999"):
        kind("SC999", *rest)


def columns(text):
    """How many columns of a terminal a text takes."""
    wide = {"W": 2, "F": 2}
    return sum(wide.get(unicodedata.east_asian_width(c), 1) for c in text if unicodedata.category(c) not in ("Mn", "Me", "Cf"))


@pytest.mark.parametrize("names", [["画像", "mask"], ["a", "한글이름"], ["re\u0301sume\u0301", "マスク"], ["ｆｕｌｌ", "e\u0301" * 9]])
def test_tables_are_aligned_whatever_names_are_made_of(names):
    for other in [(4,), (2, 4)]:
        lines = str(simulcast.explain((2, 3, 4), other, names=names)).splitlines()
        rows = [line for line in lines if line.endswith((")", "axis")) and "     " in line and "SC" not in line]
        ends = {columns(line[: line.rindex("     ")]) for line in rows if line.lstrip().startswith(("axis", *names))}
        assert len(ends) == 1 and len(rows) >= 3
        carets = [columns(line[: line.index("^")]) for line in lines if "^" in line]
        # Under the last figure of the axis before the last.
        assert all(caret == ends.copy().pop() - 4 - 1 for caret in carets) and len(carets) == (other == (2, 4))
