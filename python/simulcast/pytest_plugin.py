"""For pytest: `--simulcast-strict`, or `--simulcast-policy=...`, runs every test and its fixtures under a policy.

Operations of simulcast and arrays that `simulcast.guard` made are held to it; with `--simulcast-torch`, PyTorch's
element-wise calls and losses too, in all threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._simulcast import Policy
    from .torch import Watch

_POLICY: pytest.StashKey[Policy] = pytest.StashKey()
_WATCH: pytest.StashKey[Watch] = pytest.StashKey()


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
        help="run tests under a policy of simulcast: strict, exact, scalar-only, 'same-rank,SC101=raise'",
    )
    group.addoption(
        "--simulcast-torch",
        action="store_true",
        help="run tests under simulcast.torch.guard, and list the accidental broadcasts of PyTorch at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    _configure_policy(config)
    if config.getoption("simulcast_torch"):
        from .torch import Watch

        try:
            config.stash[_WATCH] = Watch()
        except ImportError as error:
            raise pytest.UsageError(f"--simulcast-torch: {error}") from None


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    watch = config.stash.get(_WATCH, None)
    if watch is None or not watch.findings:
        return
    possible = len(watch.findings) - len(watch.confirmed)
    terminalreporter.section(f"simulcast: {len(watch.confirmed)} confirmed, {possible} possible")
    for finding in watch.confirmed or watch.findings:
        terminalreporter.write_line(str(finding))
