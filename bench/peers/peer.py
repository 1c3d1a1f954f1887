"""What every peer needs: reads cases, measures calls, answers (see ../README.md)."""

import json
import statistics
import sys
import time


def measure(seconds, call):
    """Seconds a call, the best and the median; short calls are timed in batches."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 2e-8)
    batch = max(int(20e-6 / once), 1)
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < seconds and len(times) < 20_000):
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch)
    return min(times), statistics.median(times)


def serve(calls):
    """`calls(case)` gives (engine, threads, call) for each engine that can do the case."""
    for line in sys.stdin:
        case = json.loads(line)
        try:
            for engine, threads, call in calls(case):
                best, median = measure(case["seconds"], call)
                answer = {"engine": engine, "threads": threads, "best": best, "median": median}
                print(json.dumps(answer), flush=True)
        except (MemoryError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            print(f"{case['name']}: {error}", file=sys.stderr)
        print(flush=True)
