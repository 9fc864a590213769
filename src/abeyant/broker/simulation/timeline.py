"""Turn a watched run into a timeline: lanes (rows), each with marks over time. `timeline_page` draws it as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from abeyant.broker.checks.history import Event, History, Item, Place
from abeyant.broker.simulation.faults import THE_FAULTS_END
from abeyant.broker.simulation.watcher import Level, Phase, Watcher
from abeyant.broker.simulation.world import RunResult

THE_TEST: Final = "the test"
_LONGEST: Final = 40  # characters of a value that is shown
_MARGIN: Final = 1.04  # factor for the time of the last mark
_LEADER: Final = Level._fields.index("leader")  # from here on the fields describe the leader, before the log
_RECORDS: Final = 3  # at most, of a failure, whose history is listed


class Mark(NamedTuple):
    """An event in a lane: at the time `at`, or from `at` to `until`. Times are virtual seconds since the run began."""

    at: float
    until: float | None
    kind: str
    """The kind of event, which is its CSS class: "acknowledged", "handed", "committed", "down", "waited", ..."""
    about: str
    """What happened, for people to read."""


@dataclass
class Lane:
    """A row of the timeline: one broker, program, partition, group or transactional id, with its marks."""

    part: str
    """The section of the timeline: "Programs", "Brokers", "Partitions", "Groups" or "Transactions"."""
    name: str
    marks: list[Mark] = field(default_factory=list)
    high_watermark: list[tuple[float, int]] = field(default_factory=list)
    """For a partition, (time, high watermark) at each change; -1 without a leader."""
    end: list[tuple[float, int]] = field(default_factory=list)
    """For a partition, (time, the leader's log end offset) at each change; -1 without a leader."""


@dataclass
class Timeline:
    """The lanes and events of one run."""

    lanes: list[Lane]
    events: list[Mark]
    """Faults and other events of the cluster and its programs."""
    until: float
    """Where the drawn time ends, in seconds: the last mark plus a margin."""


PARTS: Final = ("Programs", "Brokers", "Partitions", "Groups", "Transactions")


def timeline(outcome: RunResult) -> Timeline:
    """Return a watched run's timeline. O(n log n) for n marks."""
    watched, history = outcome.watched, outcome.history
    assert watched is not None
    lanes: dict[tuple[str, str], Lane] = {}

    def mark(part: str, name: str, at: float, until: float | None, kind: str, about: str) -> None:
        lanes.setdefault((part, name), Lane(part, name)).marks.append(Mark(at, until, kind, about))

    for broker in sorted({call.broker for call in watched.requests} | _leaders(watched)):
        lanes["Brokers", f"broker {broker}"] = Lane("Brokers", f"broker {broker}")
    for name, at, until, kind, about in (*_done_by_programs(history), *_hit(watched)):
        mark("Programs", name or THE_TEST, at, until, kind, about)
    for part, name, at, until, about in _down(history):
        mark(part, name, at, until, "down", about)
    for call in watched.requests:
        text = f"{call.api} of {call.process or THE_TEST}"
        reply = f"answered with {call.error}" if call.error != "NONE" else "answered"
        kind = "waited" if call.error == "NONE" else "failed"
        mark("Brokers", f"broker {call.broker}", call.since, call.at, kind, f"{text} waits; {reply} at {call.at:.3f} s")
    end = max(history.now, outcome.seconds)
    for wait in watched.waiting:
        about = (
            f"{wait.kind} of {wait.client_id} still waits at the end, for {', '.join(_key(key) for key in wait.keys)}"
        )
        mark("Brokers", f"broker {wait.broker}", wait.since, end, "waited", about)
    for place, levels in sorted(watched.levels.items()):
        lane = lanes["Partitions", _place(place)] = Lane("Partitions", _place(place))
        for number, level in enumerate(levels):
            lane.high_watermark.append((level.at, level.high_watermark))
            lane.end.append((level.at, level.end))
            before = levels[number - 1] if number else None
            if before is None or before[_LEADER:] != level[_LEADER:]:
                lane.marks.append(Mark(level.at, None, "leader" if level.leader >= 0 else "failed", _led(level)))
    for part, phases in (("Groups", watched.groups), ("Transactions", watched.transactions)):
        for name, states in sorted(phases.items()):
            lanes[part, name] = Lane(part, name, list(_phases(states, end)))
    for lane in lanes.values():
        lane.marks.sort()
    ordered = sorted(lanes.values(), key=lambda lane: (PARTS.index(lane.part), lane.name == THE_TEST, lane.name))
    events = [Mark(event.at, _until(event, history), "fault", event.what) for event in history.events]
    return Timeline(ordered, events, _last(ordered, events, end))


def _done_by_programs(history: History) -> Iterator[tuple[str, float, None, str, str]]:
    for produce in history.produced:
        text = f"{_shown(produce.items)} to {produce.topic}-{produce.partition}"
        if produce.error == "NONE":
            yield produce.process, produce.at, None, "acknowledged", f"{text} acknowledged, offset {produce.offset}"
        else:
            yield produce.process, produce.at, None, "failed", f"{text} refused: {produce.error}"
    for read in history.handed:
        about = f"{read.client} is handed {_shown((read.item,))} of {read.topic}-{read.partition}, offset {read.offset}"
        yield read.process, read.at, None, "handed", about
    for commit in history.committed:
        text = f"{commit.group} commits {commit.topic}-{commit.partition} up to {commit.offset}"
        kind = "committed" if commit.error == "NONE" else "failed"
        yield (
            commit.process,
            commit.at,
            None,
            kind,
            text + ("" if commit.error == "NONE" else f", refused: {commit.error}"),
        )
    for end in history.ended:
        text = f"{end.transactional_id} {'commits' if end.committed else 'aborts'} its transaction"
        kind = "committed" if end.error == "NONE" else "failed"
        yield end.process, end.at, None, kind, text + ("" if end.error == "NONE" else f", refused: {end.error}")
    for join in history.joined:
        partitions = ", ".join(map(_place, join.partitions)) or "no partitions"
        yield join.process, join.at, None, "joined", f"{join.client} is assigned {partitions}"
    for seek in history.sought:
        about = f"{seek.client} seeks {seek.topic}-{seek.partition} offset {seek.offset}"
        yield seek.process, seek.at, None, "joined", about


def _hit(watched: Watcher) -> Iterator[tuple[str, float, None, str, str]]:
    for strike in watched.strikes:
        yield strike.process, strike.at, None, "fault", f"{strike.what} (at broker {strike.broker})"


def _down(history: History) -> Iterator[tuple[str, str, float, float, str]]:
    """Yield the periods in which brokers and programs were down, or cut off."""
    for event in history.events:
        until = _until(event, history)
        if until is not None and event.subject:
            part = "Brokers" if event.subject.startswith("broker ") else "Programs"
            yield part, event.subject, event.at, until, event.what


def _until(event: Event, history: History) -> float | None:
    """Return the end of an event; for a fault, no later than the end of all faults."""
    ends = next((other.at for other in history.events if other.what == THE_FAULTS_END), math.inf)
    if event.until is None or event.at > ends or " ended with " in event.what:
        return event.until
    return min(event.until, ends)


def _led(level: Level) -> str:
    leader = f"broker {level.leader} leads" if level.leader >= 0 else "no leader"
    return f"{leader}, epoch {level.epoch}; in sync: {', '.join(map(str, level.in_sync))}"


def _leaders(watched: Watcher) -> set[int]:
    levels = (level for levels in watched.levels.values() for level in levels)
    return {broker for level in levels for broker in level.in_sync}


def _phases(phases: Sequence[Phase], end: float) -> Iterator[Mark]:
    for number, phase in enumerate(phases):
        until = phases[number + 1].at if number + 1 < len(phases) else end
        yield Mark(phase.at, until, _look(phase.state), f"{phase.state}: {phase.about}")


def _look(state: str) -> str:
    """Return the CSS class for a group's or transaction's state: "rest", "busy" or "settled"."""
    if state in ("Stable", "CompleteCommit"):
        return "settled"
    return "rest" if state in ("Empty", "Dead", "CompleteAbort") else "busy"


def _last(lanes: Sequence[Lane], events: Sequence[Mark], end: float) -> float:
    """Return the time of the last mark plus a margin of 4 %, at most the run's end."""
    moments = [0.5]
    for lane in lanes:
        moments += [mark.at if mark.until in (None, end) else mark.until or 0.0 for mark in lane.marks]
        moments += [at for at, _ in lane.high_watermark]
    moments += [event.at for event in events] + [event.until for event in events if event.until is not None]
    return min(max(moments) * _MARGIN, max(end, 0.5))


# -- two runs, and one record


def first_difference(one: Timeline, other: Timeline) -> float:
    """Return the time of the first difference between two runs, in seconds; infinity if they are the same."""
    one_marks, other_marks = sorted(_all_marks(one)), sorted(_all_marks(other))
    for number in range(max(len(one_marks), len(other_marks))):
        if one_marks[number : number + 1] != other_marks[number : number + 1]:
            return min(marks[number][0] for marks in (one_marks, other_marks) if number < len(marks))
    return math.inf


def _all_marks(run: Timeline) -> Iterator[tuple[float, str, str, str]]:
    for lane in run.lanes:
        for mark in lane.marks:
            yield mark.at, lane.name, mark.kind, "" if mark.until else mark.about
    for event in run.events:
        yield event.at, "", event.kind, event.about


def record_stories(history: History, message: str) -> dict[str, list[tuple[float, str]]]:
    """Return what happened to the records that a failure names, by value, as (time, text). At most three records."""
    values = {item.value for produce in history.produced for item in produce.items if item.value}
    matches = [
        value for value in sorted(values) if repr(value) in message or repr(value.decode(errors="replace")) in message
    ]
    return {_text(value): _record_steps(history, value) for value in matches[:_RECORDS]}


def _record_steps(history: History, value: bytes) -> list[tuple[float, str]]:
    steps: list[tuple[float, str]] = []
    places: dict[Place, int] = {}
    for produce in history.produced:
        for number, item in enumerate(produce.items):
            if item.value == value:
                location = f"{produce.topic}-{produce.partition}"
                if produce.error == "NONE":
                    places[produce.topic, produce.partition] = produce.offset + number
                    text = f"acknowledged at {location}, offset {produce.offset + number}"
                else:
                    text = f"sent to {location}, refused: {produce.error}"
                steps.append((produce.at, f"{text} (to {produce.process or THE_TEST})"))
    for read in history.handed:
        if read.item.value == value:
            steps.append((read.at, f"handed to {read.client}"))
    covered: set[tuple[str, Place]] = set()
    for commit in history.committed:
        place = commit.topic, commit.partition
        if (
            commit.error == "NONE"
            and place in places
            and commit.offset > places[place]
            and (commit.group, place) not in covered
        ):
            covered.add((commit.group, place))
            steps.append((commit.at, f"{commit.group} commits {_place(place)} up to {commit.offset}: past it"))
    steps += [(event.at, event.what) for event in history.events]
    return sorted(steps)


def _shown(items: Sequence[Item]) -> str:
    if len(items) != 1:
        return f"{len(items)} records"
    return "a tombstone" if items[0].value is None else _text(items[0].value)


def _text(value: bytes) -> str:
    text = value.decode(errors="replace")
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def _place(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _key(key: tuple[str, int | str]) -> str:
    return f"{key[0]}-{key[1]}"
