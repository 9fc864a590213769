"""What is claimed of forgetting late."""

from __future__ import annotations

from typing import Final

from lab.report.claims.claim import Claim, Finding
from lab.report.run import Run

__all__ = ["CLAIMS"]


def _memory(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    kafka = run.of("kafka", keys=keys).set_index("purge_interval")["memory, most"].sort_index()
    ours = float(run.of("ours", keys=keys)["memory, most"].iloc[0])
    ratio = float(kafka.iloc[-1] / kafka.iloc[0])
    said = (
        f"with {keys} keys an operation Kafka's design needs {kafka.iloc[0]:,.1f} MiB at a purge interval of"
        f" {kafka.index[0]:,}, {kafka.iloc[-1]:,.1f} MiB at {kafka.index[-1]:,}; ours {ours:,.1f} MiB, it has none"
    )
    return Finding("held" if ratio >= 3 else "held in part" if ratio >= 1.3 else "not held here", said)


def _frequent(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    visits = run.of("kafka", keys=keys).set_index("purge_interval")["looked at by purges"].sort_index()
    cpu = run.of("kafka", keys=keys).set_index("purge_interval")["CPU an operation"].sort_index()
    ours = float(run.of("ours", keys=keys)["CPU an operation"].iloc[0])
    ratio = float(cpu.iloc[0] / cpu.min())
    said = (
        f"with {keys} keys, purges look at {visits.iloc[0]:,.0f} watches per operation at an interval of"
        f" {visits.index[0]:,}, and at {visits.iloc[-1]:,.0f} at {visits.index[-1]:,}. CPU per operation is"
        f" {cpu.iloc[0]:,.1f} µs against {cpu.min():,.1f} µs at best; ours takes {ours:,.1f} µs"
    )
    return Finding(
        "held" if ratio >= 1.2 else "held in part" if visits.iloc[0] > visits.iloc[-1] else "not held here", said
    )


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Completed operations stay on the lists of slow keys; with a large purge interval they fill the memory.",
        "Apache Kafka: fetch and producer purgatory purge intervals; law P4",
        _memory,
        "Held if the largest interval needs at least 3 times the memory of the smallest; in part from 1.3 times.",
    ),
    Claim(
        "A small purge interval costs CPU.",
        "the same trade-off, from its other side",
        _frequent,
        "Held if the smallest interval costs at least 1.2 times the least CPU; in part if purges look at"
        " more than at the largest interval.",
    ),
]
