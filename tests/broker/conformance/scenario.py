"""What a scenario is, and the stage that it plays on: a few brokers, whose answers are written down."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from waiting import wait_until

from .answers import Names
from .client import ClosedError, Connection
from .messages import Plain, kio_versions
from .settings import ADMIN, GUARDED_FAMILIES, PLUGIN_FAMILIES

# What genuine Kafka has more or less of than kio knows
_ADVERTISED = {"InitProducerId": range(6)}


class Brokers(Protocol):
    """Three brokers with the ids 1, 2 and 3: genuine Kafka's, or ours."""

    patience: float
    """Seconds of real time in which they do what they do by themselves."""

    def connect(self, broker: int, client_id: str | None = "conformance", user: str = ADMIN) -> Connection:
        """A new connection; on brokers with SASL, of this user."""

    def paused(self, broker: int) -> AbstractContextManager[object]:
        """Let a broker stand still, as under SIGSTOP, until the block ends."""

    def elapse(self, seconds: float) -> None:
        """Let that much of the brokers' time pass."""

    def hasten(self, seconds: float) -> None:
        """Let that much time pass at once where time can be held; elsewhere it passes by itself."""

    def raise_epoch(self, transactional_id: str, epoch: int) -> None:
        """Raise a producer's epoch at once where that can be done; broker 1 coordinates it. Elsewhere do nothing."""

    def await_read(self, broker: int) -> None:
        """Return once a broker has read what was sent to it; where nobody can tell, a moment later."""


class Topic(NamedTuple):
    name: str
    id: str


@dataclass(frozen=True)
class Scenario:
    """One scenario at one version of its API."""

    family: str
    name: str
    play: Callable[[Stage], None]
    api: str | None = None
    version: int | None = None

    @property
    def is_guarded(self) -> bool:
        """Whether it plays on brokers with SASL and an authorizer."""
        return self.family in GUARDED_FAMILIES

    @property
    def has_plugin(self) -> bool:
        """Whether it plays on brokers that take clients' metrics."""
        return self.family in PLUGIN_FAMILIES

    @property
    def title(self) -> str:
        return self.name if self.version is None else f"{self.name} [{self.api} v{self.version}]"


def versions(api: str) -> range:
    """The versions that genuine Kafka and kio both know."""
    known = kio_versions(api)
    most = _ADVERTISED.get(api, known)
    return range(max(known[0], most[0]), min(known[-1], most[-1]) + 1)


def lowest_middle_highest(api: str) -> tuple[int, ...]:
    all_of_them = versions(api)
    return tuple(sorted({all_of_them[0], all_of_them[len(all_of_them) // 2], all_of_them[-1]}))


SCENARIOS: list[Scenario] = []

Play = Callable[..., None]


def scenario(api: str | None = None, *, at: Sequence[int] | None = None) -> Callable[[Play], Play]:
    """Enter a scenario: once, or for an API at its lowest, a middle and its highest version, or `at` those given."""

    def enter(play: Play) -> Play:
        family, name = play.__module__.rpartition(".")[2], play.__name__
        chosen = (None,) if api is None else lowest_middle_highest(api) if at is None else at
        SCENARIOS.extend(Scenario(family, name, play, api, version) for version in chosen)
        return play

    return enter


def table(
    api: str | None = None, *, at: Sequence[int] | None = None, **rows: tuple[Any, ...]
) -> Callable[[Play], Play]:
    """Enter a scenario for each row: the row's name is the scenario's, what it holds are arguments after the stage."""

    def enter(play: Play) -> Play:
        family = play.__module__.rpartition(".")[2]
        for row, arguments in rows.items():
            chosen = (None,) if api is None else lowest_middle_highest(api) if at is None else at

            def one(stage: Stage, arguments: tuple[Any, ...] = arguments) -> None:
                play(stage, *arguments)

            SCENARIOS.extend(Scenario(family, f"{play.__name__}: {row}", one, api, version) for version in chosen)
        return play

    return enter


_NUMBERS = itertools.count()


class Stage:
    """Where one scenario plays. Every `ask` is written down with its answer, every `do` is preparation."""

    def __init__(self, brokers: Brokers, scenario: Scenario) -> None:
        self.brokers = brokers
        self.scenario = scenario
        self.base_time = int(time.time()) * 1000 - 3_600_000
        self.written: list[dict[str, Plain]] = []
        self._prefix = f"x{os.getpid()}x{next(_NUMBERS)}x"
        self._names = Names(self._prefix, self.base_time)
        self._open: dict[int, Connection] = {}
        self._stack = contextlib.ExitStack()

    @contextmanager
    def playing(self) -> Iterator[Stage]:
        with self._stack:
            yield self

    def version(self, api: str) -> int:
        """The scenario's version of its own API, the highest of any other."""
        if api == self.scenario.api and self.scenario.version is not None:
            return self.scenario.version
        return versions(api)[-1]

    def connect(self, broker: int = 1, client_id: str | None = "conformance", user: str = ADMIN) -> Connection:
        """A connection that is closed with the stage; on brokers with SASL, of this user."""
        return self._stack.enter_context(self.brokers.connect(broker, client_id, user))

    def ask(
        self, api: str, body: Mapping[str, Plain], *, to: int = 1, version: int | None = None,
        over: Connection | None = None,
    ) -> dict[str, Plain]:  # fmt: skip
        """Ask a broker and write down what it says."""
        version = self.version(api) if version is None else version
        said = self._asked(api, version, body, to, over)
        self.note(f"{api} v{version}" if to == 1 else f"{api} v{version} to {to}", said)
        return said

    def do(self, api: str, body: Mapping[str, Plain], *, to: int = 1, version: int | None = None) -> dict[str, Plain]:
        """Ask a broker at the highest version; nothing is written down."""
        return self._asked(api, versions(api)[-1] if version is None else version, body, to, None)

    def _asked(
        self, api: str, version: int, body: Mapping[str, Plain], to: int, over: Connection | None
    ) -> dict[str, Plain]:
        if over is None:
            over = self._open.get(to) or self.connect(to)
            self._open[to] = over
        try:
            return over.ask(api, version, dict(body))
        except ClosedError:
            self._open.pop(to, None)
            return {"connection": "closed"}

    def note(self, what: str, said: Plain) -> None:
        """Write something down."""
        self.written.append({"ask": what, "said": self._names.settled(said)})

    def knows(self, kind: str, value: Plain) -> None:
        """Give an id its name now: "producer 1", say."""
        self._names.known(kind, value)

    def name(self, name: str) -> str:
        """A topic's name that no other scenario has; it is written down as `name`."""
        return f"{self._prefix}-{name}"

    def topic(
        self, name: str = "topic", *, partitions: int = 1, replicas: Sequence[int] = (1, 2, 3),
        config: Mapping[str, str] | None = None,
    ) -> Topic:  # fmt: skip
        """Create a topic: the first of `replicas` leads every partition, and all brokers know it."""
        full = self.name(name)
        settings = [{"name": key, "value": value} for key, value in (config or {}).items()]
        assignments = [{"partition_index": index, "broker_ids": list(replicas)} for index in range(partitions)]
        row = {"name": full, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
        said = self.do("CreateTopics", {"topics": [row | {"configs": settings}], "timeout": 10_000})
        (created,) = said["topics"]
        if created["error_code"] != "NONE":
            raise RuntimeError(f"no topic: {created}")
        self.await_topic(full, partitions)
        self._names.known("topic", created["topic_id"])
        return Topic(full, created["topic_id"])

    def await_topic(self, full: str, partitions: int, brokers: Sequence[int] = (1, 2, 3)) -> None:
        """Wait until all brokers know a topic's leaders."""
        for broker in brokers:
            self.until(partial(self._all_lead, full, broker, partitions), f"{full} on broker {broker}")
        for row in self.metadata(full)["topics"][0]["partitions"]:
            self.await_leader(full, row["leader_id"], row["partition_index"])

    def _all_lead(self, full: str, broker: int, partitions: int) -> bool:
        rows = self.metadata(full, broker)["topics"][0]["partitions"]
        return len(rows) == partitions and all(row["error_code"] == "NONE" and row["isr_nodes"] for row in rows)

    def await_leader(self, full: str, broker: int, partition: int = 0) -> None:
        """Wait until a broker acts as leader, which is a moment after others say that it is."""
        row = {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}
        body = {"replica_id": -1, "topics": [{"name": full, "partitions": [row]}], "timeout": 1000}

        def leads() -> bool:
            (topic,) = self.do("ListOffsets", body, to=broker)["topics"]
            return bool(topic["partitions"][0]["error_code"] == "NONE")

        self.until(leads, f"{full} led by broker {broker}")

    def metadata(self, full: str, broker: int = 1) -> dict[str, Plain]:
        body = {"topics": [{"name": full}], "allow_auto_topic_creation": False}
        return self.do("Metadata", body, to=broker)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that a broker does by itself."""
        wait_until(condition, what, self.brokers.patience)

    def later(self, api: str, body: Mapping[str, Plain], *, to: int = 1, version: int | None = None) -> Pending:
        """Ask on a connection of its own, and go on."""
        version = self.version(api) if version is None else version
        connection = self.connect(to)
        connection.send(api, version, dict(body))
        return Pending(self, f"{api} v{version}", connection, to)

    def paused(self, broker: int) -> AbstractContextManager[object]:
        """A broker that stands still. Connections to it are opened anew afterwards."""
        self._open.pop(broker, None)
        return self.brokers.paused(broker)


class Pending:
    """A request whose answer is awaited."""

    def __init__(self, stage: Stage, what: str, connection: Connection, broker: int) -> None:
        self._stage, self._what, self._connection, self._broker = stage, what, connection, broker

    def waits(self, seconds: float = 0.0) -> None:
        """Let time pass, and write down whether there is still no answer."""
        self._stage.brokers.await_read(self._broker)
        if seconds:
            self._stage.brokers.elapse(seconds)
        self._stage.note(f"{self._what} has no answer after {seconds} s", self._connection.is_waiting(0.05))

    def receive(self) -> dict[str, Plain]:
        """Wait for the answer."""
        return self._connection.receive()

    def answer(self) -> dict[str, Plain]:
        """Wait for the answer, and write it down."""
        said = self.receive()
        self._stage.note(f"answer to {self._what}", said)
        return said
