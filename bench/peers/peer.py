"""What every peer needs: reads cases, fills arrays, measures calls, answers (see ../README.md)."""

import itertools
import json
import os
import statistics
import sys
import time

import numpy as np

TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "u8": np.uint8,
    "i64": np.int64, "bool": np.bool_, "string": np.dtypes.StringDType(),
}
NAMES = "abcde"
THREADS = os.cpu_count()


def stored(case):
    """The arrays as they lie in memory, filled as the other engines fill theirs; bfloat16 as float32.

    The engines of a process share those of a copy of the case.
    """
    if "stored" in case:
        return case["stored"]
    arrays = case["stored"] = []
    for kind, shape in zip(case["types"], case["shapes"]):
        numbers = np.arange(97)
        if kind == "string":
            numbers = np.array([f"text {n}" for n in numbers], TYPES[kind])
        elif kind == "bool":
            numbers = numbers % 3 == 0
        elif kind in ("f32", "f64", "f16", "bf16"):
            numbers = (numbers + 1) / 16
        numbers = numbers.astype(TYPES.get(kind, np.float32))
        arrays.append(np.resize(numbers, int(np.prod(shape))).reshape(shape))
    return arrays


def seen(case, first):
    """The first operand as the case looks at it."""
    first = first.T if case["transposed"] else first
    return first[..., ::-1] if case["backwards"] else first


def operands(case):
    """The case's arrays, for who takes strides of all kinds."""
    first, *rest = stored(case)
    return [seen(case, first), *rest]


def summed_axes(case):
    """The axes that are summed over to come to the result."""
    (shape, *_), result = case["shapes"], case["result"]
    lead = len(shape) - len(result)
    return tuple(k for k, size in enumerate(shape) if k < lead or result[k - lead] != size)


def function(case, namespace):
    """The case's expression as a function of its operands."""
    return eval(f"lambda {', '.join(NAMES[:len(case['shapes'])])}: {case['op']}", dict(namespace))


def measure(seconds, call):
    """Seconds a call, the best and the median; short calls are timed in batches."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 2e-8)
    batch = max(int(20e-6 / once), 1)
    times, begin = [], time.perf_counter()
    while len(times) < 2 or (time.perf_counter() - begin < seconds and len(times) < 20_000):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch)
    return min(times), statistics.median(times)


def rest(longest=0.25):
    """Waits until nothing works here: threads of some libraries keep a core busy for a while after a call."""
    end = time.perf_counter() + longest
    while time.perf_counter() < end:
        used, step = time.process_time(), 0.002
        time.sleep(step)
        if time.process_time() - used < step / 4:
            return


def rotating(make, cases):
    """A call that takes the copies of a case in turn, each with arrays of its own, so that none finds in the caches what
    the call before left there; nothing where there is none."""
    calls = [make(case) for case in cases]
    if len(calls) == 1 or None in calls:
        return calls[0]
    turn = itertools.cycle(calls)
    return lambda: next(turn)()


def serve(engines, ready=lambda threads: None):
    """Each engine, `(name, threads, make)`: `make(case)` gives a call, or nothing for what it lacks; it is asked for one for
    each copy of the case, which `case["copy"]` numbers.

    `ready` is told the threads before an engine's turn.
    """
    # What libraries print must not look like an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    calls = {}
    for line in sys.stdin:
        question = json.loads(line)
        again = "op" not in question
        if not again:
            cases, calls = [], {}  # what the case before held goes before more comes
            cases = [{**question, "copy": n} for n in range(question.get("copies", 1))]
        for engine, threads, make in engines:
            try:
                ready(threads)
                if not again:
                    calls[engine] = rotating(make, cases)
                if calls.get(engine) is None:
                    continue
                best, median = measure(question["seconds"], calls[engine])
            except Exception as error:  # Libraries have classes of their own for what they lack.
                calls[engine] = None
                first = (str(error) or type(error).__name__).splitlines()[0]
                print(f"{engine} does not do {cases[0]['name']}: {first}", file=sys.stderr)
                continue
            finally:
                rest()
            answer = {"engine": engine, "threads": threads, "best": best, "median": median}
            print(json.dumps(answer), file=answers, flush=True)
        print(file=answers, flush=True)
