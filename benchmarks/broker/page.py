"""The table, and the page of the documentation that holds it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker.peers import PEERS
from benchmarks.machine import machine, versions

PATH = "docs/benchmarks-broker.md"
_NOTES = Path(__file__).with_name("notes.md")


class _Row(NamedTuple):
    title: str
    digits: int
    target: str
    most: float | None = None
    least: float | None = None
    against_kafka: str = ""  # "above" or "below" what genuine Kafka reaches in the same run


_ROWS = {
    "listening": _Row("from `import` to three brokers that listen, s", 3, "≤ 0.15", most=0.15),
    "first": _Row("from `import` to the first produced record, s", 3, "≤ 0.25", most=0.25),
    "another": _Row("a further cluster in the process, s", 3, "≤ 0.02", most=0.02),
    "memory": _Row("memory, three brokers idle, MB", 0, "≤ 80", most=80),
    "idle": _Row("three brokers with 100 partitions, no client, for a minute, % of a core", 2, "< 1", most=1),
    "produce-p50": _Row("`acks=all` on three replicas, p50, ms", 2, "≤ 0.2, below Kafka's", 0.2, against_kafka="below"),
    "produce-p99": _Row("the same, p99, ms", 2, "≤ 1, below Kafka's", 1, against_kafka="below"),
    "wake-p50": _Row("a long poll woken by one record, p50, ms", 2, "≤ 0.5", most=0.5),
    "wake-p99": _Row("the same, p99, ms", 2, "≤ 3", most=3),
    "produce-all": _Row(
        "`acks=all` on three replicas, records per second", 0, "≥ 400,000, above Kafka's", None, 400_000, "above"
    ),
    "produce-one": _Row("`acks=1` on one replica, records per second", 0, "limited by the client"),
    "consume": _Row("consumed, records per second", 0, "limited by the client"),
    "waiting": _Row("10,000 fetches that wait, nothing arrives, % of a core", 2, "< 1", most=1),
    "woken": _Row("of the fetches on its partition, woken by one record, %", 0, "all, and no other", least=100),
}


def table(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return the table in Markdown: a row per figure, a column per peer."""
    peers = [name for name in PEERS if any(name in by for by in figures.values())]
    lines = [f"| | {' | '.join(PEERS[name].label for name in peers)} | to reach | |"]
    lines.append(f"|---|{'---:|' * len(peers)}---|---|")
    for name, row in _ROWS.items():
        if name in figures:
            cells = [_cell(figures[name].get(peer), row.digits) for peer in peers]
            lines.append(f"| {row.title} | {' | '.join(cells)} | {row.target} | {_verdict(row, figures[name])} |")
    return "\n".join(lines) + "\n"


def _cell(figure: float | None, digits: int) -> str:
    return "-" if figure is None else f"{figure:,.{digits}f}"


def _verdict(row: _Row, by: Mapping[str, float]) -> str:
    ours, kafka = by.get("abeyance"), by.get("kafka")
    if ours is None or (row.against_kafka and kafka is None) or (row.most is None and row.least is None):
        return ""
    held = (row.most is None or ours <= row.most) and (row.least is None or ours >= row.least)
    if row.against_kafka and kafka is not None:
        held = held and (ours < kafka if row.against_kafka == "below" else ours > kafka)
    return "reached" if held else "**missed**"


def whole(table: str, rounds: int, load: float) -> str:
    """Return the page around the table."""
    facts = machine() | versions()
    facts |= {name: metadata.version(name) for name in ("confluent-kafka", "kio")}
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    quiet = (
        "" if load < 0.5 else f"\n**The machine was not quiet:** {load:.1f} processes wanted its cores at the start.\n"
    )
    return f"""# Benchmarks of the broker

<!-- Written by `make bench-broker BENCH=--write`; what is written by hand is in benchmarks/broker/notes.md. -->

Taken {datetime.datetime.now(datetime.UTC):%Y-%m-%d} in one run, medians of {rounds} rounds. Records have 100 B. Each
peer is three brokers on the machine below, one peer at a time. The client is the same unmodified confluent-kafka, in a
process of its own.
{quiet}
{table}
| | |
|---|---|
{rows}

{_NOTES.read_text()}"""
