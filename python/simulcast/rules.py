"""Every rule under which shapes meet, by its constructor.

>>> import simulcast
>>> from simulcast import rules
>>> simulcast.broadcast_shapes((2, 3, 4, 5), (3, 4), rule=rules.pdpd(axis=1))
(2, 3, 4, 5)
>>> rules.numpy() == simulcast.Rule("numpy")
True
>>> rule = rules.to((2, 3))
>>> rule.kind, rule.axis, rule.target
('to', None, (2, 3))
"""

from ._simulcast import Rule, axes, bidirectional, legacy, mapping, named, paddle, pdpd, to, unidirectional

__all__ = [
    "Rule",
    "axes",
    "bidirectional",
    "exact",
    "legacy",
    "mapping",
    "named",
    "numpy",
    "paddle",
    "pdpd",
    "to",
    "unidirectional",
]


def exact() -> Rule:
    """All shapes are equal; nothing is repeated."""
    return Rule("exact")


def numpy() -> Rule:
    """Right-aligned; on each axis the sizes other than 1 agree."""
    return Rule("numpy")
