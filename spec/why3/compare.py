#!/usr/bin/env python3
"""Compares the oracle with a second reading of the rules, written here without frames, and
with NumPy where NumPy has the rule. usage: compare.py ORACLE [CASES]

The second reading lays every operand out as an array of the result's rank (`place`), checks
sizes by the documents' sentences, and reads elements through NumPy's own stretching."""

import itertools
import random
import subprocess
import sys

import numpy as np

oracle, cases = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
random.seed(1)


class No(Exception):
    pass


def text(s):
    return ",".join(map(str, s)) or "-"


def join(*shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise No("E1") from None


def stretch(a, z):
    if join(a.shape, z) != z:
        raise No("E1")
    return np.broadcast_to(a, z)


def lay(a, n, s):
    """`a` from axis s of n axes, ones elsewhere."""
    return a.reshape((1,) * s + a.shape + (1,) * (n - s - a.ndim))


def default(axis, d):
    return d if axis in (None, -1) else axis


def rule(name, xs, p):
    """The result's shape and each operand's elements on it, or No."""
    if name == "exact":
        if len({len(x.shape) for x in xs}) > 1:
            raise No("refused")
        if len({x.shape for x in xs}) > 1:
            raise No("E1")
        return (xs[0].shape if xs else ()), xs
    if name == "numpy":
        z = join(*[x.shape for x in xs])
        return z, [stretch(x, z) for x in xs]
    if name == "unidirectional":
        z = xs[0].shape if xs else ()
        if any(x.ndim > len(z) for x in xs):
            raise No("refused")
        return z, [stretch(x, z) for x in xs]
    if name in ("pdpd", "legacy"):
        if len(xs) != 2 or xs[1].ndim > xs[0].ndim:
            raise No("refused")
        a, b = xs
        s = default(p[0], a.ndim - b.ndim)
        if not 0 <= s <= a.ndim:
            raise No("refused")
        if name == "legacy" and s + b.ndim > a.ndim:
            if any(d != 1 for d in b.shape):
                raise No("overhang")
            b = b.reshape(())
            s = a.ndim
        shape = list(b.shape)
        clash = any(d != 1 and d != a.shape[s + k] for k, d in enumerate(shape) if s + k < a.ndim)
        over = any(d != 1 for k, d in enumerate(shape) if s + k >= a.ndim)
        if clash or over:
            raise No("E1" if clash else "overhang")
        b = b.reshape(shape[: a.ndim - s])
        return a.shape, [a, stretch(lay(b, a.ndim, s), a.shape)]
    if name == "paddle":
        if len(xs) != 2:
            raise No("refused")
        a, b = xs
        if a.ndim == b.ndim and p[0] not in (None, -1, 0):
            if a.shape != b.shape:
                raise No("E1")
            return a.shape, xs
        n, r = max(a.ndim, b.ndim), min(a.ndim, b.ndim)
        s = default(p[0], n - r)
        if a.ndim != b.ndim and not (0 <= s < n and s + r <= n):
            raise No("refused")
        ys = [x if x.ndim == n else lay(x, n, s) for x in xs]
        z = join(*[y.shape for y in ys])
        return z, [stretch(y, z) for y in ys]
    if name == "named":
        names = p[0]
        if len(names) != len(xs) or any(len(n) != x.ndim or len(set(n)) < len(n) for n, x in zip(names, xs)):
            raise No("refused")
        order = list(dict.fromkeys(itertools.chain(*names)))
        ys = []
        for n, x in zip(names, xs):
            y = x.transpose([n.index(a) for a in order if a in n])
            it = iter(y.shape)
            ys.append(y.reshape([next(it) if a in n else 1 for a in order]))
        z = join(*[y.shape for y in ys])
        return z, [stretch(y, z) for y in ys]
    if len(xs) != 1:
        raise No("refused")
    x, t = xs[0], p[0]
    if name == "bidirectional":
        z = join(x.shape, t)
        return z, [stretch(x, z)]
    if name == "to":
        if x.ndim > len(t):
            raise No("refused")
        return t, [stretch(x, t)]
    if name == "axes":
        if any(not 0 <= a < len(t) for a in p[1]):
            raise No("refused")
        kept = [d for j, d in enumerate(t) if j not in p[1]]
        if len(kept) != x.ndim:
            raise No("refused")
        if tuple(kept) != x.shape:
            raise No("E1")
        return t, [np.broadcast_to(np.expand_dims(x, tuple(set(p[1]))), t)]
    if name == "mapping":
        q = p[1]
        if len(q) != x.ndim or any(not 0 <= a < len(t) for a in q) or any(a >= b for a, b in zip(q, q[1:])):
            raise No("refused")
        y = np.expand_dims(x, tuple(j for j in range(len(t)) if j not in q))
        return t, [stretch(y, t)]
    raise AssertionError(name)


def shape(top=4):
    return tuple(random.choice([0, 1, 1, 1, 2, 3, 3]) for _ in range(random.randint(0, top)))


def thin(s):
    """A shape that has a chance to fit `s`: some sizes become 1."""
    return tuple(random.choice([d, d, 1, 3]) if random.random() < 0.6 else d for d in s)


def request():
    name = random.choice("exact numpy unidirectional pdpd legacy paddle named bidirectional to axes mapping".split())
    z = shape()
    axis = random.choice([None, -1, 0, 1, 2, 3, 4, 5, -2])
    if name in ("exact", "numpy", "unidirectional"):
        xs = [
            thin(z[random.choice([0, 0, 1]) :]) if name != "exact" or random.random() < 0.2 else z
            for _ in range(random.randint(0, 4))
        ]
        if name == "unidirectional" and xs:
            xs[0] = z[random.choice([0, 0, 0, 1]) :]
        return name, xs, [], []
    if name in ("pdpd", "legacy", "paddle"):
        s = random.randint(0, len(z))
        b = thin(z[s : random.randint(s, len(z))]) + (1,) * random.choice([0, 0, 1, 2])
        xs = [thin(z) if name == "paddle" else z, b]
        if random.random() < 0.2 or name == "paddle" and random.random() < 0.5:
            xs.reverse()
        axis = random.choice([axis, s])
        return name, xs, [axis], ["none" if axis is None else str(axis)]
    if name == "named":
        xs, names = [], []
        sizes = [random.choice([0, 1, 2, 3]) for _ in range(5)]
        for _ in range(random.randint(0, 3)):
            n = random.sample(range(5), random.randint(0, 3))
            if random.random() < 0.05 and n:
                n.append(n[0])
            names.append(n)
            xs.append(tuple(random.choice([sizes[a]] * 5 + [1, 1, 1, 3]) for a in n))
        return name, xs, [names], [";".join(map(text, names)) or "."]
    if name == "bidirectional" or name == "to":
        t = thin(z[random.choice([0, 0, 0, 1]) :])
        return name, [thin(z[random.randint(0, len(z)) :] if random.random() < 0.7 else z)], [t], [text(t)]
    q = sorted(random.sample(range(len(z)), random.randint(0, len(z))))
    if name == "axes":
        x = tuple(d for j, d in enumerate(z) if j not in q)
    else:
        x = thin(tuple(z[j] for j in q))
    if random.random() < 0.2:
        q = [random.randint(-1, 4) for _ in q] if random.random() < 0.5 else q + [4]
    if random.random() < 0.1:
        x = thin(x)
    return name, [x], [z, q], [text(z), text(q)]


lines, wanted = [], []
for _ in range(cases):
    name, xs, params, shown = request()
    arrays = [np.arange(int(np.prod(x, dtype=int))).reshape(x) for x in xs]
    try:
        z, ys = rule(name, arrays, params)
        what = random.choice(["shape", "elements", "sum"])
        if what == "shape":
            want = "ok " + text(z)
        elif what == "elements":
            want = "|".join(["ok " + text(z)] + [text(np.asarray(y).ravel()) for y in ys])
        else:
            values = np.arange(int(np.prod(z, dtype=int)))
            sums = []
            for x, y in zip(arrays, ys):
                g = np.zeros(x.size, dtype=int)
                np.add.at(g, np.asarray(y).ravel(), values)
                sums.append(text(g))
            want = "|".join(["ok " + text(z)] + sums)
    except No as no:
        what, want = "shape", str(no)
    lines.append(" ".join([what, name, ";".join(map(text, xs)) or "."] + shown))
    wanted.append(want)

got = subprocess.run([oracle], input="\n".join(lines) + "\n", capture_output=True, text=True).stdout.split("\n")
# which of two reasons is met first is the loop's affair
sizes = {"E1", "overhang"}
bad = [(q, w, g) for q, w, g in zip(lines, wanted, got) if w != g and not {w, g} <= sizes]
kinds: dict = {}
for line, said in zip(lines, got):
    kind = (line.split()[1], "ok" if said.startswith("ok") else said)
    kinds[kind] = kinds.get(kind, 0) + 1
for (name, k), n in sorted(kinds.items()):
    print(f"{name:15} {k:9} {n}")
print(len(lines), "requests,", len(bad), "different")
for b in bad[:10]:
    print(*b, sep="\n  ")
sys.exit(1 if bad or len(got) < len(lines) else 0)
