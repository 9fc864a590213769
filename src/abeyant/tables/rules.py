"""The rules of when an operation completes, which are the same as those of `abeyant.Resolver`."""

from typing import Final

from abeyant.resolver.rules import ROLES, Combine, Count, Deadline, Holds, Role, Rules, Serves, Within

__all__ = [
    "ALL_CONDITIONS",
    "CONDITIONS",
    "FIXED_INSTANT",
    "ROLES",
    "Combine",
    "Count",
    "Deadline",
    "Holds",
    "Role",
    "Rules",
    "Serves",
    "Within",
]

CONDITIONS: Final = ("all", "any")
"""The conditions that streams with default options support."""
ALL_CONDITIONS: Final = (*CONDITIONS, "then")
FIXED_INSTANT: Final = (
    "a deadline cannot be combined with a calendar or a watch with role 'pause': it is a fixed instant; give a column "
    "timeout or timeout_ms"
)
