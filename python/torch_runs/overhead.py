"""What a guard costs: microseconds a call of PyTorch, beside no mode and beside a mode that does nothing.

    python overhead.py

The target is 2.5 µs over the plain call where operands have one shape, or shapes that are known.
"""

import timeit

import torch
from torch.overrides import TorchFunctionMode

import simulcast.torch


class Empty(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def best(call, number=4000, repeat=25):
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e6


def main():
    torch.set_num_threads(1)
    a, b, row, mask = torch.ones(8, 8), torch.ones(8, 8), torch.ones(8), torch.ones(8, 8) > 0
    calls = {
        "a + b": lambda: a + b,
        "a * 2": lambda: a * 2,
        "a + row": lambda: a + row,
        "a.relu()": lambda: a.relu(),
        "a.shape": lambda: a.shape,
        "torch.where(mask, a, b)": lambda: torch.where(mask, a, b),
        "F.mse_loss(a, b)": lambda: torch.nn.functional.mse_loss(a, b),
    }
    print(f"{'µs':26} {'plain':>7} {'empty mode':>11} {'guard':>7} {'guard - plain':>14} {'guard - empty':>14}")
    for name, call in calls.items():
        plain = best(call)
        with Empty():
            empty = best(call)
        with simulcast.torch.guard():
            guarded = best(call)
        print(f"{name:26} {plain:7.2f} {empty:11.2f} {guarded:7.2f} {guarded - plain:14.2f} {guarded - empty:14.2f}")


if __name__ == "__main__":
    main()
