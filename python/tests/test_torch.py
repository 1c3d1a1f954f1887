"""`simulcast.torch`: what a guard finds and how it says so, and that it leaves everything else as it is."""

import copy
import itertools
import json
import pickle
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cargo xtask test torch")

import numpy as np
import torch.distributions as D
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode, get_overridable_functions, resolve_name

import simulcast
import simulcast.torch
from simulcast._report import FORMATS
from simulcast.torch import Watch, _functions, dry_run, guard, install, uninstall

pytestmark = [
    pytest.mark.filterwarnings("ignore::simulcast.BroadcastWarning"),
    pytest.mark.filterwarnings("ignore:Using a target size"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
COLUMN, ROW = torch.arange(4.0).reshape(4, 1), torch.arange(4.0)


def loss(pred, target):
    return ((pred - target) ** 2).mean()


def test_the_square_loss_is_found_at_its_line_with_operands_axes_and_fixes():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with guard() as watch:
            pred, batch = COLUMN, {"y": ROW}
            ((pred - batch["y"]) ** 2).mean()
    (finding,) = watch.findings
    line = Path(__file__).read_text().splitlines().index('            ((pred - batch["y"]) ** 2).mean()') + 1
    assert (finding.code, finding.certainty, finding.place.line) == ("SC102", "confirmed", line)
    assert finding.names == ("pred", "batch['y']") and finding.shapes == [((4, 1), (4,))]
    assert [fix.expression for fix in finding.fixes] == [
        "batch['y'].unsqueeze(1)", "pred.squeeze(1)", "batch['y'].view_as(pred)",
    ]  # fmt: skip
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, line) and warning.category is simulcast.BroadcastWarning
    for part in ("pred repeats along axis 1", "batch['y'] along axis 0", "^", "help: pred.squeeze(1)"):
        assert part in str(warning.message), part
    if sys.version_info >= (3, 11):
        assert (finding.place.column, finding.place.end_column) == (15, 32)


def test_what_is_told_of_a_place_is_told_once_and_what_is_right_not_at_all():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with guard() as watch:
            for _ in range(3):
                loss(COLUMN, ROW)
                loss(COLUMN[:, 0], ROW)
                loss(torch.ones(3, 4), ROW)
                loss(torch.ones(3, 4), 1.0)
                loss(torch.ones(3, 4), torch.tensor(1.0))
    assert len(caught) == 1 and [own.times for own in watch.findings] == [3]


def test_one_size_is_possible_and_two_sizes_are_confirmed():
    with guard() as watch:
        for size in (4, 4, 3):
            table = torch.ones(size, 1) * torch.ones(size)
            assert watch.findings[0].certainty == ("possible" if size == 4 else "confirmed")
    assert table.shape == (3, 3) and len(watch.confirmed) == 1


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: x.mean(), lambda x: x.abs().sum(), lambda x: x.pow(2).sum(-1).mean(), lambda x: x.flatten().norm(),
        lambda x: torch.mean(torch.exp(x)), lambda x: (x * 2 + 1).sum(), lambda x: torch.logsumexp(x, (0, 1)),
    ],
)  # fmt: skip
def test_a_result_that_is_reduced_to_one_number_is_confirmed(reduce):
    with guard() as watch:
        reduce(COLUMN - ROW)
    assert [own.certainty for own in watch.findings] == ["confirmed"]


def test_a_result_of_which_something_else_is_made_is_possible():
    with guard() as watch:
        made = COLUMN - ROW
        made[0].sum(), (made @ made).sum(), made.sum(0), (torch.ones(2, 4, 4) * made).sum()
    assert [own.certainty for own in watch.findings] == ["possible"]


def test_an_axis_that_the_expression_writes_lowers_the_level():
    with guard() as watch:
        for size in (3, 4):
            x = torch.arange(float(size))
            x[:, None] - x
            x.unsqueeze(1) * x
            torch.exp(x[:, None]) - x
        torch.ones(4, 4).sum(1, keepdim=True) - torch.ones(4)
    assert [own.certainty for own in watch.findings] == ["possible"] * 3 and not watch.confirmed


def test_raise_refuses_before_anything_is_computed_and_keeps_the_data():
    with guard("SC102=deny"), pytest.raises(simulcast.BroadcastError) as caught:
        F.mse_loss(COLUMN, ROW)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.code, error.shapes, error.names) == ("SC102", ((4, 1), (4,)), ("COLUMN", "ROW"))
    assert error.suggestions[0].expression == "ROW.unsqueeze(1)"
    with guard("SC102=deny"), pytest.raises(simulcast.BroadcastError):
        loss(COLUMN, ROW)


def test_the_policy_that_holds_is_asked():
    with simulcast.using("all=allow"), guard() as watch:
        loss(COLUMN, ROW)
    assert not [own for own in watch.findings if own._told]
    with simulcast.using("SC102=deny"), guard(), pytest.raises(simulcast.BroadcastError):
        loss(COLUMN, ROW)
    with guard("SC101=warn") as watch:
        torch.ones(4, 1) * torch.ones(3)
    assert [own.code for own in watch.findings] == ["SC101"]
    with guard("strict"), pytest.raises(simulcast.BroadcastError, match="SC103"):
        torch.ones(4, 3) * torch.ones(3)


@pytest.mark.parametrize("bad", ["SC999=warn", "loud", "SC102=perhaps"])
def test_a_policy_that_does_not_exist_is_a_clear_error(bad):
    with pytest.raises(ValueError, match="there is no|SC999"):
        guard(bad)


@pytest.mark.parametrize(
    "options, error",
    [({"steps": 0}, ValueError), ({"steps": True}, ValueError), ({"exclude": [""]}, ValueError),
     ({"policy": 3}, TypeError)],
)  # fmt: skip
def test_bad_arguments_are_refused(options, error):
    with pytest.raises(error):
        guard(**options)


def test_a_line_a_block_and_a_file_can_be_passed_over(tmp_path):
    with guard() as watch:
        loss_ = ((COLUMN - ROW) ** 2).mean()  # simulcast: ignore[SC102]
        with simulcast.allow("SC102"):
            loss_ = loss(COLUMN, ROW)
    assert float(loss_) == 2.5 and not watch.findings
    with guard(exclude=["tests/*"]) as watch:
        loss(COLUMN, ROW)
    assert not watch.findings
    with guard() as watch:
        loss(COLUMN, ROW)
    watch.write_baseline(tmp_path / "known.json")
    known = Watch(baseline=tmp_path / "known.json")
    with guard("SC102=deny", watch=known):
        loss(COLUMN, ROW)
        with pytest.raises(simulcast.BroadcastError):
            (ROW - COLUMN).mean()
    assert len(known.findings) == 1


def test_a_baseline_counts_findings_that_read_the_same(tmp_path):
    path = tmp_path / "known.json"

    def work(times):
        pred, target = COLUMN, ROW
        for _ in range(2):
            (pred - target).mean()
        if times == 2:
            (pred - target).mean()

    with guard() as watch:
        work(1)
    watch.write_baseline(path)
    for times, news in ((1, 0), (2, 1)):
        known = Watch(baseline=path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with guard(watch=known):
                work(times)
        assert len(known.findings) == news == len(caught)


def test_a_damaged_baseline_is_a_clear_error(tmp_path):
    path = tmp_path / "known.json"
    path.write_text('{"schema"')
    with pytest.raises(ValueError, match="known.json"):
        Watch(baseline=path)
    with pytest.raises(FileNotFoundError):
        Watch(baseline=tmp_path / "none.json")


@pytest.mark.parametrize("format", ["text", "concise", "github", "gitlab", "sarif", "junit", "json"])
def test_reports(format):
    with guard() as watch:
        loss(COLUMN, ROW)
    report = watch.report(format)
    assert "SC102" in report and Path(__file__).name in report
    if format == "sarif":
        (result,) = json.loads(report)["runs"][0]["results"]
        replacements = [own["artifactChanges"][0]["replacements"][0] for own in result["fixes"]]
        assert "target.unsqueeze(1)" in [own["insertedContent"]["text"] for own in replacements]
    with pytest.raises(ValueError):
        watch.report("yaml")


def test_a_record_lists_what_pytorch_broadcasts():
    with simulcast.record() as broadcasts, guard():
        torch.ones(3, 4) * torch.ones(4)
        torch.ones(3, 4) * torch.ones(3, 4)
    (own,) = broadcasts
    assert (own.function, own.shapes, own.result) == ("mul", ((3, 4), (4,)), (3, 4)) and own.file == __file__


ERRORS = [
    ("torch.add(a, b)", (3, 4), (3,), ["a   ", "b.unsqueeze(1) is (3, 1), result (3, 4)"]),
    ("a - b", (2, 3, 4), (2, 4), ["b.unsqueeze(1) is (2, 1, 4)", "a.transpose(0, 1) is (3, 2, 4)"]),
    ("F.mse_loss(a, b)", (3, 4), (3, 5), ["mse_loss", "a has 4, b has 5"]),
    ("a.sub_(b)", (4,), (4, 1), ["stored in a", "b.squeeze(1) is (4,), result (4,)"]),
    ("torch.where(a > 0, a, b)", (3, 4), (3,), ["b.unsqueeze(1)"]),
    ("F.binary_cross_entropy_with_logits(a, b)", (4, 1), (4,), ["b.view_as(a)", "a is (4, 1)"]),
    ("a.expand(2, 4)", (3,), (3,), ["(3,)"]),
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes from Python 3.11 on")
@pytest.mark.parametrize("code, one, other, said", ERRORS)
def test_errors_of_shapes_are_explained(code, one, other, said):
    a, b = torch.ones(one), torch.ones(other)
    with pytest.raises((RuntimeError, ValueError)) as alone:
        eval(code)
    import linecache

    linecache.cache[code] = (len(code), None, [code], code)
    with guard(), pytest.raises((RuntimeError, ValueError)) as caught:
        eval(compile(code, code, "eval"), {"a": a, "b": b, "torch": torch, "F": F})
    assert type(caught.value) is type(alone.value) and str(caught.value) == str(alone.value)
    (note,) = caught.value.__notes__
    for part in said:
        assert part in note, note


def test_other_errors_are_left_as_they_are():
    with guard():
        for call in (lambda: torch.ones(3, requires_grad=True).numpy(), lambda: torch.ones(3) + "x", lambda: torch.ones(2).item()):
            with pytest.raises((RuntimeError, TypeError)) as caught:
                call()
            assert not getattr(caught.value, "__notes__", ())


def test_guards_nest_decorate_and_leave_nothing_behind():
    depth = torch.overrides._len_torch_function_stack()
    shared = guard()

    @shared
    def twice(pred, target):
        with shared, guard() as inner:
            loss(pred, target)
        return inner

    # Every guard sees what the ones inside of it see.
    assert len(twice(COLUMN, ROW).findings) == 1 == len(shared.watch.findings)
    with pytest.raises(ZeroDivisionError), guard():
        1 / 0  # noqa: B018
    with pytest.raises(TypeError, match="suspended"):

        @guard()
        def steps():
            yield

    with pytest.raises(TypeError, match="suspended"):

        @guard()
        async def later_steps():
            yield

    with pytest.raises(RuntimeError, match="not entered"):
        guard().__exit__()

    @guard
    def difference(pred, target):
        return ((pred - target) ** 2).mean()

    assert difference.__name__ == "difference"
    with pytest.warns(simulcast.BroadcastWarning, match="SC102"):
        difference(COLUMN, ROW)
    assert torch.overrides._len_torch_function_stack() == depth


def test_values_and_gradients_are_the_same_under_guard():
    def run():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.LayerNorm(7), torch.nn.ReLU(), torch.nn.Linear(7, 1))
        optimizer = torch.optim.AdamW(net.parameters())
        for batch in (6, 6, 3):
            optimizer.zero_grad()
            value = F.smooth_l1_loss(net(torch.randn(batch, 5)).squeeze(1), torch.randn(batch))
            value.backward()
            optimizer.step()
        return value, [own.detach().clone() for own in net.parameters()]

    plain = run()
    with guard() as watch:
        guarded = run()
    assert not watch.findings and plain[0] == guarded[0]
    assert all(torch.equal(a, b) for a, b in zip(plain[1], guarded[1]))


def test_transforms_of_functions():
    batched, rows = torch.ones(3, 4, 1), torch.ones(3, 4)
    with guard() as watch:
        torch.func.grad(lambda p: F.mse_loss(p, ROW))(COLUMN)
        torch.func.vmap(loss)(batched, rows)
        torch.func.vmap(torch.func.grad(lambda a, b: ((a - b) ** 2).mean()))(batched, rows)
        torch.func.jvp(lambda a: (a - ROW).mean(), (COLUMN,), (COLUMN,))
        torch.autograd.functional.jacobian(lambda a: (ROW - a).mean(), COLUMN)
        (torch.ones(4, 1, device="meta") - torch.ones(4, device="meta")).mean()
        with torch.device("meta"):
            (torch.zeros(4, 1) - torch.zeros(4)).mean()
    assert len(watch.confirmed) == 7
    with guard() as watch:
        # Without the batch, a column of one prediction meets one target.
        torch.func.vmap(loss)(COLUMN, ROW)
    assert not watch.findings


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_guard_steps_aside_while_torch_compile_traces(backend, fullgraph):
    import torch._dynamo

    torch._dynamo.reset()
    depth = torch.overrides._len_torch_function_stack()
    compiled = torch.compile(loss, backend=backend, fullgraph=fullgraph)
    expected = loss(COLUMN, ROW)
    with guard():
        assert compiled(COLUMN, ROW) == expected == compiled(COLUMN, ROW)
    assert compiled(COLUMN, ROW) == expected
    with guard():
        assert compiled(torch.ones(3, 1), torch.ones(3)) == 0
        assert torch.overrides._len_torch_function_stack() == depth + 1
    assert torch.overrides._len_torch_function_stack() == depth
    torch._dynamo.reset()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_guard_within_a_compiled_function_does_nothing(fullgraph):
    import torch._dynamo

    shared = guard("SC102=deny")

    def block(a, b):
        with guard("SC102=deny", steps=2) as watch:
            made = loss(a, b)
        return made + len(watch.findings)

    @shared
    def decorated(a, b):
        return loss(a, b)

    depth = torch.overrides._len_torch_function_stack()
    for function in (block, decorated):
        torch._dynamo.reset()
        assert torch.compile(function, backend="eager", fullgraph=fullgraph)(COLUMN, ROW) == loss(COLUMN, ROW)
        assert torch.overrides._len_torch_function_stack() == depth
        # Uncompiled, the same guard is one.
        with pytest.raises(simulcast.BroadcastError):
            function(COLUMN, ROW)
    torch._dynamo.reset()


def test_what_reaches_all_threads_is_not_compiled():
    import torch._dynamo

    def whole(a, b):
        install()
        try:
            return loss(a, b)
        finally:
            uninstall()

    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="call it outside of the function that is compiled"):
        torch.compile(whole, backend="eager", fullgraph=True)(COLUMN, ROW)
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")
def test_traced_graphs_are_those_without_a_guard():
    plain = str(torch.jit.trace(loss, (COLUMN, ROW)).code)
    with guard():
        assert str(torch.jit.trace(loss, (COLUMN, ROW)).code).replace("_0", "") == plain.replace("_0", "")
        exported = torch.export.export(torch.nn.Linear(4, 1), (torch.ones(3, 4),))
    assert exported.module()(torch.ones(3, 4)).shape == (3, 1)


def test_distributions_name_operands_by_the_users_variables_or_by_their_own_lines():
    with guard() as watch:
        -torch.distributions.Normal(COLUMN, 1.0).log_prob(ROW).mean()
        -torch.distributions.Normal(COLUMN.exp(), 1.0).log_prob(ROW).mean()
    by_variables, by_lines = watch.confirmed
    assert by_variables.place.file == __file__ and by_variables.names == ("ROW", "COLUMN")
    assert by_lines.inside.startswith("torch/distributions/normal.py:") and by_lines.names == ("ROW", "self.loc")


def test_threads():
    def work():
        loss(COLUMN, ROW)

    with guard() as watch:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not watch.findings
    shared, inside = guard(), threading.Barrier(3)

    @shared
    def guarded():
        inside.wait()
        work()

    threads = [threading.Thread(target=guarded) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [own.times for own in shared.watch.findings] == [3]
    watch = install()
    try:
        with pytest.raises(RuntimeError, match="installed already"):
            install()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        assert uninstall() is watch
    assert [own.times for own in watch.confirmed] == [3]
    with pytest.raises(RuntimeError, match="no guard"):
        uninstall()
    work()
    assert [own.times for own in watch.confirmed] == [3]


def test_threads_that_call_modules_are_reached_by_an_installed_guard():
    class Critic(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x, target):
            return ((self.layer(x) - target) ** 2).mean()

    critic, replicas, sizes = Critic(), [], [(4, 3), (5, 3)]
    replicas = [critic, Critic()]
    inputs = [(torch.ones(size), torch.ones(size[0])) for size in sizes]
    expected = [replica(*own) for replica, own in zip(replicas, inputs)]

    def called(place):
        results[place] = replicas[place](*inputs[place])

    def loaded():
        yield from torch.utils.data.DataLoader(list(range(4)), batch_size=2, collate_fn=torch.tensor)

    watch, results = install(), {}
    try:
        # As `torch.nn.parallel.parallel_apply` calls its replicas: a thread for each.
        threads = [threading.Thread(target=called, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with ThreadPoolExecutor(2) as pool:
            pooled = list(pool.map(lambda pair: pair[0](*pair[1]), zip(replicas, inputs)))
        # Without devices DataParallel calls its module here.
        alone = torch.nn.DataParallel(critic)(*inputs[0])
        assert [own.tolist() for own in loaded()] == [[0, 1], [2, 3]]
    finally:
        assert uninstall() is watch
    [found] = watch.confirmed
    assert found.times == 5 and found.code == "SC102" and found.names == ("self.layer(x)", "target")
    assert [results[0], results[1]] == expected == pooled and alone == expected[0]
    assert torch.overrides._len_torch_function_stack() == 0


@pytest.mark.parametrize("in_another", [False, True])
def test_uninstall_takes_no_mode_off_but_its_own(in_another):
    class Other(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def end():
        with Other() as other:
            uninstall()
            tops.append(torch.overrides._get_current_function_mode() is other)
            loss(COLUMN, ROW)

    def go_on():
        began.set()
        ended.wait()
        loss(COLUMN, ROW)

    def body():
        watches.append(install())
        running = threading.Thread(target=go_on)
        running.start()
        began.wait()
        if in_another:
            ending = threading.Thread(target=end)
            ending.start()
            ending.join()
        else:
            end()
        loss(COLUMN, ROW)
        ended.set()
        running.join()

    began, ended, tops, watches = threading.Event(), threading.Event(), [], []
    # In a thread of its own: what is left of the guard stays there.
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert tops == [True] and not watches[0].findings


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 1)

    def forward(self, x):
        return self.inner(x)


def calls(batches, steps, wrong=()):
    """Runs batches under a guard of some steps; gives back at which of them the mode was on, and the watch."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    on = []
    with guard(steps=steps) as watch:
        for place, batch in enumerate(batches):
            pred = net(torch.ones(batch, 3))
            on.append(torch.overrides._len_torch_function_stack() > 0)
            target = torch.ones(batch) if place in wrong else torch.ones(batch, 1)
            ((pred - target) ** 2).mean().backward()
            optimizer.step()
    assert torch.overrides._len_torch_function_stack() == 0 and not net._forward_pre_hooks
    return on, watch


def test_steps_are_watched_and_the_first_batch_of_another_size():
    on, watch = calls([8] * 5 + [3] + [8, 3], steps=2)
    assert on == [True, True, False, False, False, True, False, False] and not watch.findings
    on, watch = calls([8, 3, 8, 5], steps=2)
    assert on == [True, True, False, False]
    assert len(calls([8, 8, 8, 3], steps=1, wrong=(3,))[1].confirmed) == 1
    assert not calls([8, 8, 8, 3], steps=1, wrong=(2,))[1].findings


def test_steps_of_a_compiled_model():
    import torch._dynamo

    torch._dynamo.reset()
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    with guard(steps=1):
        for batch in (4, 4, 3):
            compiled(torch.ones(batch, 3)).mean().backward()
            optimizer.step()
    assert torch.overrides._len_torch_function_stack() == 0
    torch._dynamo.reset()


def test_steps_leave_only_when_no_other_mode_lies_on_top():
    class Other(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    optimizer = torch.optim.SGD([parameter], 0.1)
    with guard(steps=1):
        with Other():
            optimizer.step()
            assert torch.overrides._len_torch_function_stack() == 2
        optimizer.step()
        assert torch.overrides._len_torch_function_stack() == 0


def test_other_hooks_of_optimizers_are_called_after_the_last_step():
    from torch.optim.optimizer import register_optimizer_step_post_hook

    net, seen = Net(), []
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with guard(steps=1):
        hook = register_optimizer_step_post_hook(lambda *_: seen.append(1))
        try:
            for batch in (4, 3, 4):
                net(torch.ones(batch, 3)).mean().backward()
                optimizer.step()
        finally:
            hook.remove()
    assert seen == [1, 1, 1] and not net._forward_pre_hooks


def test_filters_of_warnings_are_as_they_were():
    class OwnWarning(Warning):
        pass

    before = list(warnings.filters)
    with guard(steps=1):
        with guard(steps=1):
            warnings.simplefilter("ignore", OwnWarning)
    assert [own for own in warnings.filters if own[2] is not OwnWarning] == before
    with guard(steps=1):
        message = "Using `torch.compile.module.` when there are global hooks"
        warnings.filterwarnings("ignore", message=message)
    assert getattr(warnings.filters[0][1], "pattern", None) == message


def test_sizes_that_are_symbols_are_not_judged():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    sizes = ShapeEnv()
    with FakeTensorMode(shape_env=sizes), guard() as watch:
        a, b = torch.empty(sizes.create_unbacked_symint(), 1), torch.empty(sizes.create_unbacked_symint())
        for made in (a * b, torch.add(a, b, alpha=2), torch.where(a > 0, b, 1.0)):
            assert made.dim() == 2
    assert not watch.findings


def test_a_dry_run_needs_no_values():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
    before = copy.deepcopy(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters())

    def step(net, optimizer, x, y):
        assert x.is_meta and y["target"].is_meta and all(own.is_meta for own in net.parameters())
        loss = ((net(x) - y["target"]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() != loss.item() and float(loss) != float(loss)
        assert all(own.grad is not None for own in net.parameters())

    right = dry_run(step, net, optimizer, torch.ones(5, 3), {"target": torch.ones(5, 1)})
    wrong = dry_run(step, net, optimizer, torch.ones(5, 3), {"target": torch.ones(5)})
    assert not right.findings and [own.certainty for own in wrong.findings] == ["confirmed"]
    assert all(torch.equal(before[key], value) for key, value in net.state_dict().items())
    watch = dry_run(lambda n: torch.ones(n, 1) * torch.ones(n), sizes=(3, 5))
    assert [own.certainty for own in watch.findings] == ["confirmed"]
    with pytest.raises(simulcast.BroadcastError):
        dry_run(step, net, optimizer, torch.ones(5, 3), {"target": torch.ones(5)}, policy="SC102=deny")


# Functions that give (4, 4) of (4, 1) and (4,), and mean it.
MEANT = {"addr", "kron", "gumbel_softmax", "linear", "sym_sum", "lstsq"}


@pytest.mark.filterwarnings("ignore")
def test_every_function_of_pytorch_that_broadcasts_is_in_the_table():
    table, missing, found = _functions.table(), set(), 0
    functions = {own for group in get_overridable_functions().values() for own in group}
    kinds = (lambda s: torch.rand(s), lambda s: torch.ones(s, dtype=torch.int64), lambda s: torch.ones(s) > 0)
    for function in functions:
        name = (resolve_name(function) or str(function)).rpartition(".")[2]
        if name in MEANT or name.startswith("__r") or table.meeting(function, (0, 0)) is not None:
            found += table.meeting(function, (0, 0)) is not None
            continue
        for count, shapes in ((n, own) for n in (2, 3) for own in itertools.product([(4, 1), (4,)], repeat=n)):
            if len(set(shapes)) < 2:
                continue
            for kind in itertools.product(kinds, repeat=count):
                try:
                    result = function(*(make(shape) for make, shape in zip(kind, shapes)))
                except BaseException:
                    continue
                results = result if isinstance(result, (tuple, list)) else [result]
                if any(isinstance(own, torch.Tensor) and own.shape == (4, 4) for own in results):
                    missing.add(name)
    assert not missing and found > 150


def test_numbers_arrays_and_subclasses_are_left_alone():
    class Own(torch.Tensor):
        pass

    with guard() as watch:
        own = torch.ones(3).as_subclass(Own)
        assert type(own + torch.ones(2, 3)) is Own
        assert (1 - COLUMN).shape == (4, 1) and (COLUMN * np.float32(2)).shape == (4, 1)
        assert torch.where(COLUMN > 0, COLUMN, 0.0).shape == (4, 1)
        assert torch.clamp(COLUMN, min=0).shape == (4, 1) and torch.max(COLUMN, 0).values.shape == (1,)
        assert torch.add(COLUMN, COLUMN, alpha=2).shape == (4, 1) and torch.where(COLUMN > 0)[0].shape == (3,)
        sparse = torch.eye(3).to_sparse()
        assert (sparse * 2).shape == (3, 3)
    assert not watch.findings


def test_nothing_of_pytorch_is_imported_by_the_package():
    code = "import simulcast, simulcast.torch, sys; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def run(arguments, script, tmp_path, *after):
    path = tmp_path / "train.py"
    path.write_text(script)
    words = [sys.executable, "-m", "simulcast.torch", *arguments, str(path), *after]
    return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)


WRONG = """\
import sys, torch
pred, target = torch.ones(4, 1), torch.ones(4)
loss = ((pred - target) ** 2).mean()
print(float(loss), sys.argv[1:], __name__)
"""


def test_the_command_runs_a_script_under_guard(tmp_path):
    ran = run([], WRONG, tmp_path, "--lr", "3")
    assert ran.returncode == 0 and ran.stdout == "0.0 ['--lr', '3'] __main__\n"
    assert "train.py:3" in ran.stderr and "target.unsqueeze(1)" in ran.stderr and "1 confirmed" in ran.stderr
    ran = subprocess.run(
        [sys.executable, "-m", "simulcast.torch", "-m", "train", "-x"], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.stdout == "0.0 ['-x'] __main__\n" and "train.py:3" in ran.stderr
    ran = run(["--format", "json", "--output", "out.json"], WRONG, tmp_path)
    assert json.loads((tmp_path / "out.json").read_text())["findings"][0]["code"] == "SC102"
    ran = run(["--policy", "SC102=deny"], WRONG, tmp_path)
    assert ran.returncode == 1 and "BroadcastError: SC102" in ran.stderr and "simulcast/torch/__main__" not in ran.stderr
    ran = run([], "import torch\ntorch.ones(3, 1) + torch.ones(1, 3)\n", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_command_keeps_exit_codes_and_tracebacks(tmp_path):
    for script, code in (("import sys; sys.exit(7)", 7), ("raise SystemExit('no')", 1), ("raise SystemExit", 0)):
        assert run([], script, tmp_path).returncode == code
    failing = "import torch\ndef f():\n    return torch.ones(3) + torch.ones(4)\nf()\n"
    ran = run([], failing, tmp_path)
    alone = subprocess.run([sys.executable, str(tmp_path / "train.py")], capture_output=True, text=True)
    assert ran.returncode == alone.returncode == 1
    lines = alone.stderr.splitlines()
    assert [line for line in lines if line in ran.stderr.splitlines()] == lines
    assert run([], "1 +", tmp_path).stderr.splitlines()[-1].startswith("SyntaxError")
    assert run(["--policy", "loud"], "", tmp_path).returncode == 2
    ran = run(["--policy", "loud"], "", tmp_path)
    assert ran.stderr.startswith("error: there is no strictness") and "Traceback" not in ran.stderr
    ran = subprocess.run([sys.executable, "-m", "simulcast.torch", "none.py"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 2 and ran.stderr.startswith("error: cannot read the script none.py")
    ran = subprocess.run([sys.executable, "-m", "simulcast.torch", "-m", "none.such"], capture_output=True, text=True)
    assert ran.returncode == 2 and ran.stderr == "error: there is no module none.such\n"
    (tmp_path / "known.json").write_text("{")
    ran = run(["--baseline", "known.json"], "", tmp_path)
    assert ran.returncode == 2 and "known.json" in ran.stderr and "Traceback" not in ran.stderr


def test_the_command_compiles_a_script_as_python_does(tmp_path):
    script = "import torch\ndef f(a: int): pass\nprint(f.__annotations__)\n"
    assert run([], script, tmp_path).stdout == "{'a': <class 'int'>}\n"


def test_the_command_has_a_baseline(tmp_path):
    assert run(["--baseline", "known.json", "--write-baseline"], WRONG, tmp_path).returncode == 0
    assert run(["--baseline", "known.json", "--policy", "SC102=deny"], WRONG, tmp_path).returncode == 0


def test_the_option_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest, torch\n"
        "@pytest.mark.parametrize('n', [3, 4])\n"
        "def test_it(n):\n"
        "    pred, target = torch.ones(n, 1), torch.ones(n)\n"
        "    pred * target\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    ran = subprocess.run([*words, "--simulcast-torch"], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and "1 confirmed" in ran.stdout and "test_it.py:5" in ran.stdout, ran.stdout
    ran = subprocess.run(
        [*words, "--simulcast-torch", "--simulcast-policy=SC102=deny"], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode == 1 and "BroadcastError" in ran.stdout


def test_gradients_that_would_be_lost_are_refused():
    evaluate = simulcast.torch.evaluate
    z, y = torch.ones(3, dtype=torch.complex64, requires_grad=True), torch.ones(3, requires_grad=True)
    for text in ("sum(abs(z) * y)", "z * y", "real(z)"):
        with pytest.raises(TypeError, match=r"`z` is complex and requires a gradient.* z\.detach\(\).*z\.real"):
            evaluate(text, **{"z": z, **({"y": y} if "y" in text else {})})
    with pytest.raises(TypeError, match=r"the result is complex, and `y` requires a gradient.*y\.detach\(\)"):
        evaluate("z * y", z=z.detach(), y=y)
    with torch.no_grad():
        assert evaluate("z * y", z=z, y=y).dtype == torch.complex64
    # What is asked for has a gradient.
    evaluate("sum(abs(z) * y)", z=2 * z.detach(), y=y).backward()
    assert y.grad.tolist() == [2.0] * 3


@pytest.mark.filterwarnings("ignore")  # quantized tensors are deprecated
def test_tensors_that_evaluate_cannot_read_are_named():
    evaluate = simulcast.torch.evaluate
    for transform in (torch.vmap, torch.func.grad, torch.func.jacrev):
        with pytest.raises(TypeError, match=r"`x` is traced by torch\.func.*torch\.autograd\.grad"):
            transform(lambda x: evaluate("sum(x * x)", x=x))(torch.ones(3))
    with pytest.raises(TypeError, match=r"`x` is torch\.float8_e4m3fn.*\.float\(\)"):
        evaluate("x * x", x=torch.ones(3).to(torch.float8_e4m3fn))
    with pytest.raises(TypeError, match=r"`x` is quantized.*\.dequantize\(\)"):
        evaluate("x * x", x=torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
    with pytest.raises(TypeError, match=r"`x` is torch\.sparse_coo.*\.to_dense\(\)"):
        evaluate("x * x", x=torch.ones(3).to_sparse())


def lines_of(report):
    return [int(line) for line in re.findall(r"test_it\.py:(\d+):\d+: SC102 confirmed", report)]


LINES = {
    "text": lines_of,
    "concise": lines_of,
    "github": lambda report: [int(line) for line in re.findall(r"SC102 confirmed,file=test_it\.py,line=(\d+)", report)],
    "gitlab": lambda report: [own["location"]["lines"]["begin"] for own in json.loads(report)],
    "sarif": lambda report: [
        own["locations"][0]["physicalLocation"]["region"]["startLine"] for own in json.loads(report)["runs"][0]["results"]
    ],
    "junit": lambda report: [int(own.get("name", "").split(":")[1]) for own in ElementTree.fromstring(report).iter("testcase") if len(own)],
    "json": lambda report: [own["start"]["line"] for own in json.loads(report)["findings"]],
}


@pytest.mark.parametrize("format", LINES)
def test_the_option_of_pytest_is_joined_with_a_format(format, tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import numpy as np, pytest, simulcast, torch\n"
        "@pytest.mark.parametrize('n', [3, 4])\n"
        "def test_it(n):\n"
        "    pred, target = torch.ones(n, 1), torch.ones(n)\n"
        "    pred * target\n"
        "    simulcast.subtract(np.ones((n, 1)), np.ones(n))\n"
        "    (pred - target).mean()\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "ignore", "--simulcast-torch"]

    def run(*more):
        ran = subprocess.run([*words, *more], capture_output=True, text=True, cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    assert set(LINES) == set(FORMATS)
    shown = run(f"--simulcast-format={format}")
    run(f"--simulcast-format={format}", "--simulcast-output=found", "--simulcast-write-baseline=known.json")
    report = (tmp_path / "found").read_text()
    # PyTorch's and Simulcast's own, in the order of their lines, once each.
    assert LINES[format](report) == [5, 6, 7]
    assert "target" in report and "unsqueeze" in report
    assert report.strip() in shown
    run(f"--simulcast-format={format}", "--simulcast-output=found", "--simulcast-baseline=known.json")
    assert LINES[format]((tmp_path / "found").read_text()) == []


IMAGE, MASK, SMALL, BATCH, OTHER = torch.ones(2, 3), torch.ones(4), torch.ones(3), torch.ones(3, 2, 2), torch.ones(4, 2, 2)


def assign():
    IMAGE[:, 0] = MASK


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes and spans")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: SMALL.expand(4, 4), ["target   4   4", "SMALL    .   3", "expand to (4, 4)"]),
        (lambda: torch.broadcast_to(SMALL, (4, 4)), ["SMALL    .   3"]),
        (lambda: BATCH @ OTHER, ["BATCH is (3, 2, 2)", "OTHER is (4, 2, 2)", "BATCH has 3, OTHER has 4"]),
        (lambda: torch.bmm(BATCH, OTHER), ["BATCH has 3, OTHER has 4"]),
        (lambda: IMAGE @ MASK, ["axis -1 of IMAGE has 3, axis -1 of MASK has 4"]),
        (lambda: torch.mm(IMAGE, IMAGE), ["axis -1 of IMAGE has 3, axis -2 of IMAGE has 2"]),
        (lambda: torch.nn.Linear(10, 1)(IMAGE), ["IMAGE is (2, 3)", "self.weight is (1, 10)", "axis -1 of IMAGE has 3"]),
        (lambda: torch.cat([IMAGE, BATCH[0]]), ["IMAGE is (2, 3)", "BATCH[0] is (2, 2)"]),
        (assign, ["MASK is stored in IMAGE[:, 0], which is (2,)", "MASK is (4,)"]),
        (lambda: IMAGE[MASK > 0], ["IMAGE is (2, 3)", "(MASK > 0) is (4,)"]),
        (lambda: SMALL.copy_(MASK), ["MASK is stored in SMALL, which is (3,)"]),
        (lambda: torch.nn.functional.cross_entropy(IMAGE, MASK.long()), ["IMAGE is (2, 3)", "MASK.long() is (4,)"]),
        (lambda: torch.nn.functional.scaled_dot_product_attention(BATCH, BATCH, BATCH, attn_mask=IMAGE), ["IMAGE is (2, 3)"]),
        (lambda: torch._foreach_add([SMALL], [MASK]), ["SMALL is (3,)", "MASK is (4,)"]),
        (lambda: SMALL.masked_scatter(MASK > 0, SMALL), ["SMALL is (3,)", "(MASK > 0) is (4,)"]),
        (lambda: torch.einsum("ij,jk->ik", IMAGE, IMAGE), ["IMAGE is (2, 3)"]),
        (lambda: IMAGE.view(7), ["IMAGE is (2, 3)"]),
    ],
)
def test_every_error_of_sizes_names_its_tensors(call, said):
    with simulcast.torch.guard(), pytest.raises((RuntimeError, ValueError, IndexError)) as caught:
        call()
    (note,) = caught.value.__notes__
    assert all(own in note for own in said) and "line 1" not in note, note


LOC, LABEL, GRID = torch.zeros(3), torch.ones(4), torch.zeros(3, 4)
# torch.compile takes the checks away where they are not asked for.
NORMAL = D.Normal(LOC, 1.0, validate_args=True)
VECTORS = D.MultivariateNormal(torch.zeros(3, 2), torch.eye(2), validate_args=True)
CELLS, LAYERS = torch.nn.LSTM(5, 3), torch.ones(2, 3, 4)
# Errors that PyTorch raises in Python, without a call that a mode sees.
RAISED = [
    (lambda: NORMAL.log_prob(LABEL), ["Normal.log_prob", "NORMAL   3", "LABEL has 4, NORMAL has 3"]),
    (lambda: NORMAL.cdf(value=LABEL), ["Normal.cdf", "LABEL has 4, NORMAL has 3"]),
    (lambda: D.Normal(GRID, 1.0, validate_args=True).log_prob(LOC), ["D.Normal(GRID, 1.0, validate_args=True)", "LOC.unsqueeze(1) is (3, 1), result (3, 4)"]),
    (lambda: D.Independent(NORMAL, 1).log_prob(LABEL), ["LABEL has 4, D.Independent(NORMAL, 1) has 3"]),
    (lambda: (lambda v: NORMAL.log_prob(v + 1))(LABEL), ["v + 1", "has 4, NORMAL has 3"]),
    (lambda: VECTORS.log_prob(GRID), ["GRID is (3, 4)", "the last axis of GRID must be event_shape: (2,)"]),
    (lambda: VECTORS.log_prob(torch.ones(4, 2)), ["VECTORS has batch_shape (3,) and event_shape (2,)", "has 4, VECTORS has 3"]),
    (lambda: D.MultivariateNormal(GRID, torch.eye(4).expand(2, 4, 4)), ["covariance_matrix.shape[:-2] has 2", "loc.shape[:-1]"]),
    (lambda: torch.broadcast_shapes(GRID.shape, LOC.shape), ["GRID has 4, LOC has 3", "LOC.unsqueeze(1) is (3, 1), result (3, 4)"]),
    (lambda: torch.broadcast_shapes((3, 4), 3), ["(3, 4) has 4, 3 has 3"]),
    (lambda: torch.broadcast_shapes(*[GRID.shape, LOC.shape]), ["shape 0 has 4, shape 1 has 3"]),
    (lambda: NORMAL.expand((4,)), ["self.loc", "expand to (4,)"]),
    (lambda: CELLS(LAYERS), ["CELLS was called with", "LAYERS is (2, 3, 4)"]),
    (lambda: torch.func.vmap(torch.add)(LOC, LABEL), ["LOC is (3,)", "LABEL is (4,)"]),
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes and spans")
@pytest.mark.parametrize("call, said", RAISED)
def test_errors_of_pytorchs_own_checks_are_explained_where_they_leave_the_guard(call, said):
    with pytest.raises((RuntimeError, ValueError)) as alone:
        call()
    with pytest.raises((RuntimeError, ValueError)) as caught, guard():
        call()
    assert type(caught.value) is type(alone.value) and str(caught.value) == str(alone.value)
    (note,) = caught.value.__notes__
    assert all(own in note for own in said), note


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes")
def test_errors_of_the_programs_own_checks_have_no_note():
    def step():
        raise ValueError("the shape is wrong")

    for error in (step, lambda: torch.nn.Linear(2, 3)("size"), lambda: NORMAL.log_prob("shape")):
        with pytest.raises((ValueError, TypeError, AttributeError)) as caught, guard():
            error()
        assert not getattr(caught.value, "__notes__", []), caught.value.__notes__


SAMPLE = """\
import threading
import torch
normal, label = torch.distributions.Normal(torch.zeros(3), 1.0), torch.ones(4)
def score():
    normal.log_prob(label)
def test_score():
    score()
if __name__ == "__main__":
    thread = threading.Thread(target=score)
    thread.start()
    thread.join()
    score()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes")
def test_the_command_and_pytest_show_the_notes_of_errors_that_end_a_run(tmp_path):
    (tmp_path / "test_score.py").write_text(SAMPLE)

    def said(*words):
        ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=tmp_path)
        assert ran.returncode == 1, ran
        return (ran.stdout + ran.stderr).count("simulcast: Normal.log_prob of shapes that do not broadcast")

    # One in the thread, one in the script.
    assert said("-m", "simulcast.torch", "test_score.py") == 2
    assert said("-m", "simulcast.torch", "--steps", "1", "test_score.py") == 1
    assert said("-m", "pytest", "-q", "-p", "no:cacheprovider", "--simulcast-torch") >= 1
    (tmp_path / "installs.py").write_text(f"import simulcast.torch\nsimulcast.torch.install()\n{SAMPLE}")
    assert said("installs.py") == 2


def test_an_installed_guard_leaves_the_hooks_of_exceptions_as_they_were(monkeypatch):
    before = sys.excepthook, threading.excepthook
    simulcast.torch.install()
    simulcast.torch.uninstall()
    assert (sys.excepthook, threading.excepthook) == before
    shown = []
    monkeypatch.setattr(sys, "excepthook", lambda *own: shown.append(own[1]))
    simulcast.torch.install()
    ours = sys.excepthook
    # A hook that another library sets, and that calls ours, outlives the guard.
    sys.excepthook = lambda *own: ours(*own)
    simulcast.torch.uninstall()
    error = ValueError("of a shape")
    sys.excepthook(ValueError, error, None)
    assert shown == [error] and sys.excepthook is not ours


def test_an_error_of_something_else_has_no_note():
    with simulcast.torch.guard(), pytest.raises(IndexError) as caught:
        IMAGE.select(0, 7)
    assert not getattr(caught.value, "__notes__", [])


def test_an_interrupt_of_a_script_shows_the_scripts_frames(tmp_path):
    (tmp_path / "train.py").write_text("def step():\n    raise KeyboardInterrupt\nstep()\n")
    words = [sys.executable, "-m", "simulcast.torch", "train.py"]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 130 and "in step" in ran.stderr and "__main__.py" not in ran.stderr, ran.stderr


@pytest.mark.parametrize("loss", [lambda p, t: ((p - t) ** 2).mean(), torch.nn.functional.mse_loss])
def test_guards_in_guards_tell_once_and_all_list_it(loss):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with guard() as outer, guard() as inner:
            loss(COLUMN, ROW)
    told = [own for own in caught if issubclass(own.category, simulcast.BroadcastWarning)]
    assert len(told) == 1 and len(outer.confirmed) == len(inner.confirmed) == 1
    # What only the outer one can tell, it tells.
    with pytest.warns(simulcast.BroadcastWarning), guard():
        for size in (3, 4):
            with guard():
                torch.ones(size, 1) * torch.ones(size)
