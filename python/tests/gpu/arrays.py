"""Arrays of PyTorch, CuPy and JAX on a GPU, computed where they lie: `cargo xtask test gpu`.

A program of its own rather than tests of pytest: a machine with a GPU may have nothing but the libraries. What is
not installed is skipped. Each check is a function; the last line says how many passed.
"""

import os
import sys
import threading
import time
import traceback

import numpy as np
import simulcast


def _try(name):
    try:
        return __import__(name)
    except ImportError:
        return None


torch, cupy, jax = _try("torch"), _try("cupy"), _try("jax")
CHECKS: list = []


def check(*needs):
    def add(function):
        CHECKS.append((function, needs))
        return function

    return add


def raises(kind, *words):
    class Raises:
        def __enter__(self):
            return self

        def __exit__(self, got, error, _):
            assert got is not None, f"no {kind.__name__}"
            assert issubclass(got, kind), f"{got.__name__}: {error}"
            for word in words:
                assert word in str(error), f"{word!r} is not in {error}"
            return True

    return Raises()


def numbers(*shape, kind=np.float32, seed=0):
    made = np.random.default_rng(seed + sum(shape)).standard_normal(shape) * 3
    return made.astype(kind)


def near(got, expected, bound=1e-5):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=bound, atol=bound)


EXPRESSIONS = [
    ("(x - m) / s", dict(x=(64, 33), m=(33,), s=(64, 1))),
    ("where(x > m, x, m) * 2 + 1", dict(x=(5, 64), m=(64,))),
    ("sum(x * m, axis=-1)", dict(x=(37, 70), m=(70,))),
    ("x - mean(x, axis=0, keepdims=True)", dict(x=(40, 9))),
    ("exp(x - max(x, axis=-1, keepdims=True))", dict(x=(16, 1000))),
    ("x.T + m", dict(x=(128, 65), m=(128,))),
    ("sum(x)", dict(x=(3, 4, 5))),
    ("x + 1", dict(x=(0, 4))),
]


def libraries():
    if torch is not None:
        yield "torch", lambda own: torch.from_numpy(own.copy()).cuda(), lambda got: got.cpu().numpy(), torch.Tensor
    if cupy is not None:
        yield "cupy", cupy.asarray, cupy.asnumpy, cupy.ndarray
    if jax is not None:
        yield "jax", jax.numpy.asarray, np.asarray, jax.Array


@check()
def expressions_of_every_library():
    for name, there, here, kind in libraries():
        for text, shapes in EXPRESSIONS:
            own = {key: numbers(*shape) for key, shape in shapes.items()}
            expected = simulcast.evaluate(text, **own)
            got = simulcast.evaluate(text, **{key: there(x) for key, x in own.items()})
            assert isinstance(got, kind), (name, type(got))
            assert here(got).dtype == expected.dtype and here(got).shape == expected.shape, (name, text)
            near(here(got), expected)


@check()
def functions_of_every_type():
    kinds = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
    for name, there, here, kind in libraries():
        for dtype in map(np.dtype, kinds.split()):
            if name == "jax" and dtype.itemsize >= 8 and dtype != np.complex64:
                continue
            x, y = numbers(33, 20, kind=np.float64).astype(dtype), numbers(20, kind=np.float64, seed=1).astype(dtype)
            for function in ("add", "multiply", "equal", "maximum" if dtype.kind != "c" else "subtract"):
                if dtype == bool and function == "subtract":
                    continue
                call = getattr(simulcast, function)
                expected = call(x, y)
                got = call(there(x), there(y))
                assert isinstance(got, kind), (name, function, type(got))
                assert here(got).dtype == expected.dtype, (name, function, dtype, here(got).dtype)
                np.testing.assert_array_equal(here(got), expected, f"{name} {function} {dtype}")


@check()
def numbers_of_python_adopt_types():
    for name, there, here, _ in libraries():
        x = numbers(6, 5)
        for call in (lambda x: simulcast.multiply(x, 2), lambda x: simulcast.add(0.5, x), lambda x: simulcast.power(x, 2),
                     lambda x: simulcast.where(simulcast.greater(x, 0), x, -1), lambda x: simulcast.clip(x, -1, 2),
                     lambda x: simulcast.evaluate("x * k", x=x, k=3), lambda x: simulcast.multiply(x, np.float32(3))):
            got = here(call(there(x)))
            assert got.dtype == np.float32, name
            near(got, call(x), 1e-6)


@check()
def rules_and_dtypes():
    for name, there, here, _ in libraries():
        x, y = numbers(4, 3, 2), numbers(4, 3, seed=2)
        rule = simulcast.pdpd(axis=0)
        near(here(simulcast.add(there(x), there(y), rule=rule)), simulcast.add(x, y, rule=rule))
        near(here(simulcast.add(there(x), 2, rule=rule)), simulcast.add(x, 2))
        near(here(simulcast.evaluate("x * y", x=there(x), y=there(y), rule=rule)), simulcast.multiply(x, y, rule=rule))
        got = here(simulcast.add(there(x), there(x), dtype="float64")) if name != "jax" else None
        assert got is None or got.dtype == np.float64


@check()
def copies_sums_and_gradients():
    for name, there, here, kind in libraries():
        x = numbers(7, 1, 5)
        got = simulcast.broadcast_to(there(x), (2, 7, 3, 5))
        assert isinstance(got, kind)
        np.testing.assert_array_equal(here(got), np.broadcast_to(x, (2, 7, 3, 5)))
        y = numbers(12, 7, 33)
        for shape in [(33,), (7, 1), (1, 7, 1), (12, 7, 33), ()]:
            got = simulcast.sum_to(there(y), shape)
            assert isinstance(got, kind) and here(got).shape == shape, (name, shape)
            near(here(got), simulcast.sum_to(y, shape), 1e-4)
        a, b, grad = numbers(9, 8), numbers(8, seed=3), numbers(9, 8, seed=4)
        for function in ("multiply", "divide", "maximum", "add", "power"):
            own = (np.abs(a) + 1, b) if function == "power" else (a, b)
            expected = simulcast.vjp(function, own, grad)
            got = simulcast.vjp(function, tuple(map(there, own)), there(grad))
            for one, other in zip(got, expected):
                assert isinstance(one, kind)
                near(here(one), other, 1e-4)


@check()
def results_go_into_out():
    for name, there, here, _ in libraries():
        x, row = numbers(20, 30), numbers(30, seed=5)
        out = there(np.zeros((20, 30), np.float32))
        if name == "jax":
            with raises(ValueError, "read-only"):
                simulcast.add(there(x), there(row), out=out)
            continue
        made = simulcast.add(there(x), there(row), out=out)
        assert made is out
        near(here(out), x + row)
        assert simulcast.evaluate("x * 2", x=there(x), out=out) is out
        near(here(out), x * 2)
        # In place, transposed, stretched, and cast.
        own = there(x)
        simulcast.evaluate("x + 1", x=own, out=own)
        near(here(own), x + 1)
        square = there(numbers(16, 16))
        expected = here(square) + here(square).T
        simulcast.evaluate("x + x.T", x=square, out=square)
        near(here(square), expected)
        simulcast.add(there(row), 1, out=out.T[::, :].T)
        near(here(out), np.broadcast_to(row + 1, (20, 30)))
        halves = there(np.zeros((20, 30), np.float16))
        simulcast.add(there(x), 1, out=halves)
        near(here(halves), (x + 1).astype(np.float16), 1e-2)
        whole = there(np.zeros((20, 30), np.int32))
        with raises(TypeError, "float32", "int32"):
            simulcast.add(there(x), 1, out=whole)
        with raises(simulcast.BroadcastError):
            simulcast.add(there(x), 1, out=there(np.zeros(30, np.float32)))
        with raises(TypeError, "out"):
            simulcast.add(there(x), 1, out=np.zeros((20, 30), np.float32))


@check()
def what_cannot_be_is_an_error():
    for _, there, _, _ in libraries():
        x = there(numbers(4, 3))
        with raises(simulcast.BroadcastError, "E1"):
            simulcast.add(x, there(numbers(4)))
        with raises(simulcast.BroadcastError, "E1"):
            simulcast.evaluate("x - y", x=x, y=there(numbers(2)))
        with raises(TypeError, "`y`", "`x`", "device 0", "memory"):
            simulcast.evaluate("x + y", x=x, y=numbers(3))
        with raises(TypeError, "`B`", "`A`"):
            simulcast.add(x, [1.0, 2.0, 3.0])


@check("torch", "cupy")
def libraries_meet():
    x, y = numbers(5, 4), numbers(4)
    got = simulcast.add(torch.from_numpy(x).cuda(), cupy.asarray(y))
    assert isinstance(got, torch.Tensor)
    near(got.cpu(), x + y)
    got = simulcast.add(cupy.asarray(x), torch.from_numpy(y).cuda())
    assert isinstance(got, cupy.ndarray)
    near(cupy.asnumpy(got), x + y)


@check("torch")
def views_and_halves_of_torch():
    x = torch.arange(24.0, device="cuda").reshape(4, 6)
    for view in (x.T, x[:, ::2], x[1:, 1:], x.flip(0), x[None], x.expand(3, 4, 6)):
        got = simulcast.multiply(view, 2)
        torch.testing.assert_close(got, view * 2)
    half = x.to(torch.bfloat16)
    got = simulcast.add(half, half)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got, half + half)
    z = torch.randn(5, dtype=torch.complex64, device="cuda")
    torch.testing.assert_close(simulcast.add(z.conj(), 1), z.conj() + 1)
    torch.testing.assert_close(simulcast.add(z.conj().imag, 0), z.conj().imag + 0)
    with raises(TypeError, "detach"):
        simulcast.add(torch.ones(3, device="cuda", requires_grad=True), 1)
    assert simulcast.add(torch.ones(3), 1).tolist() == [2.0, 2.0, 2.0]


@check("torch")
def the_current_stream_is_used():
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 24, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(50):
            x = simulcast.add(x, 1)
            x = x + 1
    torch.cuda.current_stream().wait_stream(side)
    assert bool((x == 100).all())
    y = torch.zeros(1 << 22, device="cuda")
    for _ in range(50):
        # Memory that goes at once is used again by the next allocation.
        y = simulcast.evaluate("y + t * 0 + 1", y=y, t=torch.rand(1 << 22, device="cuda"))
    assert bool((y == 50).all())


@check("jax")
def jax_memory_lives_as_long_as_it_is_read():
    x = jax.numpy.zeros(1 << 22)
    for _ in range(200):
        x = simulcast.add(jax.numpy.add(x, 1), 1)
    assert bool((x == 400).all())


@check("torch")
def threads_compute_beside_each_other():
    errors = []

    def run(seed):
        try:
            own = numbers(100, 50, seed=seed)
            x = torch.from_numpy(own).cuda()
            for k in range(30):
                near(simulcast.evaluate(f"x * {k} + sum(x, axis=0)", x=x).cpu(), own * k + own.sum(0), 1e-3)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for own in threads:
        own.start()
    for own in threads:
        own.join()
    assert not errors, errors


@check("torch")
def memory_runs_out_with_an_error():
    x = torch.ones(1, device="cuda")
    with raises(Exception, "out of memory"):
        simulcast.broadcast_to(x, (1 << 38,))
    assert simulcast.add(x, 1).item() == 2


@check("torch")
def a_fork_is_told():
    torch.cuda.synchronize()
    x = torch.ones(3, device="cuda")
    simulcast.add(x, 1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            simulcast.add(x, 1)
            said = "nothing"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096).decode()
    os.waitpid(child, 0)
    assert "fork" in said, said


@check()
def gradients_of_every_rule():
    for name, there, here, kind in libraries():
        rule = simulcast.pdpd(axis=0)
        a, b, grad = numbers(4, 3, 2), numbers(4, 3, seed=2), numbers(4, 3, 2, seed=4)
        for function in ("multiply", "divide", "add"):
            expected = simulcast.vjp(function, (a, b), grad, rule=rule)
            got = simulcast.vjp(function, (there(a), there(b)), there(grad), rule=rule)
            for one, other in zip(got, expected):
                assert isinstance(one, kind) and here(one).shape == other.shape, (name, function)
                near(here(one), other, 1e-5)
        expected = simulcast.vjp("multiply", (a, 3.0), grad, rule=rule)
        near(here(simulcast.vjp("multiply", (there(a), 3.0), there(grad), rule=rule)[0]), expected[0])
        x, low = numbers(9, 8), numbers(8, seed=3)
        for bounds in ((low, 1.0), (None, low), (low, None)):
            expected = simulcast.vjp("clip", (x, *bounds), numbers(9, 8, seed=5))
            own = tuple(there(bound) if isinstance(bound, np.ndarray) else bound for bound in bounds)
            got = simulcast.vjp("clip", (there(x), *own), there(numbers(9, 8, seed=5)))
            assert len(got) == len(expected) == 3
            for one, other in zip(got, expected):
                assert (one is None) == (other is None), name
                if one is not None:
                    near(here(one), other, 1e-5)
        y = numbers(4, 3, 2)
        got = simulcast.sum_to(there(y), (4, 3), rule=rule)
        assert isinstance(got, kind)
        near(here(got), simulcast.sum_to(y, (4, 3), rule=rule), 1e-5)
        with raises(simulcast.BroadcastError):
            simulcast.sum_to(there(y), (3, 2), rule=rule)


@check()
def values_and_gradients_together():
    text = "mean((x - m) ** 2 / s + log(s))"
    for name, there, here, kind in libraries():
        own = dict(x=numbers(70, 33), m=numbers(33, seed=2), s=np.abs(numbers(70, 1, seed=3)) + 1)
        on_device = {key: there(value) for key, value in own.items()}
        loss = simulcast.value_and_grad(text, wrt=["x", "m", "s"])
        value, expected = loss(**own)
        got, gradients = loss(**on_device)
        assert isinstance(got, kind) and here(got).shape == (), name
        near(here(got), value, 1e-4)
        for one, other in zip(gradients, expected):
            assert isinstance(one, kind) and here(one).shape == other.shape and here(one).dtype == other.dtype, name
            near(here(one), other, 1e-5)
        pullback = simulcast.grad("x * m", wrt=["x", "m"], gradient="g")
        grad = numbers(70, 33, seed=7)
        for one, other in zip(pullback(x=on_device["x"], m=on_device["m"], g=there(grad)), pullback(x=own["x"], m=own["m"], g=grad)):
            near(here(one), other, 1e-4)
        # Several expressions, one of them twice, and places for some of the results.
        several = simulcast.compile(["x + m", "sum(x * m, axis=0)", "x + m", "x"])
        expected = several(x=own["x"], m=own["m"])
        for one, other in zip(several(x=on_device["x"], m=on_device["m"]), expected):
            near(here(one), other, 1e-4)
        if name != "jax":
            out = there(np.zeros((70, 33), np.float64))
            made = several(x=on_device["x"], m=on_device["m"], out=(out, None, None, None))
            assert made[0] is out
            near(here(out), expected[0], 1e-6)
        rule = simulcast.pdpd(axis=0)
        by_rule = simulcast.grad("sum(x * r * x)", wrt=["r"])
        r = numbers(70, seed=9)
        near(here(by_rule(x=on_device["x"], r=there(r), rule=rule)[0]), by_rule(x=own["x"], r=r, rule=rule)[0], 1e-3)
        with raises(ValueError, "not one number"):
            simulcast.grad("x * m", wrt=["x"])(x=on_device["x"], m=on_device["m"])


@check("torch")
def strides_are_one_for_each_axis():
    class Wrong:
        def __init__(self, strides):
            self.own, self.strides = torch.zeros(4, 3, device="cuda"), strides

        @property
        def __cuda_array_interface__(self):
            return {**self.own.__cuda_array_interface__, "strides": self.strides}

    simulcast.add(torch.ones(4, 3, device="cuda"), Wrong((12, 4)))
    for strides in ((12, 4, 4), (12,), (48, 12, 4)):
        with raises(TypeError, f"{len(strides)} strides for 2 axes"):
            simulcast.add(torch.ones(4, 3, device="cuda"), Wrong(strides))


@check("torch")
def autograd_computes_where_tensors_lie():
    import simulcast.torch

    def leaves(dtype):
        torch.manual_seed(3)
        x, m = torch.randn(40, 33, device="cuda", dtype=dtype), torch.randn(33, device="cuda", dtype=dtype)
        s = torch.rand(40, 1, device="cuda", dtype=dtype) + 1
        return [own.requires_grad_() for own in (x, m, s)]

    def ours(x, m, s):
        return simulcast.torch.evaluate("exp((x - m) / s) * k", x=x, m=m, s=s, k=0.5)

    def theirs(x, m, s):
        return torch.exp((x - m) / s) * 0.5

    for dtype in (torch.float32, torch.float64):
        own, other = leaves(dtype), leaves(dtype)
        y, z = ours(*own), theirs(*other)
        assert y.is_cuda and y.requires_grad and y.dtype == dtype
        torch.testing.assert_close(y, z)
        grad = torch.randn_like(z)
        first = torch.autograd.grad(y, own, grad, create_graph=True)
        second = torch.autograd.grad(z, other, grad, create_graph=True)
        for a, b in zip(first, second):
            assert a.is_cuda
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        twice = torch.autograd.grad(sum((a * a).sum() for a in first), own)
        for a, b in zip(twice, torch.autograd.grad(sum((a * a).sum() for a in second), other)):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
    small = [torch.rand(shape, device="cuda", dtype=torch.float64) + 0.5 for shape in ((3, 2), (2,), (3, 1))]
    small = [own.requires_grad_() for own in small]
    assert torch.autograd.gradcheck(ours, small) and torch.autograd.gradgradcheck(ours, small)
    # On the current stream, also where the backward pass runs in another thread.
    side = torch.cuda.Stream()
    x, m, s = leaves(torch.float32)
    big = torch.randn(1 << 22, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = big
        for _ in range(20):
            y = simulcast.torch.evaluate("y + 1", y=y) * 1.0
        y.sum().backward()
        total = big.grad.sum()
    torch.cuda.current_stream().wait_stream(side)
    assert total.item() == 1 << 22
    # Halves, and a loss whose gradients are of two of its operands.
    half = torch.randn(64, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    loss = simulcast.torch.evaluate("mean((h - t) ** 2)", h=half, t=torch.zeros(32, device="cuda", dtype=torch.bfloat16))
    loss.backward()
    torch.testing.assert_close(half.grad, (2 * half.detach() / half.numel()), rtol=2e-2, atol=1e-3)
    with raises(TypeError, "`b`", "`a`"):
        simulcast.torch.evaluate("a + b", a=big, b=torch.ones(1 << 22))


@check("torch")
def a_guard_finds_and_does_not_wait():
    import simulcast.torch

    pred, target = torch.randn(64, 1, device="cuda", requires_grad=True), torch.randn(64, device="cuda")

    def loss():
        return ((pred - target) ** 2).mean()

    loss().backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with simulcast.torch.guard() as watch:
            for _ in range(3):
                loss().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert [own.code for own in watch.findings] == ["SC102"], watch.findings

    def seconds():
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(300):
            loss().backward()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / 300

    seconds()
    plain = min(seconds() for _ in range(5))
    with simulcast.torch.guard():
        seconds()
        guarded = min(seconds() for _ in range(5))
    print(f"a loss and its gradients {plain * 1e6:.0f} µs, under guard {guarded * 1e6:.0f} µs ({guarded / plain:.2f} times)")


@check("torch")
def threads_of_data_parallel_are_watched():
    import simulcast.torch

    class Net(torch.nn.Module):
        def forward(self, x, y):
            return ((x - y) ** 2).mean()

    x, y = torch.randn(8, 1, device="cuda"), torch.randn(8, device="cuda")
    watch = simulcast.torch.Watch()
    simulcast.torch.install(watch=watch)
    try:
        # What DataParallel starts: a thread for each replica, here two of them on one device.
        made = torch.nn.parallel.parallel_apply([Net(), Net()], [(x, y), (x, y)], devices=[0, 0])
    finally:
        simulcast.torch.uninstall()
    assert len(made) == 2 and [own.code for own in watch.findings] == ["SC102"], watch.findings


@check("torch")
def random_expressions_agree_with_torch():
    generator = np.random.default_rng(9)
    terms = ["a + b", "a * b - c", "(a - b) / (abs(c) + 1)", "where(a > b, a, c)", "exp(-abs(a)) * b", "a * a + b * b"]
    names = {"abs": torch.abs, "where": torch.where, "exp": torch.exp}
    for k in range(60):
        shape = [int(n) for n in generator.choice([1, 2, 7, 33, 64], generator.integers(0, 4))]
        own = {}
        for name in "abc":
            own[name] = torch.randn([n if generator.random() < 0.7 else 1 for n in shape], device="cuda")
            if own[name].ndim > 1 and generator.random() < 0.3:
                own[name] = own[name].transpose(-1, -2).contiguous().transpose(-1, -2)
        text = f"({terms[k % 6]}) * ({terms[generator.integers(6)]})"
        got = simulcast.compile(text)(local_dict=own)
        torch.testing.assert_close(got, eval(text, names, own), rtol=1e-5, atol=1e-5)


def main():
    passed = 0
    for function, needs in CHECKS:
        missing = [name for name in needs if globals()[name] is None]
        if missing:
            print(f"skipped {function.__name__}: no {missing[0]}")
            continue
        try:
            function()
        except Exception:
            traceback.print_exc()
            print(f"FAILED {function.__name__}", flush=True)
            continue
        passed += 1
        print(f"ok {function.__name__}", flush=True)
    print(f"{passed} of {len(CHECKS)} checks passed, with " + ", ".join(
        f"{own.__name__} {own.__version__}" for own in (torch, cupy, jax) if own is not None))
    sys.exit(passed != len(CHECKS))


if __name__ == "__main__":
    main()
