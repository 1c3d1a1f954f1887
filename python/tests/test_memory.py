"""Memory of large results: kept, bounded, given back, and in every other way that of any array."""

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import simulcast

MIB = 1 << 20
core = getattr(np, "_core", None) or np.core
X = np.arange(MIB, dtype=np.float32).reshape(1024, 1024)


@pytest.fixture(autouse=True)
def nothing_kept():
    simulcast.release_memory()
    yield
    simulcast.release_memory()


def address(array):
    return array.ctypes.data


def test_what_was_freed_is_the_next_result():
    first = simulcast.add(X, 1)
    place = address(first)
    other = simulcast.add(X, 2)
    assert address(other) != place and (first == X + 1).all() and (other == X + 2).all()
    del first
    again = simulcast.evaluate("x * x", x=X)
    assert address(again) == place and (again == X * X).all() and (other == X + 2).all()


def test_a_block_serves_what_is_a_little_smaller_but_not_half():
    # Sizes are rounded up by an eighth at most: a power of two and a bit is a block with the next sizes.
    size = 9 * MIB // 8 - 4096
    first = simulcast.add(np.zeros(size, np.int8), 1)
    place = address(first)
    del first
    half = simulcast.add(np.zeros(size // 2, np.int8), 2)
    assert address(half) != place
    like = simulcast.add(np.zeros(size - MIB // 16, np.int8), 3)
    assert address(like) == place and (like == 3).all() and (half == 2).all()


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1, 5 * MIB // 4 + 7, 4 * MIB - 64, 4 * MIB, 4 * MIB + 13, 33 * MIB + 1])
def test_sizes_at_every_bound(size):
    x = np.arange(size, dtype=np.uint8)
    for k in range(3):
        made = simulcast.add(x, np.uint8(k))
        assert made.nbytes == size and (made == x + np.uint8(k)).all()
        del made


def test_only_large_results_have_the_handler():
    name = core.multiarray.get_handler_name
    assert name(simulcast.add(X, 1)) == "simulcast"
    for other in [simulcast.add(X[:2], 1), simulcast.add(X, 1).copy(), np.ones(MIB), np.sqrt(simulcast.add(X, 1))]:
        assert name(other) == "default_allocator"
    assert name() == "default_allocator"
    with pytest.raises(simulcast.BroadcastError):
        simulcast.add(X, X[:, :3])
    assert name() == "default_allocator"


def test_results_are_arrays_as_any_other():
    made = simulcast.add(X, 1)
    assert made.flags.owndata and made.flags.writeable and made.base is None and made.flags.c_contiguous
    assert simulcast.add(X.T, 1).flags.f_contiguous
    assert (pickle.loads(pickle.dumps(made)) == made).all()
    expected = X + 1
    made[::-1, ::-1].sort(kind="stable")
    expected[::-1, ::-1].sort(kind="stable")
    assert (made == expected).all()
    made.partition(5, axis=0)
    assert (np.sort(made, axis=0) == np.sort(expected, axis=0)).all()


@pytest.mark.parametrize("rows", [0, 1, 100, 1020, 1024, 1025, 1500, 5000])
def test_resize_keeps_what_there_is_and_clears_the_rest(rows):
    simulcast.add(X, 7)  # Kept, and not zero.
    made, expected = simulcast.add(X, 1), X + 1
    made.resize((rows, 1024), refcheck=False)
    expected.resize((rows, 1024), refcheck=False)
    assert made.flags.owndata and made.tobytes() == expected.tobytes()
    made.resize((1024, 1024), refcheck=False)
    expected.resize((1024, 1024), refcheck=False)
    assert made.tobytes() == expected.tobytes()


def test_an_array_outlives_its_views_and_the_store():
    view = simulcast.add(X, 1)[::2]
    simulcast.release_memory()
    others = [simulcast.add(X, k) for k in range(4)]
    assert (view == (X + 1)[::2]).all() and all((other == X + k).all() for k, other in enumerate(others))


def test_release_says_what_was_kept():
    assert simulcast.release_memory() == 0
    simulcast.add(X, 1)
    released = simulcast.release_memory()
    assert X.nbytes <= released <= X.nbytes * 9 // 8 + MIB and simulcast.release_memory() == 0


def test_few_blocks_are_kept():
    made = [simulcast.add(X, k) for k in range(20)]
    places = [address(one) for one in made]
    while made:
        del made[0]
    # The newest first.
    again = simulcast.add(X, 1)
    assert address(again) == places[-1]
    assert simulcast.release_memory() <= 8 * (X.nbytes * 9 // 8)


def test_all_ways_to_a_large_result_are_kept():
    onnx = pytest.importorskip("onnx")
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1024, 1024])
    nodes = [onnx.helper.make_node("Exp", ["x"], ["e"]), onnx.helper.make_node("Transpose", ["e"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [info], [onnx.ValueInfoProto(name="y")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    from simulcast.onnx import Session

    session, x = Session(model), X / X.size
    for call, expected in [
        (lambda: session.run({"x": x})["y"], np.exp(x).T),
        (lambda: simulcast.vjp("multiply", (x, 2.0), x)[0], x * 2),
        (lambda: simulcast.sum_to(np.stack([x, x]), x.shape), x + x),
        (lambda: simulcast.compile("x - 1")(x=x), x - 1),
        (lambda: simulcast.clip(x, 0.25, 0.5), np.clip(x, 0.25, 0.5)),
    ]:
        simulcast.release_memory()
        for _ in range(3):
            np.testing.assert_allclose(call(), expected, rtol=1e-6)
        assert simulcast.release_memory() >= x.nbytes


def test_threads_do_not_get_in_each_others_way():
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        held = []
        for k in range(60):
            x = np.full(int(rng.integers(MIB // 2, 3 * MIB)), seed, np.uint8)
            held.append((simulcast.add(x, np.uint8(k)), seed + k))
            if len(held) > 3:
                made, value = held.pop(int(rng.integers(0, 4)))
                wrong.extend([value] * bool((made != value).any()))
            if k % 20 == 0:
                simulcast.release_memory()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def run(program, **environment):
    program = "import numpy as np, simulcast\nx = np.ones(3 << 20, np.uint8)\n" + program
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)


KEPT = "print(sum(simulcast.add(x, 1)[:1]), simulcast.release_memory())"


@pytest.mark.parametrize(
    ("limit", "kept"),
    [("0", False), ("1048576", False), (str(64 * MIB), True), (" 67108864 ", True), ("", True)],
)
def test_the_environment_says_how_much(limit, kept):
    done = run(KEPT, SIMULCAST_KEEP_BYTES=limit)
    one, released = map(int, done.stdout.split())
    assert (done.returncode, done.stderr, one) == (0, "", 2)
    assert 3 * MIB <= released < 4 * MIB if kept else released == 0


@pytest.mark.parametrize("wrong", ["-1", "1e9", "lots", "9" * 40, "0x10"])
def test_a_limit_that_cannot_be_read_is_an_error_of_the_import(wrong):
    done = run(KEPT, SIMULCAST_KEEP_BYTES=wrong)
    told = f'ValueError: the environment variable SIMULCAST_KEEP_BYTES is "{wrong}", not a number of bytes'
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (1, "", told)


def test_all_blocks_together_stay_within_the_limit():
    done = run("all = [simulcast.add(x, k) for k in range(6)]\ndel all\nprint(simulcast.release_memory())", SIMULCAST_KEEP_BYTES=str(7 * MIB))
    assert 6 * MIB <= int(done.stdout) <= 7 * MIB and done.returncode == 0


def test_a_program_ends_whatever_it_holds():
    done = run("held = [simulcast.add(x, k) for k in range(4)]\nheld[0] = None\nprint('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_has_its_own():
    done = run(
        "import os, warnings\nwarnings.simplefilter('ignore')  # Of other threads, which may be NumPy's.\n"
        "held = simulcast.add(x, 1, threads=1)\nsimulcast.add(x, 2, threads=1)\npid = os.fork()\n"
        "del held\nassert (simulcast.add(x, 3, threads=1) == 4).all()\n"
        "if pid == 0: os._exit(0 if simulcast.release_memory() else 1)\n"
        "assert os.waitpid(pid, 0)[1] == 0 and simulcast.release_memory() > 0"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_handler_of_the_programs_own_stays():
    done = run(
        """
import ctypes, os
core = getattr(np, "_core", None) or np.core
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table = ctypes.cast(get(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
libc, word = ctypes.CDLL(None), ctypes.c_size_t
# Calls of C's own functions, without the context that comes first.
P = ctypes.c_void_p
malloc = ctypes.PYFUNCTYPE(P, P, word)(lambda _, n: seen.append(n) or raw_malloc(n))
calloc = ctypes.PYFUNCTYPE(P, P, word, word)(lambda _, n, k: raw_calloc(n, k))
realloc = ctypes.PYFUNCTYPE(P, P, P, word)(lambda _, p, n: raw_realloc(p, n))
free = ctypes.PYFUNCTYPE(None, P, P, word)(lambda _, p, n: raw_free(p))
raw_malloc, raw_calloc, raw_realloc, raw_free = libc.malloc, libc.calloc, libc.realloc, libc.free
raw_malloc.restype = raw_calloc.restype = raw_realloc.restype = P
raw_malloc.argtypes, raw_calloc.argtypes, raw_realloc.argtypes, raw_free.argtypes = [word], [word, word], [P, word], [P]
seen = []
class Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", P),
                ("malloc", P), ("calloc", P), ("realloc", P), ("free", P)]
places = [ctypes.cast(one, P) for one in (malloc, calloc, realloc, free)]
own = Handler(b"mine", 1, None, *places)
before = set_handler(make(ctypes.addressof(own), b"mem_handler", None))
made = simulcast.add(x, 1)
print(core.multiarray.get_handler_name(made), core.multiarray.get_handler_name(), x.nbytes in seen)
set_handler(before)
assert (made == 2).all()
print(core.multiarray.get_handler_name(simulcast.add(x, 1)), core.multiarray.get_handler_name())
os._exit(os.EX_OK if print(flush=True) is None else 1)
"""
    )
    assert done.stdout.split() == ["mine", "mine", "True", "simulcast", "default_allocator"], done.stderr
