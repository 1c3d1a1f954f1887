"""Cases and the way to record them; what every recorder shares.

A case is a request of `simulcast shape --jsonl` with the operation that was asked beside it:

    {"op": "add", "rule": "pdpd", "axis": 1, "shapes": [[2, 3], [3]]}

An answer adds `out`, and what else was seen. Standard library only, and old Pythons too: some of
the systems never ran on a new one.
"""

import itertools
import json
import os
import random
import select
import signal
import sys
import time
import traceback
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
REFUSED = "refused"
CRASHED = "crashed"
SEED = 2400
# Values are recorded for results up to this many elements.
SMALL = 48
EXAMPLES = []  # type: list


class Draw:
    """Draws that are the same in every version of Python: only `random()` is promised to be."""

    def __init__(self, name):
        self.random = random.Random("%s %s" % (SEED, name)).random

    def below(self, n):
        return int(self.random() * n)

    def of(self, items):
        return items[self.below(len(items))]

    def chance(self, p):
        return self.random() < p


def shapes(rank, sizes):
    """Every shape of rank up to `rank` over `sizes`."""
    return [list(s) for r in range(rank + 1) for s in itertools.product(sizes, repeat=r)]


def distinct(cases):
    seen, out = set(), []
    for case in cases:
        key = json.dumps(case)
        if key not in seen:
            seen.add(key)
            out.append(case)
    return out


def shape(draw, rank=4):
    return [draw.of((0, 1, 1, 2, 2, 2, 3, 3, 3, 3)) for _ in range(draw.below(rank + 1))]


def fitted(draw, result):
    """A shape that mostly broadcasts to `result`."""
    own = [1 if draw.chance(0.3) else size for size in result]
    if draw.chance(0.4):
        own = own[draw.below(len(own) + 1):]
    if own and draw.chance(0.15):
        own[draw.below(len(own))] = draw.of((0, 1, 2, 3))
    return own


def lists(name, count, least, most):
    """Lists of shapes that mostly broadcast together."""
    draw = Draw(name)
    out = []
    for _ in range(count):
        result = shape(draw)
        out.append([fitted(draw, result) for _ in range(least + draw.below(most - least + 1))])
    return distinct(out)


def pairs(random_pairs=500):
    """All pairs of sizes 0..3 up to rank 2, of sizes 0..2 up to rank 3, and random ones up to rank 4."""
    small = [[a, b] for a in shapes(2, range(4)) for b in shapes(2, range(4))]
    cubes = [[a, b] for a in shapes(3, range(3)) for b in shapes(3, range(3))]
    return distinct(documents("numpy") + small + cubes + lists("pairs", random_pairs, 2, 2))


def few_pairs(random_pairs=400):
    """All pairs of sizes 0..3 up to rank 2, and random ones up to rank 4."""
    small = [[a, b] for a in shapes(2, range(4)) for b in shapes(2, range(4))]
    return distinct(documents("numpy") + small + lists("pairs", random_pairs, 2, 2))


def targets(random_targets=500):
    """Pairs of an operand and a target."""
    own = [[c["shapes"][0], c["target"]] for c in read_documents() if c["rule"] == "bidirectional"]
    draw = Draw("targets")
    drawn = []
    for _ in range(random_targets):
        target = shape(draw)
        drawn.append([fitted(draw, target), target])
    small = [[a, b] for a in shapes(2, range(4)) for b in shapes(2, range(4))]
    return distinct(own + small + drawn)


# Where generations of the PDPD rule part, beside the documents' own examples.
CORNERS = [
    ([2, 3, 4, 5], [3, 1, 5], 1), ([2, 3, 4, 5], [2, 1, 4], 0), ([2, 3, 4, 5], [5, 1], 3),
    ([2, 3, 4, 5], [4, 5, 1], 2), ([2, 3, 4, 5], [1, 1], 3), ([2, 3, 4], [4, 1], 2),
    ([2, 3, 4, 5], [5, 1], -1), ([2, 3, 4, 5], [3, 1, 1, 1], 1), ([2, 3, 4, 5], [1], -1),
    ([2, 3, 4, 5], [1, 1, 1, 1], -1), ([2, 3, 4, 5], [1, 1, 1, 1, 1], -1), ([2, 3, 4, 5], [], 4),
    ([2, 3, 4, 5], [], 5), ([2, 3, 4, 5], [1], 4), ([2, 3, 4, 5], [1], 9),
    ([2, 3, 4, 5], [2, 3, 4, 5], 7), ([2, 3, 4, 5], [2, 3, 4, 5], 1), ([2, 3, 4, 5], [2, 1, 4, 5], -1),
    ([4, 5], [2, 4, 5], -1), ([4, 5], [4, 5, 1], 0), ([], [1], -1), ([1, 3], [2, 3], -1),
    ([2, 3, 4, 5], [3, 4], -2), ([2, 3, 4, 5], [3], 3), ([2, 3, 4, 5], [3, 4], 3), ([0], [1], -1),
    ([0, 3], [1, 3], -1), ([2, 0], [1], -1), ([1], [0], -1), ([0], [], -1), ([0, 3], [3], -1),
    ([2, 0], [2], 0), ([2, 3], [0], -1),
]


def placed(random_placed=2500):
    """A, B and an axis: all of sizes 0..3 up to rank 2 and axes -2..3, and random ones up to rank 4."""
    own = [c["shapes"] + [c["axis"]] for c in read_documents() if c["rule"] == "pdpd"]
    corners = [[list(a), list(b), axis] for a, b, axis in CORNERS]
    small = [[a, b, axis]
             for a in shapes(2, range(4)) for b in shapes(2, range(4)) for axis in range(-2, 4)]
    draw = Draw("placed")
    drawn = []
    for _ in range(random_placed):
        a = shape(draw)
        start = draw.below(len(a) + 1)
        b = a[start:start + draw.below(len(a) + 1)]
        b = [1 if draw.chance(0.25) else size for size in b]
        if b and draw.chance(0.1):
            b[draw.below(len(b))] = draw.of((0, 1, 2, 3))
        if draw.chance(0.15):
            b = b + [1] * (1 + draw.below(2))
        a = [1 if draw.chance(0.08) else size for size in a]
        axis = -1 if draw.chance(0.15) else start
        if draw.chance(0.1):
            axis += draw.of((-1, 1))
        if draw.chance(0.15):
            a, b = b, a
        drawn.append([a, b, axis])
    return distinct(own + corners + small + drawn)


def mappings(random_mappings=2500):
    """An operand, a shape and the shape's axes: all small ones, and random ones up to rank 4."""
    own = []
    for case in read_documents():
        if case["rule"] == "axes":
            kept = [k for k in range(len(case["shape"])) if k not in case["broadcast_axes"]]
            own.append([case["shapes"][0], case["shape"], kept])
    corners = [
        [[2, 3], [2, 4, 3], [0, 2]], [[2, 3], [3, 2], [1, 0]], [[3, 3], [3, 4], [0, 0]],
        [[3], [2, 3], [-1]], [[1, 3], [2, 3], [0, 1]], [[2, 3], [2, 3], [0]], [[3], [2, 3], [0, 1]],
        [[], [2, 3], [5]], [[2, 3, 4], [4, 3, 2], [2, 1, 0]],
    ]
    small = []
    for data in shapes(1, range(4)):
        for target in shapes(2, range(4)):
            small.append([data, target, []])
            small += [[data, target, [axis]] for axis in range(-1, 3)]
    draw = Draw("mappings")
    drawn = []
    for _ in range(random_mappings):
        target = shape(draw)
        axes = [axis for axis in range(len(target)) if draw.chance(0.6)]
        data = [1 if draw.chance(0.2) else target[axis] for axis in axes]
        if data and draw.chance(0.1):
            data[draw.below(len(data))] = draw.of((0, 1, 2, 3))
        if axes and draw.chance(0.12):
            axes[draw.below(len(axes))] = draw.below(len(target) + 2) - 1
        if draw.chance(0.05):
            axes = axes[:-1] if draw.chance(0.5) else axes + [draw.below(4)]
        drawn.append([data, target, axes])
    return distinct(own + corners + small + drawn)


def broadcast_axes(random_axes=1200):
    """An operand, a shape and the set of the shape's axes that the operand lacks."""
    own = [[c["shapes"][0], c["shape"], c["broadcast_axes"]] for c in read_documents() if c["rule"] == "axes"]
    small = []
    for data in shapes(1, range(4)):
        for target in shapes(2, range(4)):
            for axes in ([], [0], [1], [0, 1], [2]):
                small.append([data, target, axes])
    draw = Draw("broadcast axes")
    drawn = []
    for _ in range(random_axes):
        target = shape(draw)
        axes = [axis for axis in range(len(target)) if draw.chance(0.5)]
        data = [size for axis, size in enumerate(target) if axis not in axes]
        if data and draw.chance(0.2):
            data[draw.below(len(data))] = draw.of((0, 1, 2, 3))
        if draw.chance(0.1):
            axes = axes[1:] if draw.chance(0.5) else axes + [len(target)]
        drawn.append([data, target, axes])
    return distinct(own + small + drawn)


# Dimensions that are not known: `?` is any size, `2..4` is 2, 3 or 4.
INTERVALS = ["?", 0, 1, 3, "..1", "1..3", "2..4", "5..8", "2..", "..2", "3.."]


def partial_pairs(random_pairs=500):
    """All pairs of one dimension, and random ones; None is a shape of unknown rank."""
    small = [[[a], [b]] for a in INTERVALS for b in INTERVALS]
    corners = [
        [None, [2, 3]], [[2, "?"], ["?", 1, 4]], [["?", "?"], [3]], [[3], ["?", "?"]],
        [[2, 3, "?", 5], [3, "?"]], [["?", 3, 4, 5], [1, 3]], [[], ["?"]],
        [["1..3", "2..7"], ["?", "?"]], [["?", 2, "1..3"], ["3..5", 1, 2]],
        [["1..", "2.."], ["..4", "..4"]], [None, None], [[2, 3], None], [["?"], []],
    ]
    draw = Draw("partial")
    drawn = []
    for _ in range(random_pairs):
        pair = []
        for _ in range(2):
            one = [draw.of(INTERVALS) if draw.chance(0.6) else draw.of((1, 2, 3)) for _ in range(draw.below(4))]
            pair.append(None if draw.chance(0.04) else one)
        drawn.append(pair)
    return distinct(corners + small + drawn)


def read_documents():
    if not EXAMPLES:
        with open(os.path.join(HERE, "..", "documents.json")) as file:
            EXAMPLES.extend(json.load(file)["examples"])
    return EXAMPLES


def documents(rule):
    return [case["shapes"] for case in read_documents() if case["rule"] == rule]


def elements(own):
    count = 1
    for size in own:
        count *= size
    return count


def ask(op, rule, own, **parameters):
    """A case, its keys in the order in which they are written."""
    case = {"op": op, "rule": rule}
    case.update(parameters)
    case["shapes"] = own
    return case


def valued(case, out, n):
    """True for the cases of which values are recorded: one in n, few of them with less than two elements."""
    return elements(out) <= SMALL and sampled(case, n if elements(out) > 1 else 12 * n)


def sampled(case, n):
    """True for one case in n, always the same ones, and for examples that state values."""
    for example in read_documents():
        if "from" in example and example["shape"] == case.get("shape") and example["shapes"] == case["shapes"]:
            return True
    return zlib.crc32(json.dumps(case, sort_keys=True).encode()) % n == 0


def plainly(cases, answer):
    """Answers in this process, for systems that never bring it down."""
    for case in distinct(cases):
        reply = dict(case)
        for update in answer(case):
            reply.update(update)
        yield {key: value for key, value in reply.items() if value is not None or key == "out"}


def isolated(cases, answer, batch=250, alone=lambda case: False, patience=120):
    """Answers in children of this process, since a crash is an answer too.

    `answer(case)` yields updates. Before a step that may die it yields what holds if it does
    ({"ran": CRASHED}), and afterwards what was seen, None for nothing. Cases that may harm the
    ones after them are `alone` in a child.
    """
    cases = distinct(cases)
    at = 0
    while at < len(cases):
        end = at + 1
        if not alone(cases[at]):
            while end < len(cases) and end - at < batch and not alone(cases[end]):
                end += 1
        done = 0
        for reply in child(cases[at:end], answer, patience):
            yield reply
            done += 1
        at += done


def child(cases, answer, patience):
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            if not os.environ.get("SHOW"):
                os.dup2(quiet, 2)
            with os.fdopen(writing, "w") as out:
                for case in cases:
                    for update in answer(case):
                        out.write(json.dumps(update) + "\n")
                        out.flush()
                    out.write("{}\n")
                    out.flush()
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    reply, died, pending, start = {"out": CRASHED}, None, b"", time.time()
    at = 0
    while at < len(cases):
        ready, _, _ = select.select([reading], [], [], max(0.1, start + patience - time.time()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            died = "hung"
            break
        data = os.read(reading, 1 << 16)
        if not data:
            break
        pending += data
        lines = pending.split(b"\n")
        pending = lines.pop()
        for line in lines:
            update = json.loads(line.decode())
            if update:
                reply.update(update)
                continue
            yield merged(cases[at], reply)
            at += 1
            reply, start = {"out": CRASHED}, time.time()
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    if at < len(cases):
        if not os.WIFSIGNALED(status) and not died:
            raise SystemExit("the recorder itself failed on %s" % json.dumps(cases[at]))
        if CRASHED not in reply.values():
            # It died after a step, of what the step had done.
            reply[[key for key in ("out", "ran", "cpu") if key in reply][-1]] = CRASHED
        reply["signal"] = died or signal.Signals(os.WTERMSIG(status)).name
        yield merged(cases[at], reply)


def merged(case, reply):
    out = dict(case)
    out.update((key, value) for key, value in reply.items() if value is not None or key == "out")
    return out


def write(system, versions, answers):
    """Writes the header and the answers to the file that the command line names."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: %s OUTPUT.jsonl" % sys.argv[0])
    header = {"system": system, "versions": versions, "seed": SEED}
    count, valued = 0, 0
    with open(sys.argv[1] + ".part", "w") as out:
        out.write(line(header))
        for answer in answers:
            out.write(line(answer))
            count += 1
            valued += "from" in answer or "sums" in answer
    os.replace(sys.argv[1] + ".part", sys.argv[1])
    sys.stdout.write("%s: %d cases, %d of them with values\n" % (system, count, valued))


def line(value):
    return json.dumps(value, separators=(",", ":")) + "\n"
