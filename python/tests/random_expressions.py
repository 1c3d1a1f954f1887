"""Random expressions on operands that broadcast in all ways, for tests of gradients."""

import numpy as np

SHAPES = {"a": (3, 4), "b": (4,), "c": (3, 1), "d": (), "h": (2, 1, 4)}


def operands(random, dtype=np.float64):
    """Numbers between 0.3 and 1.7."""
    return {name: np.asarray(random.uniform(0.3, 1.7, shape), dtype) for name, shape in SHAPES.items()}


def expression(random, depth, smooth=False):
    """An expression that is defined and differentiable almost everywhere where its operands are positive.

    Without `smooth` it also chooses, by `where`, `maximum`, `clip` and the like.
    """
    if depth == 0 or random.integers(9) == 0:
        names = [*SHAPES, f"{random.uniform(0.4, 2):.2f}", "a"]
        return names[random.integers(len(names))]
    a, b, c = (expression(random, depth - 1, smooth) for _ in range(3))
    one = ["sin", "cos", "tanh", "arctan", "arcsinh"]
    some = ["log", "sqrt", "log1p"]
    kinds = [
        f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / (0.7 + {b} ** 2))",
        f"{one[random.integers(len(one))]}({a})",
        f"{some[random.integers(len(some))]}(0.5 + {a} ** 2)",
        f"exp(-({a}) ** 2)", f"arctan2({a}, 2 + {b} ** 2)",
        f"sum({a} + a, axis=-1, keepdims=True)", f"mean({a} + a, axis=-2, keepdims=True)",
    ]
    if not smooth:
        kinds += [
            f"maximum({a}, {b})", f"minimum({a}, {b})", f"abs({a} - {b})",
            f"where({a} < {b}, {c}, {a})", f"clip({a}, 0.4, 1.3)",
            f"max({a} + a, axis=-1, keepdims=True)", f"prod({a} + a, axis=-1, keepdims=True)",
        ]
    return kinds[random.integers(len(kinds))]
