"""What all tests share: how many examples Hypothesis draws (`HYPOTHESIS_PROFILE=long` for more), and a clean start."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from simulcast import _simulcast

# A shell has what it starts in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

COMMON = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", COMMON, max_examples=150, derandomize=True)
settings.register_profile("long", COMMON, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def as_a_program_begins():
    """No policy was used yet, so that small arrays take their short way; one that is set from outside holds."""
    _simulcast._activate("SIMULCAST_POLICY" in os.environ)
