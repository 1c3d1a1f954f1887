"""What calls from Python cost beside NumPy's, and how soon Ctrl-C ends one.

    python bench/peers/calls.py keywords   nanoseconds of a call on 3 elements, in turn, best of 40 rounds of 3,000
    python bench/peers/calls.py stop       milliseconds from SIGINT to the end of a call, the worst of 5 each

`simulcast` has to be installed from a release wheel. `stop` starts a process for each call; its limit is 100 ms, beyond which
it exits with 1.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import timeit
from collections.abc import Callable

import numpy as np
import simulcast

LIMIT_MS = 100
AFTER_SECONDS = (0.1, 0.17, 0.23, 0.31, 0.4)


def keywords() -> None:
    """Keywords on 3 elements, beside NumPy's own `dtype=`."""
    x, y, f8 = np.ones(3), np.full(3, 2.0), np.float64
    calls: dict[str, Callable[[], object]] = {
        "np.add(dtype=)": lambda: np.add(x, y, dtype=f8),
        "np.add": lambda: np.add(x, y),
        "add": lambda: simulcast.add(x, y),
        "add(dtype=)": lambda: simulcast.add(x, y, dtype=f8),
        "add(threads=)": lambda: simulcast.add(x, y, threads=1),
        "add(rule=)": lambda: simulcast.add(x, y, rule="numpy"),
        "add, all three": lambda: simulcast.add(x, y, dtype=f8, threads=1, rule="numpy"),
        "evaluate": lambda: simulcast.evaluate("x + y", x=x, y=y),
        "evaluate(dtype=)": lambda: simulcast.evaluate("x + y", x=x, y=y, dtype=f8),
        "evaluate(threads=)": lambda: simulcast.evaluate("x + y", x=x, y=y, threads=1),
        "evaluate(rule=)": lambda: simulcast.evaluate("x + y", x=x, y=y, rule="numpy"),
    }
    best = dict.fromkeys(calls, 1.0)
    for _ in range(40):
        for name, call in calls.items():
            best[name] = min(best[name], timeit.timeit(call, number=3000) / 3000)
    base = best["np.add(dtype=)"]
    for name, seconds in best.items():
        print(f"{name:20} {seconds * 1e9:6.0f} ns  {seconds / base:5.2f} of np.add(dtype=)")


SETUP = """
import os, signal, sys, threading, time
import numpy as np, simulcast

COUNT = 16_000_000
x = np.linspace(0.1, 1, COUNT)
out = np.zeros(COUNT)
few, many = ("+".join(f"sin(x * {k})" for k in range(2, stop)) for stop in (14, 62))
times = []

def press(after):
    def pressed():
        time.sleep(after)
        times.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=pressed).start()

def computing():
    "Seconds for which some thread still computes."
    start = end = time.perf_counter()
    while time.perf_counter() - end < 0.05:
        before = time.process_time()
        time.sleep(0.004)
        if time.process_time() - before > 0.003:
            end = time.perf_counter()
    return end - start
"""

CALLS = {
    "expression": "simulcast.evaluate(few, x=x, out=out, threads=T)",
    "sum of 60 sines": "simulcast.evaluate(f'sum({many})', x=x, threads=T)",
    "row sums": "simulcast.evaluate(f'sum({many}, axis=1)', x=x.reshape(4000, 4000), threads=T)",
    "column sums": "simulcast.evaluate(f'sum({many}, axis=0)', x=x.reshape(4000, 4000), threads=T)",
    "gradient": "simulcast.grad(f'mean({many})', 'x')(x=x, threads=T)",
    "power": "simulcast.power(x, 1.1, out=out, threads=T)",
    "sum": "simulcast.sum(np.broadcast_to(x, (100_000, COUNT)), threads=T)",
    "sum_to": "simulcast.sum_to(np.broadcast_to(x, (100_000, COUNT)), (COUNT,), threads=T)",
}

# Each block is one thread's, and Dask waits for those that are being computed.
DASK = """
import dask.array as da
lazy = da.stack([da.from_array(x, chunks=-1, name="x")] * 8)
made = simulcast.evaluate(many, x=lazy)[:, :3]
"""


def seconds(setup: str, call: str, after: float) -> tuple[float, float]:
    """Seconds from the signal to the exception, and until no thread computes any more."""
    program = f"""
    press({after})
    try:
        while True:
            {call}
    except KeyboardInterrupt:
        raised = time.perf_counter() - times[0]
    print(raised, raised + computing())
    """
    whole = SETUP + setup + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise SystemExit(done.stderr)
    raised, idle = map(float, done.stdout.split())
    return raised, idle


def command(after: float) -> float:
    """Seconds until the command has ended, which writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["eval", "sin(x) + cos(x) * y", "x=(40000, 1000)", "y=(40000, 1)", "-o", os.path.join(folder, "made.npy")]
        running = subprocess.Popen([sys.executable, "-m", "simulcast", *words], stderr=subprocess.DEVNULL)
        time.sleep(after)
        if running.poll() is not None:
            raise SystemExit("the command had ended before the signal came")
        start = time.perf_counter()
        running.send_signal(signal.SIGINT)
        code = running.wait()
        ended = time.perf_counter() - start
        if code != 128 + signal.SIGINT or os.listdir(folder):
            raise SystemExit(f"the command ended with {code} and left {os.listdir(folder)}")
        return ended


def stop() -> int:
    """How soon Ctrl-C ends calls, blocks of Dask and the command."""
    worst: dict[str, float] = {}
    for threads in (1, os.cpu_count() or 1):
        for name, call in CALLS.items():
            own = [seconds("", call.replace("threads=T", f"threads={threads}"), after)[0] for after in AFTER_SECONDS]
            worst[f"{name}, threads={threads}"] = max(own)
    blocks = [seconds(DASK, "made.compute(scheduler='threads', num_workers=2)", after + 0.3) for after in AFTER_SECONDS]
    worst["Dask: the exception"] = max(raised for raised, _ in blocks)
    worst["Dask: the last block"] = max(idle for _, idle in blocks)
    worst["the command"] = max(command(0.8 + after) for after in AFTER_SECONDS)
    for name, own_seconds in worst.items():
        print(f"{name:28} {own_seconds * 1e3:6.1f} ms{'' if own_seconds * 1e3 < LIMIT_MS else '  above the limit'}")
    return int(max(worst.values()) * 1e3 >= LIMIT_MS)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["keywords"]:
            keywords()
        case ["stop"]:
            sys.exit(stop())
        case _:
            sys.exit(__doc__)
