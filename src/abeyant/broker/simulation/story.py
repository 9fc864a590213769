"""Describe a failure for the terminal: the violation, the faults, how to repeat the run. About ten lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from abeyant.broker.simulation.search import RunId
from abeyant.broker.simulation.world import RunResult
from abeyant.pages.formatting import counted

_EVENTS: Final = 8
_STEPS: Final = {"group": "groups", "transaction": "transactions", "replicas": "replicas"}


def story(outcome: RunResult, which: RunId, tried: int, command: str, page: Path | None = None) -> str:
    """Return the description of a run that failed. `tried` is the number of seeds tried; 0 for a repeated run.

    `command` is the pytest command that repeats the run; `page` is the file with its timeline.
    """
    failure = outcome.failure
    assert failure is not None
    events = outcome.history.events
    found = f"found by seed {outcome.seed}, {counted(tried, 'seed')} tried; shrunk to"
    lines = [failure.message, f"  {found if tried else f'seed {outcome.seed} repeated'}:"]
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


def coverage(seeds: int, seen: Collection[str], first: Mapping[str, int]) -> list[str]:
    """Return lines that say what `seeds` runs reached. `first`: by test, how many seeds reached something new."""
    by_kind: dict[str, list[str]] = {}
    apis = set()
    for one in sorted(seen):
        what, _, reached = one.partition(" ")
        if what in _STEPS:
            by_kind.setdefault(_STEPS[what], []).append(reached)
            continue
        apis.add(what)
        if reached != "NONE":
            by_kind.setdefault("errors", []).append(one)
    new = sum(first.values())
    answered = f"{counted(len(apis), 'API')} answered"
    lines = [f"kafka: {counted(seeds, 'seed')}; {answered}; {counted(new, 'seed')} reached something new"]
    for kind in ("errors", *_STEPS.values()):
        lines.append(f"  {kind}: {', '.join(by_kind.get(kind, ())) or 'none'}")
    return lines
