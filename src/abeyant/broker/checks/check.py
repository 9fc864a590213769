"""A check, and its verdict.

A check reads a `History` and returns a `Verdict`: how much it has looked at (S2), what is wrong for good, and what is
not there yet but may still come. It is called again and again until nothing is missing, or time is up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abeyant.broker.checks.history import History
from abeyant.errors import AbeyantError

_SHOWN = 3


@dataclass(frozen=True)
class Verdict:
    """What a check returns: how much was checked, what is wrong, and what is missing so far."""

    seen: int
    """How much was checked; a check that saw nothing fails."""
    of: str
    """The noun for `seen`, as in "records acknowledged in orders"."""
    wrong: tuple[str, ...] = ()
    """Violations, which are final: waiting does not help."""
    missing: tuple[str, ...] = ()
    """What is missing so far, and may still come."""


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
    """Return what to say of a verdict at the end, in a line; None where all is well."""
    problems = [*verdict.wrong, *verdict.missing]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        return f"{check.name}: {'; '.join(problems[:_SHOWN])}{more}"
    if not verdict.seen:
        return f"{check.name}: it saw no {verdict.of}, so it proves nothing"
    return None
