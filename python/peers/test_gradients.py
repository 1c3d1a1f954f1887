"""Gradients beside those of PyTorch and JAX, and `simulcast.torch.evaluate`. `cargo xtask test gradients`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from random_expressions import expression, operands

import simulcast
import simulcast.torch

jax.config.update("jax_enable_x64", True)


def reduced(of, function, axis, keepdims):
    """A reduction of PyTorch's; of `max`, the one that shares the gradient between equals."""
    whole = axis is None
    if function is torch.prod:
        return of.prod() if whole else of.prod(dim=axis, keepdim=keepdims)
    return function(of) if whole else function(of, dim=axis, keepdim=keepdims)


def test_clip_at_its_bounds_is_what_jax_has():
    x, low, high = np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.array([0.0, 0, 0, 0.5, 3]), np.array([1.0, 1, 0.5, 1, 2])
    grad = np.array([1.0, 2, 4, 8, 16])

    def of_torch(function):
        own = [torch.tensor(array, requires_grad=True) for array in (x, low, high)]
        return [slope.numpy() for slope in torch.autograd.grad(function(*own), own, torch.tensor(grad))]

    ours = simulcast.vjp("clip", (x, low, high), grad)
    program = simulcast.grad("clip(x, low, high)", ["x", "low", "high"], gradient="g")(x=x, low=low, high=high, g=grad)
    theirs = jax.vjp(jnp.clip, x, low, high)[1](jnp.asarray(grad))
    composed = of_torch(lambda x, low, high: torch.minimum(torch.maximum(x, low), high))
    for own, other, jaxs, torchs in zip(ours, program, theirs, composed):
        assert own.tolist() == other.tolist() == jaxs.tolist() == torchs.tolist()
    # Bounds that do not cross: torch.clamp by tensors shares too; by numbers it gives 0 at a bound.
    apart = low < high
    for own, torchs in zip(ours, of_torch(torch.clamp)):
        assert own[apart].tolist() == torchs[apart].tolist()
    at_bounds = torch.tensor([0.0, 0.5, 1.0], requires_grad=True)
    assert torch.autograd.grad(torch.clamp(at_bounds, 0.0, 1.0).sum(), at_bounds)[0].tolist() == [0, 1, 0]


def bounded(of, low, high):
    """What `clip` is in an expression."""
    return torch.minimum(torch.maximum(tensor(of), tensor(low)), tensor(high))


def tensor(value):
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)


def of_tensors(function):
    return lambda *args: function(*map(tensor, args))


def reducing(function):
    return lambda of, axis=None, keepdims=False: reduced(tensor(of), function, axis, keepdims)


ELEMENTWISE = "sin cos tanh arctan arcsinh log sqrt log1p exp arctan2 maximum minimum abs".split()
TORCH = {name: of_tensors(getattr(torch, name)) for name in ELEMENTWISE}
TORCH |= {"sum": reducing(torch.sum), "mean": reducing(torch.mean), "max": reducing(torch.amax), "prod": reducing(torch.prod)}
TORCH["clip"] = bounded
TORCH["where"] = lambda which, yes, no: torch.where(torch.as_tensor(which), tensor(yes), tensor(no))
JAX = {name: getattr(jnp, name) for name in [*ELEMENTWISE, "where", "sum", "mean", "max", "prod"]}
JAX["clip"] = lambda of, low, high: jnp.minimum(jnp.maximum(of, low), high)


def cases(seed, count, smooth):
    random = np.random.default_rng(seed)
    while count:
        text, given = f"sum({expression(random, 4, smooth)} + 0 * a)", operands(random)
        names = simulcast.compile(text).operands
        given = {name: given[name] for name in names}
        gradients = simulcast.grad(text, wrt=names)(**given)
        if all(np.isfinite(own).all() and np.abs(own).max(initial=0) < 1e100 for own in gradients):
            count -= 1
            yield text, given, gradients


@pytest.mark.parametrize("seed", range(30))
def test_gradients_are_those_of_pytorch(seed):
    for text, given, gradients in cases(seed, 100, smooth=False):
        tensors = {name: torch.tensor(own, requires_grad=True) for name, own in given.items()}
        value = eval(text, {**TORCH, **tensors})
        expected = torch.autograd.grad(value, list(tensors.values()), allow_unused=True)
        for name, own, theirs in zip(given, gradients, expected):
            theirs = np.zeros_like(own) if theirs is None else theirs.numpy()
            assert np.allclose(own, theirs, rtol=1e-9, atol=1e-10 * (1 + np.abs(theirs).max(initial=0))), (text, name)


@pytest.mark.parametrize("seed", range(10))
def test_gradients_are_those_of_jax(seed):
    for text, given, gradients in cases(1000 + seed, 100, smooth=False):
        names = list(given)
        whole = jax.grad(lambda *own: eval(text, {**JAX, **dict(zip(names, own))}), argnums=tuple(range(len(names))))
        for name, own, theirs in zip(names, gradients, whole(*given.values())):
            assert np.allclose(own, theirs, rtol=1e-9, atol=1e-10 * (1 + np.abs(theirs).max(initial=0))), (text, name)


@pytest.mark.parametrize("seed", range(10))
def test_second_gradients_are_those_of_pytorch(seed):
    random = np.random.default_rng(2000 + seed)
    for text, given, _ in cases(2000 + seed, 20, smooth=True):
        tensors = {name: torch.tensor(own, requires_grad=True) for name, own in given.items()}
        along = {name: torch.tensor(random.standard_normal(own.shape)) for name, own in given.items()}

        def second(value):
            first = torch.autograd.grad(value, list(tensors.values()), create_graph=True, allow_unused=True)
            sums = [(own * along[name]).sum() for name, own in zip(tensors, first) if own is not None]
            sums = [own for own in sums if own.requires_grad]
            if not sums:
                return [None] * len(tensors)
            return torch.autograd.grad(sum(sums), list(tensors.values()), allow_unused=True)

        ours = second(simulcast.torch.evaluate(text, **tensors))
        theirs = second(eval(text, {**TORCH, **tensors}))
        for name, own, other in zip(tensors, ours, theirs):
            own = torch.zeros_like(tensors[name]) if own is None else own
            other = torch.zeros_like(tensors[name]) if other is None else other
            assert torch.allclose(own, other, rtol=1e-8, atol=1e-8 * (1 + float(other.abs().max()))), (text, name)


def test_gradcheck():
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.rand(4, dtype=torch.float64, requires_grad=True)
    k = torch.arange(4)
    for text in ("tanh(x * w) + k", "sum(x * w, axis=0)", "mean((x - w) ** 2 / (1 + x))", "where(x > 0.5, x, w * x)"):
        def function(x, w, text=text):
            given = {"x": x, "w": w, "k": k}
            return simulcast.torch.evaluate(text, **{name: given[name] for name in simulcast.compile(text).operands})

        assert torch.autograd.gradcheck(function, (x, w)) and torch.autograd.gradgradcheck(function, (x, w))
    both = lambda x, w: simulcast.torch.evaluate("x * w; sum(x, axis=1)", x=x, w=w)
    assert torch.autograd.gradcheck(both, (x, w)) and torch.autograd.gradgradcheck(both, (x, w))


def test_tensors_are_not_copied():
    x = torch.arange(6.0).reshape(2, 3)
    made = simulcast.torch.evaluate("x.T + 1", x=x)
    assert made.dtype == torch.float32 and made.shape == (3, 2)
    seen = simulcast.torch._autograd._array("x", x)
    assert seen.ctypes.data == x.data_ptr()
    result = np.ones((2, 3))
    assert simulcast.torch._autograd._tensor(result).data_ptr() == result.ctypes.data


def test_what_it_takes_and_gives():
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]], requires_grad=True)
    value = simulcast.torch.evaluate("mean(x * k)", x=x, k=2)
    assert value.dtype == torch.float32 and value.shape == () and value.requires_grad
    value.backward()
    assert x.grad.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    half = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    simulcast.torch.evaluate("sum(h * h)", h=half).backward()
    assert half.grad.dtype == torch.bfloat16 and half.grad.tolist() == [2, 2, 2]
    ints = simulcast.torch.evaluate("n * 2; n > 1", n=torch.arange(3))
    assert [own.dtype for own in ints] == [torch.int64, torch.bool]
    mixed, which = simulcast.torch.evaluate("x * 2; x > 1", x=x)
    assert mixed.requires_grad and not which.requires_grad
    with torch.no_grad():
        assert not simulcast.torch.evaluate("x * 2", x=x).requires_grad
    pdpd = simulcast.torch.evaluate("x * w", x=x, w=torch.ones(2, requires_grad=True), rule=simulcast.pdpd(axis=0), threads=1)
    pdpd.sum().backward()
    with pytest.raises(TypeError, match="no operand `y`"):
        simulcast.torch.evaluate("x", x=x, y=x)
    with pytest.raises(TypeError, match="meta"):
        simulcast.torch.evaluate("x", x=torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="sparse"):
        simulcast.torch.evaluate("x", x=torch.eye(2).to_sparse())
    named = simulcast.torch.evaluate(["rule + gradient0"], local_dict={"rule": x, "gradient0": x})
    named[0].sum().backward()


def trained(loss, parameters, steps, rate):
    losses = []
    for _ in range(steps):
        value = loss(*parameters)
        gradients = torch.autograd.grad(value, parameters)
        parameters = [(own - rate * slope).detach().requires_grad_() for own, slope in zip(parameters, gradients)]
        losses.append(float(value.detach()))
    return losses, parameters


def test_regression_with_normalisation_trains_as_pytorch_does():
    random = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=random, dtype=torch.float64) * torch.tensor([1.0, 3.0, 0.5]) + 5
    m, s = x.mean(0), x.std(0)
    y = (x - m) / s @ torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64) + 4
    start = [torch.zeros(3, dtype=torch.float64, requires_grad=True), torch.zeros((), dtype=torch.float64, requires_grad=True)]
    text = "mean((y - b - sum((x - m) / s * w, axis=1)) ** 2)"
    ours, own = trained(lambda w, b: simulcast.torch.evaluate(text, x=x, y=y, m=m, s=s, w=w, b=b), start, 150, 0.1)
    theirs, other = trained(lambda w, b: ((y - b - ((x - m) / s * w).sum(1)) ** 2).mean(), start, 150, 0.1)
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-12) and ours[-1] < 1e-10
    assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(own, other))


def test_gaussian_likelihood_trains_as_pytorch_does():
    random = torch.Generator().manual_seed(1)
    x = torch.randn(500, 4, generator=random, dtype=torch.float64) * torch.tensor([0.5, 1, 2, 1]) + torch.arange(4.0)
    start = [torch.zeros(4, dtype=torch.float64, requires_grad=True), torch.ones(500, 1, dtype=torch.float64, requires_grad=True)]
    text = "mean((x - m) ** 2 / s ** 2 + 2 * log(s))"
    ours, own = trained(lambda m, s: simulcast.torch.evaluate(text, x=x, m=m, s=s), start, 60, 0.5)
    theirs, other = trained(lambda m, s: ((x - m) ** 2 / s**2 + 2 * torch.log(s)).mean(), start, 60, 0.5)
    assert np.allclose(ours, theirs, rtol=1e-8) and ours[-1] < ours[0]
    assert all(torch.allclose(a, b, rtol=1e-7) for a, b in zip(own, other))


def test_the_example_is_what_comes_out():
    import doctest

    from simulcast.torch import _autograd

    assert doctest.testmod(_autograd) == (0, 5)
