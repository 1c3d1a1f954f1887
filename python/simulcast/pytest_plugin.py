"""For pytest: `--simulcast-strict`, or `--simulcast-policy=...`, runs every test and its fixtures under a policy.

Operations of simulcast and arrays that `simulcast.guard` made are held to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._simulcast import Policy

_POLICY: pytest.StashKey[Policy] = pytest.StashKey()


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


def pytest_configure(config: pytest.Config) -> None:
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
    policy = item.config.stash.get(_POLICY, None)
    if policy is None:
        return (yield)
    from simulcast._policy import everywhere

    # Some tests run in a context of their own, or in threads.
    with everywhere(policy):
        return (yield)
