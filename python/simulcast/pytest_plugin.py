"""For pytest: `--simulcast-strict` runs every test under a policy.

Operations of simulcast and arrays that `simulcast.guard` made are held to it.
"""

import pytest


def pytest_addoption(parser):
    parser.getgroup("simulcast").addoption(
        "--simulcast-strict",
        nargs="?",
        const="strict",
        metavar="POLICY",
        help="run tests under a policy of simulcast: strict, exact, scalar-only, 'same-rank,SC101=raise'",
    )


def pytest_configure(config):
    text = config.getoption("--simulcast-strict")
    if text is None:
        return
    from simulcast import Policy

    try:
        config.stash[_POLICY] = Policy(text)
    except ValueError as error:
        raise pytest.UsageError(f"--simulcast-strict: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    policy = item.config.stash.get(_POLICY, None)
    if policy is None:
        return (yield)
    from simulcast import using

    with using(policy):
        return (yield)


_POLICY = pytest.StashKey()
