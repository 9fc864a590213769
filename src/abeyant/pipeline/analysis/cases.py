"""The input and output of the rules for suspects: `Case`, an incident with the activity near it, and `Suspect`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from abeyant.pages.formatting import duration
from abeyant.pipeline.analysis.activity import Activity, Incident, activity_rows
from abeyant.pipeline.analysis.columns import Integers, codes
from abeyant.pipeline.analysis.followers import Fetching, Silence

__all__ = ["TROUBLES", "Case", "NearRows", "Suspect", "affected", "clock", "longest", "moment", "ms"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Suspect:
    """A probable cause of an incident: a row of the table `suspects` (`schemas.SUSPECTS`)."""

    incident: int
    """The incident's number, from 1, in the order of the table `incidents`."""
    suspect: str
    """The suspect's name, such as `broker 2`, `group payments` or `client app-b`."""
    kind: str
    """The rule that named the suspect, such as `silent_broker`."""
    evidence: str
    """A sentence on what the log shows, when and for how long."""
    confidence: float
    """From 0 to 1, by the rule."""
    first: datetime
    """Beginning of the suspect's behaviour; `last` is its end."""
    last: datetime


class NearRows:
    """The rows of `ACTIVITY` near an incident. They are made only when a rule needs them, which is seldom."""

    def __init__(self, activity: pa.Table) -> None:
        self._activity = activity
        self._rows: list[Activity] = []
        self._at = 0

    def between(self, begin: int, end: int) -> list[Activity]:
        """Return rows `begin` to `end`, and keep them, as the next call mostly needs some of them again."""
        if not self._at <= begin <= self._at + len(self._rows):
            self._rows, self._at = [], begin
        made = self._at + len(self._rows)
        self._rows += activity_rows(self._activity.slice(made, max(end - made, 0)))
        del self._rows[: begin - self._at]
        self._at = begin
        return self._rows[: end - begin]


@dataclass(frozen=True)
class Case:
    """An incident, and the activity near it."""

    incident: Incident
    near: pa.Table
    """Activity near the incident (`ACTIVITY`), in order of time; `second` of each row is within `near_seconds`."""
    second: Integers
    near_seconds: range
    calm_rows: Callable[[], list[Activity]]
    """A function that returns the rows of `near` outside of every incident."""
    fetching: Fetching
    silences: Sequence[Silence]
    brokers: dict[str, int]
    """The id of the broker that wrote each log, if known, by instance."""

    @cached_property
    def seconds(self) -> range:
        """Return the seconds from the incident's beginning to its end."""
        return range(self.incident.first_us // 1_000_000, self.incident.last_us // 1_000_000 + 1)

    @cached_property
    def during(self) -> list[Activity]:
        """Return the activity of operations that started during the incident (`seconds`)."""
        return self.started_in(self.seconds)

    def started_in(self, seconds: range) -> list[Activity]:
        """Return the activity of operations near the incident that started in `seconds`."""
        begin, end = map(int, np.searchsorted(self.second, [seconds.start, seconds.stop]))
        return list(activity_rows(self.near.slice(begin, end - begin)))

    @cached_property
    def calm(self) -> list[Activity]:
        """Return the rows of `near` outside of every incident. Costs far more than `during`: check `during` first."""
        return self.calm_rows()

    @cached_property
    def silent(self) -> list[Silence]:
        """Return the silences that overlap the incident."""
        first_us, last_us = self.incident.first_us, self.incident.last_us
        return [one for one in self.silences if one.first_us < last_us and one.last_us > first_us]

    @cached_property
    def still(self) -> set[int]:
        """Return the ids of brokers that hung: they sent no fetch to a live leader, and their own log was silent."""
        logs = {broker: instance for instance, broker in self.brokers.items()}
        elsewhere = [one for one in self.silent if not self.is_silent(one.instance, one)]
        talked = {one.replica for one in elsewhere if not self.is_silent(logs.get(one.replica), one)}
        return {one.replica for one in elsewhere} - talked

    @cached_property
    def deserted(self) -> set[str]:
        """Return the leaders' logs from which all followers (two or more) stopped fetching: the leader is at fault."""
        followers: dict[str, set[int]] = defaultdict(set)
        for instance, replica in self.fetching.pairs_in(self.near_seconds):
            followers[instance].add(replica)
        silent: dict[str, set[int]] = defaultdict(set)
        for one in self.silent:
            silent[one.instance].add(one.replica)
        return {log for log, replicas in silent.items() if len(replicas) > 1 and replicas == followers[log]}

    @cached_property
    def _began(self) -> dict[str, set[int]]:
        began: dict[str, set[int]] = defaultdict(set)
        instance, instances = codes(self.near["instance"])
        names = instances.to_pylist()
        for both in np.unique(self.second * len(names) + instance).tolist() if names else ():
            began[names[both % len(names)]].add(both // len(names))
        return began

    def is_silent(self, instance: str | None, one: Silence) -> bool:
        """Return whether no operation started in a log during the silence, except in its first and last second."""
        inside = range(one.first_us // 1_000_000 + 1, one.last_us // 1_000_000)
        return instance in self._began and bool(inside) and self._began[instance].isdisjoint(inside)

    def broker(self, instance: str) -> str:
        """Return `broker N` for the broker that wrote a log, or the log's name if its id is unknown."""
        return f"broker {self.brokers[instance]}" if instance in self.brokers else instance

    def named(self, broker: int) -> str:
        """Return `broker N` for a sentence, with the name of the broker's log if the name does not show the number."""
        logs = [instance for instance, its in self.brokers.items() if its == broker]
        if len(logs) != 1 or re.findall(r"\d+", logs[0])[-1:] == [str(broker)]:
            return f"broker {broker}"
        return f"broker {broker} (its log is {logs[0]})"

    def named_log(self, instance: str) -> str:
        """Return the broker that wrote a log, as in `named`; the log's name if the broker's id is unknown."""
        return self.named(self.brokers[instance]) if instance in self.brokers else instance

    def suspect(self, name: str, rule: str, evidence: str, confidence: float) -> Suspect:
        """Return a suspect of this incident, with the times of the incident as the suspect's."""
        times = moment(self.incident.first_us), moment(self.incident.last_us)
        return Suspect(self.incident.number, name, rule, evidence, confidence, *times)


TROUBLES: Final = {
    "waited": "waited",
    "throttled": "were throttled",
    "handled": "were handled slowly",
    "sent": "were answered slowly",
    "rebalanced": "waited",
    "refused": "were refused",
    "paused": "came late",
}
"""What happened to an incident's operations, in words."""


def affected(incident: Incident) -> str:
    """Return a phrase for the operations of an incident, such as '1,204 PRODUCE waited'."""
    return f"{incident.operations:,} {incident.kind} {TROUBLES[incident.trouble]}"


def longest(case: Case) -> str:
    """Return the longest wait of the incident's kind, in words."""
    return ms(max((row.longest_us for row in case.during if row.kind == case.incident.kind), default=0))


def clock(case: Case) -> str:
    """Return the time at which the incident began, as HH:MM:SS in UTC."""
    return f"{moment(case.incident.first_us):%H:%M:%S}"


def ms(us: float) -> str:
    """Return microseconds as a duration in words."""
    return duration(us / 1000).replace("\N{NO-BREAK SPACE}", " ")


def moment(us: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return _EPOCH + timedelta(microseconds=us)
