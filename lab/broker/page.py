"""Write the table of the broker's benchmarks, and the documentation page around it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from lab.broker.peers import PEERS
from lab.machine import machine, versions

PATH = "docs/benchmarks-broker.md"
FETCHES = 10_000  # long polls that wait at once
BATCHES = 10_000  # acquired at once by a member of a share group
MEMBERS, REBALANCED = 10_000, 1_000  # group members that heartbeat, and that rebalance
_QUIET_LOAD, _QUIET_OTHERS = 0.5, 0.05  # processes, share of CPU: below both the machine is quiet
_NOTES = Path(__file__).with_name("notes.md")


Figures = Mapping[str, Mapping[str, float]]
"""Figures by row, then by peer."""

_IMPORTS = (
    "Half of this time is asyncio's own import and the definition of kio's message classes; the sockets take 3 ms."
)
_ROUND_TRIP = (
    "The client's threads and the kernel take about as long as the broker. The broker's share is Python, once per"
    " request: the batch is checked, two followers append it, and their next fetches raise the high watermark."
)
_WAKE = (
    "After 20 ms the processor's caches are full of others' memory. Then the brokers' part, from the request to the"
    " long poll's answer, takes some 0.5 ms in place of the 0.1 ms that it takes when records follow one another, and"
    " the two clients' threads are as cold. The rows below have the same with a record every 2 ms, and the floor: a"
    " relay between two sockets."
)
_CLIENT = "The client's thread and the brokers share the machine's cores."


class _Row(NamedTuple):
    title: str
    digits: int
    target: str
    most: float | None = None
    least: float | None = None
    against_kafka: str = ""  # "above" or "below" what genuine Kafka reaches in the same run
    bound: str = ""  # what bounds the figure; printed where the target is missed

    def label(self, scale: int) -> str:
        """Return the title with the run's counts filled in."""
        return self.title.format(*(f"{count // scale:,}" for count in (FETCHES, MEMBERS, REBALANCED, BATCHES)))


_ROWS = {
    "listening": _Row("from `import` to three brokers that listen, s", 3, "≤ 0.15", most=0.15, bound=_IMPORTS),
    "first": _Row("from `import` to the first produced record, s", 3, "≤ 0.25", most=0.25, bound=_IMPORTS),
    "another": _Row("a further cluster in the process, s", 3, "≤ 0.02", most=0.02),
    "memory": _Row("memory, three brokers idle, MB", 0, "≤ 80", most=80),
    "idle": _Row("three brokers with 100 partitions, no client, for a minute, % of a core", 2, "< 1", most=1),
    "produce-p50": _Row(
        "`acks=all` on three replicas, p50, ms",
        2,
        "≤ 0.2, below Kafka's",
        0.2,
        against_kafka="below",
        bound=_ROUND_TRIP,
    ),
    "produce-p99": _Row(
        "`acks=all` on three replicas, p99, ms", 2, "≤ 1, below Kafka's", 1, against_kafka="below", bound=_ROUND_TRIP
    ),
    "produce-cpu": _Row("the brokers' processor time for it, ms", 2, ""),
    "wake-p50": _Row("a long poll woken by one record, p50, ms", 2, "≤ 0.5", most=0.5, bound=_WAKE),
    "wake-p99": _Row("a long poll woken by one record, p99, ms", 2, "≤ 3", most=3, bound=_WAKE),
    "wake-cpu": _Row("the brokers' processor time for it, ms", 2, ""),
    "wake-soon-p50": _Row("the same with a record every 2 ms, p50, ms", 2, ""),
    "wake-soon-p99": _Row("the same with a record every 2 ms, p99, ms", 2, ""),
    "wake-soon-cpu": _Row("the brokers' processor time for it, ms", 2, ""),
    "relay-p50": _Row("floor: a relay between two sockets, every 20 ms, p50, ms", 2, ""),
    "relay-p99": _Row("floor: a relay between two sockets, every 20 ms, p99, ms", 2, ""),
    "relay-cpu": _Row("the relay's processor time for it, ms", 2, ""),
    "produce-all": _Row(
        "`acks=all` on three replicas, records per second", 0, "≥ 400,000, above Kafka's", None, 4e5, "above", _CLIENT
    ),
    "produce-one": _Row("`acks=1` on one replica, records per second", 0, "limited by the client"),
    "consume": _Row("consumed, records per second", 0, "above Kafka's", None, 0, "above", _CLIENT),
    "consume-cpu": _Row("the brokers' processor time for a million of them, s", 2, ""),
    "waiting": _Row("{0} waiting fetches, nothing arrives, % of a core", 2, "< 1", most=1),
    "woken": _Row("fetches on a partition woken by one record to it, %", 0, "all, and no others", least=100),
    "locks": _Row("{3} batches acquired by a member of a share group, the brokers' processor time, s", 2, ""),
    "locks-memory": _Row("memory that they take, MB", 1, ""),
    "locks-hold": _Row("the brokers' processor time for 20 s, in which the locks of 15 s end, s", 2, ""),
    "members": _Row("{1} group members, a heartbeat each every 3 s, % of a core", 1, ""),
    "members-memory": _Row("memory, three brokers with those members connected, MB", 0, ""),
    "rebalance": _Row("a rebalance of {2} members, s", 2, ""),
    "rebalance-cpu": _Row("the brokers' processor time for it, s", 2, ""),
}


class Circumstances(NamedTuple):
    """The conditions of a run: its rounds, and how busy the machine was."""

    rounds: int
    minutes: float
    load: float
    """The number of runnable processes when the run began."""
    others: float | None
    """Share of the machine's CPU that other processes used, 0 to 1."""
    gaps: Mapping[str, str]
    """For each peer that lacks a figure, the reason."""
    scale: int = 1
    """The number by which the sizes of a full run were divided."""


def table(figures: Figures, scale: int = 1) -> str:
    """Return the table in Markdown: a row per figure, a column per peer. `scale` divided a full run's sizes."""
    peers = [name for name in PEERS if any(name in by for by in figures.values())]
    lines = [f"| | {' | '.join(PEERS[name].label for name in peers)} | to reach | |"]
    lines.append(f"|---|{'---:|' * len(peers)}---|---|")
    for name, row in _ROWS.items():
        if name in figures:
            cells = [_cell(figures[name].get(peer), row.digits) for peer in peers]
            lines.append(
                f"| {row.label(scale)} | {' | '.join(cells)} | {row.target} | {_verdict(row, figures[name])} |"
            )
    return "\n".join(lines) + "\n"


def _cell(figure: float | None, digits: int) -> str:
    return "-" if figure is None else f"{figure:,.{digits}f}"


def _verdict(row: _Row, by: Mapping[str, float]) -> str:
    return {None: "", True: "reached", False: "**missed**"}[_target_met(row, by)]


def _target_met(row: _Row, by: Mapping[str, float]) -> bool | None:
    """Return whether the target is met; None without a target or without a figure to compare."""
    ours, kafka = by.get("abeyant"), by.get("kafka")
    if ours is None or (row.most is None and row.least is None):
        return None
    met = (row.most is None or ours <= row.most) and (row.least is None or ours >= row.least)
    if not met or not row.against_kafka:
        return met
    if kafka is None:
        return None
    return ours < kafka if row.against_kafka == "below" else ours > kafka


def _missed(figures: Figures, scale: int) -> str:
    """Return the missed targets as a Markdown list, grouped by what bounds them."""
    reasons: dict[str, list[str]] = {}
    for name, row in _ROWS.items():
        if _target_met(row, figures.get(name, {})) is False:
            reasons.setdefault(row.bound, []).append(name)
    if not reasons:
        return "This run met every target that it could judge.\n"
    lines = []
    for bound, names in reasons.items():
        figures_missed = " · ".join(
            f"{_ROWS[name].label(scale)}: {_cell(figures[name]['abeyant'], _ROWS[name].digits)} ({_ROWS[name].target})"
            for name in names
        )
        lines.append(f"- {figures_missed}.{' ' if bound else ''}{bound}\n")
    return "".join(lines)


def render(figures: Figures, run: Circumstances) -> str:
    """Return the page in Markdown, table included."""
    facts = machine() | versions()
    facts |= {name: metadata.version(name) for name in ("confluent-kafka", "kio")}
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"""# Benchmarks of the broker

<!-- Written by `make bench-broker BENCH=--write`; edit lab/broker/notes.md for the text below the table. -->

Taken {datetime.datetime.now(datetime.UTC):%Y-%m-%d} in one run of {run.minutes:.0f} minutes, {_rounds(run.rounds)}.
Records have 100 B. Each peer is three brokers on the machine below, one peer at a time. The client is the same
unmodified confluent-kafka, in a process of its own.

{_machine_state(run)}
{"".join(f"**{PEERS[name].label}** is incomplete: {why}.{chr(10)}{chr(10)}" for name, why in run.gaps.items())}
{table(figures, run.scale)}
## Missed targets

{_missed(figures, run.scale)}
| | |
|---|---|
{rows}

{_NOTES.read_text()}"""


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"medians of {count} rounds"


def _machine_state(run: Circumstances) -> str:
    others = "" if run.others is None else f", and other processes used {run.others:.0%} of its CPU during the run"
    busy = run.load >= _QUIET_LOAD or (run.others or 0) >= _QUIET_OTHERS
    verdict = "**The machine was not quiet**, so times are upper bounds" if busy else "The machine was quiet"
    return f"{verdict}: {run.load:.1f} processes were runnable at the start{others}.\n"
