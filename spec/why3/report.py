"""Prints one line a module of a Why3 session. usage: report.py FILE SESSION STATUS SECONDS
Exit status 1 when a goal of the session, or a module of the file, has no complete proof."""

import collections
import sys
import xml.etree.ElementTree as ET

name, session, status, wall = sys.argv[1:]
root = ET.parse(session).getroot()
provers = {p.get("id"): p.get("name") for p in root.iter("prover")}


def closed(goal, by):
    """Whether `goal` is proved; adds to `by` what each prover did for it."""
    for proof in goal.findall("proof"):
        result = proof.find("result")
        if result is not None and result.get("status") == "valid" and proof.get("obsolete") != "true":
            by[provers[proof.get("prover")]].append(float(result.get("time")))
            return True
    for step in goal.findall("transf"):
        if all([closed(part, by) for part in step.findall("goal")]):
            return True
    return False


goals = missing = 0
for theory in root.iter("theory"):
    by: dict = collections.defaultdict(list)
    bad = [g.get("name") for g in theory.findall("goal") if not closed(g, by)]
    n = len(theory.findall("goal"))
    goals, missing = goals + n, missing + len(bad)
    used = ", ".join(f"{p} {len(t)}" for p, t in sorted(by.items()))
    seconds = sum(sum(t) for t in by.values())
    print(f"{name:14} {theory.get('name'):14} {n:3} goals  {seconds:6.1f} s  parts: {used}")
    for g in bad:
        print(f"{name:14} {theory.get('name')}.{g} UNPROVED")
print(f"{name:14} {'':14} {goals:3} goals  {missing} unproved  replay {status}, {wall} s by the clock")
sys.exit(1 if missing or status != "ok" else 0)
