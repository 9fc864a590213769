"""Reads the captured lines back: counts for the README, and the proof that the capture is good.

This is on purpose not the pipeline's reader: it is the second opinion, in plain Python.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# Kafka's timer may fire up to a millisecond before the time-out.
EARLY_MS = 1.0
REQUEST_TIMED_OUT = 7
LEAST_REQUESTS = 20_000


@dataclass
class Kind:
    """What the requests of one kind came to."""

    requests: int = 0
    waited: int = 0
    expired: int = 0
    longest_ms: float = 0.0


@dataclass
class Summary:
    """What a capture holds."""

    first: str = "~"
    last: str = ""
    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    fetches: Counter[str] = field(default_factory=Counter)
    produce_errors: Counter[int] = field(default_factory=Counter)
    patient_produces: int = 0
    named_topics: set[str] = field(default_factory=set)
    asked_topics: set[str] = field(default_factory=set)

    @property
    def requests(self) -> int:
        """How many there are, of every kind."""
        return sum(kind.requests for kind in self.kinds.values())


def read(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield time and JSON of every request line; anything else is an error."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                start, end = line.index("{"), line.rindex("}") + 1
                yield line[1:24], json.loads(line[start:end])


def summarize(paths: Iterable[Path]) -> Summary:
    """Read all of the log."""
    summary = Summary()
    for at, entry in read(paths):
        summary.first, summary.last = min(summary.first, at), max(summary.last, at)
        name = entry["requestHeader"]["requestApiKeyName"]
        kind = summary.kinds[name]
        waited = float(entry["remoteTimeMs"])
        kind.requests += 1
        kind.waited += waited > 0
        kind.longest_ms = max(kind.longest_ms, waited)
        kind.expired += _expired(summary, name, entry, waited)
        if name == "METADATA":
            topics = entry["response"]["topics"]
            summary.named_topics.update(t["topicId"] for t in topics if "topicId" in t)
    return summary


def _expired(summary: Summary, name: str, entry: dict[str, Any], waited: float) -> bool:
    request, response = entry["request"], entry["response"]
    if name == "PRODUCE":
        # acks=0 has no response.
        codes = {
            partition["errorCode"]
            for topic in (response or {}).get("responses", ())
            for partition in topic["partitionResponses"]
        }
        summary.produce_errors.update(codes)
        summary.patient_produces += codes == {0} and waited > 2000
        return REQUEST_TIMED_OUT in codes
    if name == "DELETE_RECORDS":
        return any(
            partition["errorCode"] == REQUEST_TIMED_OUT
            for topic in response["topics"]
            for partition in topic["partitions"]
        )
    # An operation starts while the request's local part still runs, so count that, too.
    in_all = waited + float(entry["localTimeMs"])
    if name == "FETCH":
        expired = waited > 0 and in_all >= request["maxWaitMs"] - EARLY_MS
        if entry["listener"] == "CONTROLLER":
            who = "controller"
        elif "replicaState" in request:
            who = "follower"
        else:
            who = "consumer"
            # Up to version 12 a fetch names its topics.
            summary.asked_topics.update(t["topicId"] for t in request["topics"] if "topicId" in t)
        end = "expired" if expired else "early" if waited > 0 else "at once"
        summary.fetches[f"{who}, {end}"] += 1
        return expired
    if name == "JOIN_GROUP":
        return bool(in_all >= request["rebalanceTimeoutMs"] - EARLY_MS)
    return False


def complaints(summary: Summary) -> list[str]:
    """List what the capture lacks: nothing, when it is good."""
    kinds = summary.kinds
    wanted = {
        f"{name} that waited": kinds[name].waited
        for name in ("PRODUCE", "FETCH", "JOIN_GROUP", "SYNC_GROUP", "DELETE_RECORDS")
    }
    wanted["PRODUCE with REQUEST_TIMED_OUT"] = summary.produce_errors[REQUEST_TIMED_OUT]
    wanted["PRODUCE that waited more than 2 s and succeeded"] = summary.patient_produces
    wanted["JOIN_GROUP that waited for the whole rebalance time-out"] = kinds["JOIN_GROUP"].expired
    wanted["DELETE_RECORDS that expired"] = kinds["DELETE_RECORDS"].expired
    wanted["SYNC_GROUP that waited more than 2 s"] = int(kinds["SYNC_GROUP"].longest_ms > 2000)
    for end in ("expired", "early", "at once"):
        for who in ("consumer", "follower"):
            wanted[f"FETCH of a {who}, {end}"] = summary.fetches[f"{who}, {end}"]
    found = [f"no {what}" for what, count in wanted.items() if not count]
    if unnamed := summary.asked_topics - summary.named_topics:
        found.append(f"no METADATA names the topic ids {sorted(unnamed)}")
    if summary.requests < LEAST_REQUESTS:
        found.append(f"only {summary.requests} requests, wanted {LEAST_REQUESTS}")
    return found
