"""Record one run for its timeline: waiting requests, and partitions, groups and transactions as they change.

The watcher runs whenever a broker responds or replicates, and has no timer of its own. So a watched run is equal, to
the byte, to the same run without a watcher.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from abeyant.broker.checks.history import Place
from abeyant.broker.coordinator.topics import INTERNAL
from abeyant.broker.delayed.operation import Waiting
from abeyant.broker.requests.common.named import name_of

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.simulation import SimulationLoop

_SHORT: Final = 0.02  # seconds: a request that is answered sooner has not waited
_POLLS: Final = ("Fetch", "Heartbeat", "ConsumerGroupHeartbeat")  # they wait, or recur, while nothing happens


class Request(NamedTuple):
    """A client's request that waited at a broker, or was answered with an error."""

    since: float
    at: float
    """Time of the response."""
    broker: int
    process: str
    api: str
    error: str
    """Kafka's name of the error; NONE without an error."""


class Level(NamedTuple):
    """The state of a partition, as its leader has it, from `at` until the next `Level`."""

    at: float
    end: int
    """The log end offset."""
    high_watermark: int
    leader: int
    """The leader's broker id; -1 while there is none."""
    epoch: int
    in_sync: tuple[int, ...]


class Phase(NamedTuple):
    """The state of a group or a transaction, from `at` until the next `Phase`."""

    at: float
    state: str
    """Kafka's name of the state."""
    about: str


class Strike(NamedTuple):
    """A request that a fault has hit."""

    at: float
    broker: int
    process: str
    what: str


class Watcher:
    """The requests and state changes of one run, recorded for its timeline. Times are seconds of the run."""

    def __init__(self, loop: SimulationLoop, kafka: Cluster) -> None:
        self.requests: list[Request] = []
        self.strikes: list[Strike] = []
        self.levels: dict[Place, list[Level]] = {}
        self.groups: dict[str, list[Phase]] = {}
        self.transactions: dict[str, list[Phase]] = {}
        self.waiting: list[Waiting] = []
        """Requests that are pending at the end, with times on the loop's clock."""
        self._loop = loop
        self._kafka = kafka

    def responded(self, call: Any, errors: list[str], process: str) -> None:
        """Record a request that waited or failed, and what has changed in the cluster."""
        now, api = self._loop.now, call.api.name
        since = now - (call.broker.now() - call.since)
        error = next((one for one in errors if one != "NONE"), "NONE")
        if error != "NONE" or (api not in _POLLS and now - since >= _SHORT):
            self.requests.append(Request(since, now, call.broker.id, process, api, error))
        self.look()

    def struck(self, call: Any, what: str) -> None:
        """Record that a fault has hit a request."""
        connection = getattr(call, "connection", None)  # a follower has none
        process = call.client_id if connection is None else self._loop.network.owner_at(connection.peer)
        self.strikes.append(Strike(self._loop.now, call.broker.id, process, f"{name_of(call)} {what}"))
        self.look()

    def look(self) -> None:
        """Record what has changed in the cluster. O(partitions, groups and transactions)."""
        for place, level in self._partitions():
            levels = self.levels.setdefault(place, [])
            if not levels or levels[-1][1:] != level[1:]:
                levels.append(level)
        now = self._loop.now
        for broker, group in groups(self._kafka):
            number, members = getattr(group, "generation", getattr(group, "epoch", 0)), len(group.members)
            about = f"generation {number}, {members} member{'' if members == 1 else 's'}, broker {broker}"
            _follow(self.groups, group.id, Phase(now, group.state.value, about))
        for broker, one in transactions(self._kafka):
            about = f"producer {one.now.producer_id}, epoch {one.now.epoch}, broker {broker}"
            _follow(self.transactions, one.id, Phase(now, one.now.state.shown, about))

    def end(self) -> None:
        """Record the requests that still wait at the end of the run."""
        self.look()
        brokers, now = self._kafka.brokers, self._loop.now
        for one in self._kafka._waiting_now(None, None):
            if one.kind not in _POLLS and one.broker in brokers:
                ahead = now - brokers[one.broker].now()
                self.waiting.append(one._replace(since=one.since + ahead, deadline=one.deadline + ahead))

    def _partitions(self) -> Iterator[tuple[Place, Level]]:
        now, brokers = self._loop.now, self._kafka.brokers
        for name, topic in self._kafka.controller.topics.items():
            if name in INTERNAL:
                continue
            for state in topic.partitions:
                broker = brokers.get(state.leader)
                replica = None if broker is None else broker.partitions.get((name, state.partition))
                end, high = (-1, -1) if replica is None else (replica.log.end_offset, replica.high_watermark)
                level = Level(now, end, high, state.leader, state.leader_epoch, tuple(sorted(state.isr)))
                yield (name, state.partition), level


def groups(kafka: Cluster) -> Iterator[tuple[int, Any]]:
    """Yield (broker id, group) for each group that a broker coordinates now."""
    for broker in kafka.brokers.values():
        for shard in () if broker.stopped else broker.group_coordinator.loaded():
            for group in shard.all_groups():
                yield broker.id, group


def transactions(kafka: Cluster) -> Iterator[tuple[int, Any]]:
    """Yield (broker id, transaction) for each transactional id that a broker coordinates now."""
    for broker in kafka.brokers.values():
        for shard in () if broker.stopped else broker.transaction_coordinator.loaded():
            for one in shard.transactions.values():
                yield broker.id, one


def _follow(known: dict[str, list[Phase]], name: str, phase: Phase) -> None:
    phases = known.setdefault(name, [])
    if not phases or phases[-1][1:] != phase[1:]:
        phases.append(phase)
