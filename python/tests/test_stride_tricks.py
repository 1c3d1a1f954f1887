"""NumPy's own tests of its broadcast functions, from the installed wheel, with ours in their place.

Left out are tests of other functions, and these, which hold NumPy to choices that ours are free of:

- `test_subclasses`: it asks for `subok=True`; ours always give plain arrays.
- `test_writeable` and `test_writeable_memoryview`: results of NumPy's `broadcast_arrays` can be written, with a
  warning, until a deprecation ends; ours are read-only.
- `test_broadcast_shape` calls a private function of NumPy.
- `test_as_strided` is about another function.
"""

import numpy as np
import pytest
from numpy.lib.tests import test_stride_tricks as theirs

import simulcast

OURS = ("broadcast_arrays", "broadcast_shapes", "broadcast_to")
LEFT_OUT = {
    "test_subclasses",
    "test_writeable",
    "test_writeable_memoryview",
    "test_broadcast_shape",
    "test_as_strided",
}
THEIRS = {name: test for name, test in vars(theirs).items() if name.startswith("test_")}
CHOSEN = [pytest.param(test, id=name) for name, test in THEIRS.items() if name not in LEFT_OUT]


@pytest.mark.parametrize("test", CHOSEN)
@pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning")
def test_theirs(test, monkeypatch):
    calls = []
    for name in OURS:
        ours = getattr(simulcast, name)

        def counted(*args, ours=ours, **options):
            calls.append(name)
            return ours(*args, **options)

        monkeypatch.setattr(theirs, name, counted)
    test()
    assert calls, "the test calls none of ours"


def test_enough_of_them_are_run():
    assert len(CHOSEN) >= 13 and LEFT_OUT <= set(THEIRS)


def test_ours_are_read_only_where_theirs_will_be():
    original = np.array([1, 2, 3])
    for shown in [simulcast.broadcast_arrays(original), simulcast.broadcast_arrays(0, original)]:
        for result in shown:
            assert not result.flags.writeable
            with pytest.raises(ValueError):
                result[...] = 0
            assert memoryview(result).readonly
