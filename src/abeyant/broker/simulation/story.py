"""The story of a failure, for the terminal: what was broken, what was done, how to repeat it. Ten lines or so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from abeyant.broker.simulation.search import RunId
from abeyant.broker.simulation.world import Outcome

_EVENTS: Final = 8


def story(outcome: Outcome, which: RunId, tried: int, command: str, page: Path | None = None) -> str:
    """Return the story of a shrunk run, found after `tried` seeds; `command` repeats it, `page` has its timeline."""
    failure = outcome.failure
    assert failure is not None
    events = outcome.history.events
    lines = [failure.message, f"  found by seed {outcome.seed} of {tried} tried; what is left of it when it is shrunk:"]
    lines += [f"  at {event.at:.1f} s {event.what}" for event in events[:_EVENTS]]
    if len(events) > _EVENTS:
        lines.append(f"  and {len(events) - _EVENTS} more")
    if not outcome.faults:
        lines.append("  no fault is needed: the order of things alone")
    lines.append(f"  repeat it: {command} --kafka-repeat {which}")
    lines.append(f"  its timeline: {page or 'add --kafka-story DIR'}")
    if failure.text:
        lines += ["", failure.text.rstrip()]
    return "\n".join(lines)


def coverage(seen: Mapping[tuple[str, str], int]) -> str:
    """Return what the runs have reached: errors by API, in a line."""
    errors = sorted((api, error) for api, error in seen if error != "NONE")
    apis = len({api for api, _ in seen})
    return f"{apis} APIs answered; errors seen: " + (", ".join(f"{api} {error}" for api, error in errors) or "none")
