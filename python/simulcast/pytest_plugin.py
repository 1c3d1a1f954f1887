"""For pytest: `--simulcast-strict`, or `--simulcast-policy=...`, runs every test and its fixtures under a policy.

Operations of simulcast and arrays that `simulcast.guard` made are held to it; with `--simulcast-torch`, PyTorch's
element-wise calls and losses too, in all threads. `--simulcast-format` reports what was found in all tests at the end
of the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from ._report import FORMATS

if TYPE_CHECKING:
    from ._simulcast import Policy, _FindingDict
    from .torch import Watch

_POLICY: pytest.StashKey[Policy] = pytest.StashKey()
_WATCH: pytest.StashKey[Watch] = pytest.StashKey()
_FOUND: pytest.StashKey[list[_FindingDict]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulcast")
    # A flag, so that what follows it is a file.
    group.addoption(
        "--simulcast-strict",
        dest="simulcast_policy",
        action="store_const",
        const="strict",
        help="run tests under simulcast.strict()",
    )
    group.addoption(
        "--simulcast-policy",
        dest="simulcast_policy",
        metavar="POLICY",
        help="run tests under a policy of simulcast: strict, exact, scalar-only, 'same-rank,SC101=deny'",
    )
    group.addoption(
        "--simulcast-torch",
        action="store_true",
        help="run tests under simulcast.torch.guard, and list the accidental broadcasts of PyTorch at the end",
    )
    group.addoption(
        "--simulcast-format",
        metavar="FORMAT",
        choices=FORMATS,
        help=f"report the suspicious broadcasts of all tests at the end: {', '.join(FORMATS)}",
    )
    group.addoption("--simulcast-output", metavar="FILE", help="write the report to a file instead")
    group.addoption("--simulcast-baseline", metavar="FILE", help="leave the findings in this file out of the report")
    group.addoption(
        "--simulcast-write-baseline", metavar="FILE", help="write what was found to a file for --simulcast-baseline"
    )


def pytest_configure(config: pytest.Config) -> None:
    _configure_policy(config)
    _configure_report(config)
    if config.getoption("simulcast_torch"):
        from .torch import Watch

        try:
            config.stash[_WATCH] = Watch()
        except ImportError as error:
            raise pytest.UsageError(f"--simulcast-torch: {error}") from None


def _configure_report(config: pytest.Config) -> None:
    wanted = config.getoption("simulcast_format") or config.getoption("simulcast_write_baseline")
    if not wanted:
        for option in ("output", "baseline"):
            if config.getoption(f"simulcast_{option}"):
                raise pytest.UsageError(f"--simulcast-{option} needs --simulcast-format")
        return
    from simulcast import _baseline, _policy

    try:
        if config.getoption("simulcast_baseline"):
            _baseline.read(config.getoption("simulcast_baseline"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--simulcast-baseline: {error}") from None
    for option in ("output", "write_baseline"):
        path = config.getoption(f"simulcast_{option}")
        if path:
            _try_to_write(f"--simulcast-{option.replace('_', '-')}", path)
    config.stash[_FOUND] = []
    _policy._everyone = []


def _try_to_write(option: str, path: str) -> None:
    """A file that cannot be written ends the run before the tests, not after them."""
    is_new = not os.path.lexists(path)
    try:
        with open(path, "a", encoding="utf-8"):
            pass
        if is_new:
            os.unlink(path)
    except OSError as error:
        raise pytest.UsageError(f"{option}: cannot write {path}: {error.strerror}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FOUND in config.stash:
        from simulcast import _policy

        _policy._everyone = None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _FOUND not in session.config.stash:
        return
    from simulcast import _policy, _report

    found = session.config.stash[_FOUND]
    found += _report.findings(_policy._everyone or [])
    watch = session.config.stash.get(_WATCH, None)
    if watch is not None:
        found += [own.to_dict() for own in watch.findings]
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        # A worker of pytest-xdist hands what it found to the process that reports.
        workeroutput["simulcast"] = found


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    found = getattr(node, "workeroutput", {}).get("simulcast")
    if found:
        node.config.stash[_FOUND] += found  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    watch = item.config.stash.get(_WATCH, None)
    if watch is not None and call.excinfo is not None:
        from simulcast.torch._raised import explain

        explain(call.excinfo.value, watch)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _FOUND in config.stash:
        _summarize(terminalreporter, config)
        return
    watch = config.stash.get(_WATCH, None)
    if watch is None or not watch.findings:
        return
    possible = len(watch.findings) - len(watch.confirmed)
    terminalreporter.section(f"simulcast: {len(watch.confirmed)} confirmed, {possible} possible")
    for finding in watch.confirmed or watch.findings:
        terminalreporter.write_line(str(finding))


def _summarize(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The report of everything that was found, and the baseline of it."""
    from simulcast import _baseline, _report

    # In the order of their lines, whichever way they were found.
    found = sorted(_report.merged(config.stash[_FOUND]), key=_place)
    known = config.getoption("simulcast_write_baseline")
    if known:
        _baseline.write(known, found)
    format = config.getoption("simulcast_format")
    if not format:
        return
    text = _report.report(found, format, config.getoption("simulcast_baseline"))
    output = config.getoption("simulcast_output")
    if output:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        terminalreporter.section("simulcast")
        terminalreporter.write(text)


def _place(finding: _FindingDict) -> tuple[str, int, int]:
    return finding["file"], finding.get("line") or 0, finding.get("column") or 0


def _configure_policy(config: pytest.Config) -> None:
    text = config.getoption("simulcast_policy")
    if text is None:
        return
    from simulcast import Policy

    try:
        config.stash[_POLICY] = Policy(text)
    except ValueError as error:
        raise pytest.UsageError(f"--simulcast-policy: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with ExitStack() as stack:
        policy = item.config.stash.get(_POLICY, None)
        if policy is not None:
            from simulcast._policy import everywhere

            # Some tests run in a context of their own, or in threads.
            stack.enter_context(everywhere(policy))
        watch = item.config.stash.get(_WATCH, None)
        if watch is not None:
            from simulcast.torch import install, uninstall

            # One watch for all tests: what two of them show with different sizes is confirmed.
            install(watch=watch)
            stack.callback(uninstall)
        return (yield)
