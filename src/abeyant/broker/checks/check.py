"""A check, and its verdict.

A check reads a `History` and returns a `Verdict`: how much it has checked (S2), violations, which are final, and what
is missing so far but may still come. It is called repeatedly until nothing is missing, or time is up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abeyant.broker.checks.history import History
from abeyant.errors import AbeyantError

_SHOWN = 3


@dataclass(frozen=True)
class Verdict:
    """The result of a check: how much was checked, violations, and what is missing so far."""

    seen: int
    """The number of things checked; a check with 0 fails."""
    of: str
    """What `seen` counts, as a singular noun: "record acknowledged in orders"."""
    wrong: tuple[str, ...] = ()
    """Violations, which are final: waiting does not help."""
    missing: tuple[str, ...] = ()
    """Things that are missing so far, and may still come."""


@dataclass(frozen=True)
class Check:
    """A named function from a run's `History` to a `Verdict`, for `simulation.check`."""

    name: str
    look: Callable[[History], Verdict]

    def __call__(self, history: History) -> Verdict:
        """Return the verdict over a history."""
        verdict = self.look(history)
        if not isinstance(verdict, Verdict):
            raise AbeyantError(f"the check {self.name!r} returned {verdict!r}: its function must return a Verdict")
        return verdict


def complaint(check: Check, verdict: Verdict) -> str | None:
    """Return a verdict's failure message, one line; None if the check has passed."""
    problems = [*verdict.wrong, *verdict.missing]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        return f"{check.name}: {'; '.join(problems[:_SHOWN])}{more}"
    if not verdict.seen:
        return f"{check.name}: it saw no {verdict.of}, so it proves nothing"
    return None
