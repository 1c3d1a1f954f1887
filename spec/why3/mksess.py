#!/usr/bin/env python3
"""Prove every goal of a WhyML file with several provers and write a Why3 session.
usage: mksess.py FILE.mlw SESSIONDIR [-t short] [-T long] [--only theory]
For each goal: the first prover on the whole; then split_vc and every prover in turn until
each part is proved, first with the short limit, then with the long one. The session is then checked by `why3 replay`."""

import argparse
import html
import os
import re
import subprocess

ap = argparse.ArgumentParser()
ap.add_argument("file")
ap.add_argument("session")
ap.add_argument("-t", type=int, default=3)
ap.add_argument("-T", type=int, default=20)
ap.add_argument("--only", default="")
ap.add_argument("-v", action="store_true")
ap.add_argument("--provers", default="CVC5,1.0.3;CVC4,1.8;Z3,4.8.12")
a = ap.parse_args()
PROV = [tuple(p.split(",")) for p in a.provers.split(";")]
MEM = 4000
cache: dict = {}


def prove(theory, goal, prover, limit, split):
    cmd = [
        "why3",
        "prove",
        "-L",
        ".",
        a.file,
        "-T",
        theory,
        "-G",
        goal,
        "-P",
        ",".join(prover) + ",",
        "-t",
        str(limit),
        "-m",
        str(MEM),
    ]
    if split:
        cmd += ["-a", "split_vc"]
    r = subprocess.run(cmd, capture_output=True, text=True)
    out = r.stdout + r.stderr
    res = []
    # blocks: 'File "..", line..' / 'Goal X.' / optional expl / 'Prover result is: Valid (0.09s, 12420 steps).'
    for m in re.finditer(
        r"(?:Sub-goal|Goal) (.*?)\.\nProver result is: (\w+(?: \w+)?)(?: \([^()]*\))? \(([\d.]+)s(?:, (\d+) steps)?\)",
        out,
        re.S,
    ):
        res.append((m.group(1), m.group(2), float(m.group(3)), int(m.group(4) or 0)))
    if not res:
        print("??", cmd, out[:500])
    return res


def theories():
    r = []
    for line in open(a.file):
        m = re.match(r"(?:module|theory)\s+(\w+)", line)
        if m:
            r.append(m.group(1))
    return r


def goals(theory):
    # quick listing with a limit of 1 and the first prover
    cmd = [
        "why3",
        "prove",
        "-L",
        ".",
        a.file,
        "-T",
        theory,
        "-P",
        ",".join(PROV[0]) + ",",
        "-t",
        str(a.t),
        "-m",
        str(MEM),
    ]
    out = subprocess.run(cmd, capture_output=True, text=True)
    o = out.stdout + out.stderr
    if out.returncode not in (0, 2):
        print(o[:2000])
    res = []
    for m in re.finditer(
        r"Goal (\S+)\.\nProver result is: (\w+(?: \w+)?)(?: \([^()]*\))? \(([\d.]+)s(?:, (\d+) steps)?\)", o
    ):
        res.append((m.group(1), m.group(2), float(m.group(3)), int(m.group(4) or 0)))
    return res


def one(theory, g, first=None):
    """-> ('p',prover,time,steps) | ('s',[(name,expl,(prover,time,steps)|None)]) | None"""
    if first and first[1] == "Valid":
        return ("p", 0, first[2], first[3])
    best = None
    parts = None
    for limit in (a.t, a.T):
        for i, p in enumerate(PROV):
            r = prove(theory, g, p, limit, True)
            if len(r) == 1:
                if r[0][1] == "Valid":
                    return ("p", i, r[0][2], r[0][3])
                continue
            if not r:
                continue
            parts = parts or r
            if best is None:
                best = [None] * len(r)
            for j, x in enumerate(r):
                if x[1] == "Valid" and best[j] is None:
                    best[j] = (i, x[2], x[3], limit)
            if all(best):
                return ("s", [(f"{g}.{j}", r[j][0], best[j]) for j in range(len(r))])
    if best:
        return ("s", [(f"{g}.{j}", parts[j][0], best[j]) for j in range(len(best))])
    return None


out = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE why3session PUBLIC "-//Why3//proof session v5//EN"',
    '"http://why3.lri.fr/why3session.dtd">',
    '<why3session shape_version="6">',
]
for i, p in enumerate(PROV):
    out.append(f'<prover id="{i}" name="{p[0]}" version="{p[1]}" timelimit="{a.T}" steplimit="0" memlimit="{MEM}"/>')
out.append('<file format="whyml">')
out.append(f'<path name=".."/><path name=".."/><path name="{os.path.basename(a.file)}"/>')


def esc(x):
    return html.escape(x).replace("&#x27;", "&#39;")


def pr(i, t, s):
    return f'<proof prover="{i}"><result status="valid" time="{t:.2f}"' + (f' steps="{s}"' if s else "") + "/></proof>"


ok = bad = 0
tot = 0.0
hist: dict = {}
for th in theories():
    if a.only and th not in a.only.split(","):
        continue
    gs = goals(th)
    if not gs:
        continue
    out.append(f'<theory name="{th}">')
    for g in gs:
        r = one(th, g[0], g)
        out.append(f'<goal name="{esc(g[0])}">')
        if r is None:
            print(f"FAIL {th}.{g[0]}", flush=True)
            bad += 1
        elif r[0] == "p":
            out.append(pr(*r[1:]))
            ok += 1
            tot += r[2]
            hist[r[1]] = hist.get(r[1], 0) + 1
            if a.v or r[2] > 2:
                print(f"ok   {th}.{g[0]} {PROV[r[1]][0]} {r[2]:.2f}", flush=True)
        else:
            out.append('<transf name="split_vc">')
            for n, e, b in r[1]:
                out.append(f'<goal name="{esc(n)}">')
                if b:
                    out.append(pr(*b[:3]))
                    ok += 1
                    tot += b[1]
                    hist[b[0]] = hist.get(b[0], 0) + 1
                else:
                    bad += 1
                    print(f"FAIL {th}.{n} [{e}]", flush=True)
                out.append("</goal>")
            out.append("</transf>")
            if a.v:
                print(f"split {th}.{g[0]} {len(r[1])} parts", flush=True)
        out.append("</goal>")
    out.append("</theory>")
out += ["</file>", "</why3session>"]
os.makedirs(a.session, exist_ok=True)
open(os.path.join(a.session, "why3session.xml"), "w").write("\n".join(out) + "\n")
print(f"{ok} parts proved, {bad} not; prover seconds {tot:.1f}; by prover", {PROV[k][0]: v for k, v in hist.items()})
