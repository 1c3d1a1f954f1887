"""Ctrl-C stops a long call within 100 ms: on one thread and on many, in expressions, Dask's blocks and the command."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import simulcast

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of Unix")


def limit():
    """Seconds until a call has ended: of an extension that is not optimised, parts take longer, and more where others compute too."""
    x, best = np.linspace(0.1, 1, 1 << 18), 1.0
    for _ in range(5):
        start = time.perf_counter()
        simulcast.sin(x, threads=1)
        best = min(best, time.perf_counter() - start)
    return 0.1 if best < 0.004 else 1.0


LIMIT = limit()

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np, simulcast

COUNT = 16_000_000
x = np.linspace(0.1, 1, COUNT)
out = np.zeros(COUNT)

def press(after):
    def pressed():
        time.sleep(after)
        times.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=pressed).start()

times = []
"""


def run(program, **options):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(program)], capture_output=True, text=True, timeout=120, **options
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


SINES = "'+'.join(f'sin(x * {k})' for k in range(2, 14))"
LONG = {
    "expression": f"simulcast.evaluate({SINES}, x=x, threads=THREADS)",
    "out": f"simulcast.evaluate({SINES}, x=x, out=out, threads=THREADS)",
    "reduced expression": "simulcast.evaluate('sum(' + '+'.join(f'sin(x * {k})' for k in range(60)) + ')', x=x, threads=THREADS)",
    "gradient": f"simulcast.grad('mean(' + {SINES} + ')', 'x')(x=x, threads=THREADS)",
    "complex powers": "simulcast.power(x.astype(complex), 1.1 + 1j, threads=THREADS)",
    "function": "[simulcast.power(x, 1.1, out=out, threads=THREADS) for _ in range(30)]",
    "reduction": "simulcast.sum(np.broadcast_to(x, (100_000, COUNT)), threads=THREADS)",
    "sum_to": "simulcast.sum_to(np.broadcast_to(x, (100_000, COUNT)), (COUNT,), threads=THREADS)",
}


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", LONG)
def test_a_long_call_ends(name, threads):
    call = LONG[name].replace("THREADS", str(threads))
    program = f"""
    best = []
    for _ in range(3):
        times.clear()
        press(0.3)
        try:
            {call}
            print("finished")
            break
        except KeyboardInterrupt:
            best.append(time.perf_counter() - times[0])
            if best[-1] < {LIMIT}:
                break
    print(min(best))
    # What is called next goes on as ever.
    assert simulcast.add(x[:3], 1).tolist() == (x[:3] + 1).tolist() and abs(simulcast.sum(x) - x.sum()) < 1e-3
    """
    *_, seconds = run(program, env={**os.environ, "SIMULCAST_NUM_THREADS": "4"})
    assert float(seconds) < LIMIT


def test_out_is_written_in_part_and_nothing_is_leaked():
    program = f"""
    import resource
    sizes = []
    for turn in range(4):
        times.clear()
        out[:] = -7
        press(0.25)
        try:
            {LONG["out"].replace("THREADS", "None")}
        except KeyboardInterrupt:
            pass
        assert 0 < (out != -7).sum() < COUNT
        simulcast.release_memory()
        sizes.append(int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize())
    print(sizes[-1] - sizes[1])
    """
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("memory is counted as on Linux")
    assert int(run(program)[-1]) < 16 << 20


def test_a_handler_that_does_not_raise_lets_the_call_go_on():
    program = """
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(time.perf_counter()))
    press(0.05)
    start = time.perf_counter()
    made = simulcast.sum(np.broadcast_to(x, (6, COUNT)), threads=1)
    end = time.perf_counter()
    assert made > 0 and (not seen or start < seen[0])
    while not seen:
        time.sleep(0.01)
    # Another handler takes the place of Python's, and the next call still sees signals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    times.clear()
    press(0.2)
    try:
        simulcast.sum(np.broadcast_to(x, (100_000, COUNT)), threads=1)
    except KeyboardInterrupt:
        print(time.perf_counter() - times[0])
    """
    assert float(run(program)[-1]) < LIMIT


def test_calls_of_other_threads_go_on():
    program = """
    done = []
    def work():
        done.append(simulcast.sum(np.broadcast_to(x, (8, COUNT)), threads=1))
    other = threading.Thread(target=work)
    other.start()
    press(0.05)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    start = time.perf_counter()
    while not done and time.perf_counter() - start < 60:
        time.sleep(0.01)
    print(len(done))
    """
    assert run(program) == ["1"]


def test_blocks_of_dask_end():
    program = """
    import dask.array as da
    lazy = da.stack([da.from_array(x, chunks=-1, name="x")] * 8)
    small = simulcast.evaluate("+".join(f"sin(x * {k})" for k in range(2, 14)), x=lazy)[:, :3]
    def ended():
        "Seconds until no thread computes any more."
        start = time.perf_counter()
        while time.perf_counter() - start < 20:
            before = time.process_time()
            time.sleep(0.005)
            if time.process_time() - before < 0.002:
                return time.perf_counter() - start
        return 20
    press(0.5)
    try:
        small.compute(scheduler="threads", num_workers=2)
        print("finished")
    except KeyboardInterrupt:
        print(time.perf_counter() - times[0])
    print(ended())
    """
    # Other programs of the machine may take its time for themselves.
    for _ in range(3):
        raised, ended = map(float, run(program)[-2:])
        if max(raised, ended) < LIMIT:
            break
    assert raised < LIMIT and ended < LIMIT


def test_the_command_ends(tmp_path):
    ends = [seconds_of_the_command(tmp_path)]
    while min(ends) >= LIMIT and len(ends) < 3:
        ends.append(seconds_of_the_command(tmp_path))
    assert min(ends) < LIMIT


def seconds_of_the_command(tmp_path):
    """Seconds from the signal until the command has ended, which leaves no file."""
    words = ["eval", "sin(x) + cos(x) * y", "x=(40000, 1000)", "y=(40000, 1)", "--output", str(tmp_path / "made.npy")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-m", "simulcast", *words], **quiet) as running:
        time.sleep(1.5)
        if running.poll() is not None:
            pytest.skip(f"it was over too soon, with {running.returncode}")
        start = time.perf_counter()
        running.send_signal(signal.SIGINT)
        code = running.wait(timeout=20)
        seconds = time.perf_counter() - start
    assert code == 128 + signal.SIGINT and list(tmp_path.iterdir()) == []
    return seconds
