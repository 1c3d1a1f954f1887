"""What all tests share: profiles for Hypothesis, and examples that see a clean registry of warnings."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = ["pytester"]
