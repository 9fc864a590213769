"""Settings that all tests share: how hard the property tests look.

HYPOTHESIS_PROFILE=thorough looks some ten times as long as the default does.
"""

import os

from hypothesis import HealthCheck, settings

# The same examples at every run of CI, so that a change is judged and not its luck; others at every run by hand.
# No deadline for an example: the machine is shared, and interpreted the engine is some thirty times as slow.
settings.register_profile(
    "default",
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    max_examples=1000,
    stateful_step_count=80,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
