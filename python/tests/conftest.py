"""What all tests share: how many examples Hypothesis draws (`HYPOTHESIS_PROFILE=long` for more)."""

import os

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=150, derandomize=True, **COMMON)
settings.register_profile("long", max_examples=5000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = ["pytester"]
