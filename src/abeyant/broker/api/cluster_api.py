"""The methods of an open cluster. `Cluster` adds opening and closing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from threading import TIMEOUT_MAX
from typing import Literal, NamedTuple, ParamSpec, TypeVar, Unpack

from abeyant.broker.api.base import Awaited, settled
from abeyant.broker.api.contents_api import ContentsApi
from abeyant.broker.api.faults import Fault, Faults
from abeyant.broker.api.leading import leading
from abeyant.broker.api.outages import Outages
from abeyant.broker.api.target import Target, Where, check_choice, check_text
from abeyant.broker.definitions import ConfigError
from abeyant.broker.delayed.operation import Waiting
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.named import REPLICA_FETCH
from abeyant.broker.settings import from_python
from abeyant.broker.wire.apis import BY_NAME
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.metrics.series import Reading
from abeyant.renamed import former_keywords

P = ParamSpec("P")
T = TypeVar("T")

_SHOWN = 6  # kinds and clients, in an error
_HELD = "Held"  # the purgatory of delayed requests, which have their API's name as kind


class Record(NamedTuple):
    """A record of a topic, as `Cluster.records` returns it, decoded. What `Cluster.seed` appends is a `NewRecord`."""

    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


Written = Record  # its former name


def topic_settings(name: str, partitions: int, replicas: int, config: Mapping[str, object] | None) -> dict[str, str]:
    """Return a new topic's settings as Kafka's names and texts. Raises AbeyantError for an invalid argument."""
    check_text("the topic's name", name)
    for parameter, number in (("partitions", partitions), ("replicas", replicas)):
        if type(number) is not int:
            raise AbeyantError(f"cannot create topic {name!r}: {parameter} must be a whole number, not {number!r}")
    try:
        return from_python(config or {})
    except ConfigError as error:
        raise AbeyantError(f"cannot create topic {name!r}: {error}") from None


def reads_committed(isolation: str, beyond_high_watermark: bool) -> bool:
    """Return whether `isolation` is read_committed, not read_uncommitted. Raises ValueError for invalid arguments."""
    if isolation not in ("read_uncommitted", "read_committed"):
        raise ValueError(f'isolation must be "read_uncommitted" or "read_committed", not {isolation!r}')
    committed = isolation == "read_committed"
    if committed and beyond_high_watermark:
        raise ValueError("beyond_high_watermark and isolation read_committed contradict each other: leave one out")
    return committed


class ClusterApi(ContentsApi, Outages):
    """The methods of a `Cluster` that is open. Call them from any thread, or in its loop."""

    _faults: Faults

    # -- topics

    @settled
    def create_topic(
        self, name: str, partitions: int = 1, replicas: int | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic. `replicas` is its replication factor: by default three, or the number of brokers if fewer.

        Broker 1 leads partition 0, broker 2 partition 1, and so on. `config` has settings of the topic, not of
        brokers, by Kafka's names with dots or underscores.
        Raises AbeyantError if the topic exists, if a setting is invalid, or with too few brokers.
        """
        replication_factor = min(3, len(self.brokers)) if replicas is None else replicas
        settings = topic_settings(name, partitions, replication_factor, config)
        try:
            self.controller.create_topic(name, partitions, replication_factor, {}, settings)
        except ApiError as error:
            raise AbeyantError(f"cannot create topic {name!r}: {error.message}") from None
        self.network.settle()

    @settled
    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises AbeyantError for an unknown topic, or a full disk."""
        try:
            self.controller.delete_topic(self._topic_named(name))
        except ApiError as error:
            raise AbeyantError(f"cannot delete topic {name!r}: {error.message}") from None
        self.network.settle()

    @settled
    def topics(self) -> list[str]:
        """Return the names of all topics, sorted, including Kafka's internal ones."""
        return sorted(self.controller.topics)

    @settled
    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the broker that leads a partition; None without a leader."""
        leader = self._partition_state(topic, partition).leader
        return None if leader < 0 else leader

    @settled
    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the brokers whose replicas of a partition are in sync."""
        return self._partition_state(topic, partition).isr

    @former_keywords(uncommitted="beyond_high_watermark")
    @settled
    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        beyond_high_watermark: bool = False,
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> list[Record]:
        """Return the records of a topic, or of one partition, as a consumer would see them, by partition and offset.

        `isolation` is like a consumer's `isolation.level`: with "read_committed", stop at the first open transaction
        and skip the records of aborted transactions. With `beyond_high_watermark`, include records that the leader has
        and some in-sync replica lacks. Raises AbeyantError for an unknown topic or partition, or a partition without a
        running leader; ValueError for an unknown `isolation`, or read_committed with `beyond_high_watermark`.
        """
        committed = reads_committed(isolation, beyond_high_watermark)
        return self._records(topic, partition, beyond_high_watermark, committed)

    @settled
    def compact(self, topic: str) -> None:
        """Compact all replicas of a topic now, up to the last stable offset, regardless of the dirty ratio.

        Brokers also compact on their own, as the topic's settings say. Raises AbeyantError for an unknown topic, if
        its `cleanup.policy` has no `compact`, or if a partition has no leader that runs.
        """
        topic_state = self._topic_named(topic)
        if "compact" not in topic_state.settings["cleanup.policy"]:
            raise AbeyantError(f"cannot compact topic {topic!r}: its cleanup.policy does not include compact")
        for state in topic_state.partitions:
            leading(self, topic, state.partition, "compact")
        for broker in self.brokers.values():
            for partition in [] if broker.stopped else broker.partitions.values():
                if partition.topic == topic:
                    partition.log.compact(broker.now_ms(), partition.last_stable_offset, force=True)

    # -- brokers

    @settled
    def pause(self, broker: int) -> None:
        """Pause a broker, as under SIGSTOP: connections stay open, and it does nothing until `resume`.

        A second call does nothing. Raises AbeyantError for a stopped broker.
        """
        if self._broker_named(broker).stopped:
            raise AbeyantError(f"broker {broker} is stopped, so it cannot be paused: start it first")
        self._broker_named(broker).pause()

    @settled
    def resume(self, broker: int) -> None:
        """Resume a paused broker, which first handles what arrived during the pause. Do nothing if it is running."""
        self._broker_named(broker).resume()
        self.network.settle()

    @settled
    def stop(self, broker: int) -> None:
        """Stop a broker: close its connections, and let other brokers lead. Records in its memory are lost.

        A second call does nothing.
        """
        if not self._broker_named(broker).stopped:
            self._broker_named(broker).stop()

    @settled
    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        return self._broker_named(broker).stopped

    @settled
    def start(self, broker: int) -> None:
        """Start a stopped broker again, on the same port. Raises AbeyantError if it is running or the port is taken.

        To start the whole cluster, use `with` or `open`.
        """
        if not self._broker_named(broker).stopped:
            raise AbeyantError(f"broker {broker} is running: stop it first")
        self._start(broker)
        self.network.settle()

    # -- faults

    def fail(
        self, api: str | None = None, *, error: str, times: int | None = None, nth: int = 1, **where: Unpack[Where]
    ) -> Fault:
        """Respond to requests with an error and do nothing else: `fail("Produce", error="NOT_LEADER_OR_FOLLOWER")`.

        `api` is Kafka's name of the API, None for all; "ReplicaFetch" is a follower's fetch. Requests that match all
        given selectors fail, with the error for everything in them; where the response has no field for an error, the
        connection is closed. The fault begins with the `nth` request that matches and ends after `times` requests, by
        `end()`, or with its `with` block. Raises AbeyantError for a fault that no request can match, for instance with
        an unknown topic.
        """
        return self._faults.fail(Target(api, **where), error, times, nth)

    def delay(
        self, api: str | None = None, *, seconds: float, times: int | None = None, nth: int = 1, **where: Unpack[Where]
    ) -> Fault:
        """Handle matching requests `seconds` after they arrive, on the cluster's clock. Arguments as for `fail`.

        Until then `waiting` lists the delayed requests; their kind is the API's name.
        """
        return self._faults.delay(Target(api, **where), seconds, times, nth)

    def throttle(
        self, api: str | None = None, *, seconds: float, times: int | None = None, nth: int = 1, **where: Unpack[Where]
    ) -> Fault:
        """Throttle the clients of matching requests, as an exceeded quota does (KIP-219). Arguments as for `fail`.

        The request gets its response at once, with `seconds` as `throttle_time_ms`; a fetch gets no records. Then no
        request is read from its connection for `seconds` on the cluster's clock: `waiting("Throttle")` lists the pause.
        """
        return self._faults.throttle(Target(api, **where), seconds, times, nth)

    @former_keywords(answer="response")
    def drop(
        self,
        api: str | None = None,
        *,
        response: bool = False,
        times: int | None = None,
        nth: int = 1,
        **where: Unpack[Where],
    ) -> Fault:
        """Close the connection of matching requests, without handling them. Arguments as for `fail`.

        With `response`, handle the request and drop its response, which looks the same to the client.
        In the plan of a simulation, this fault is of the kind "lose", or "lose answer" with `response` (see `KINDS`).
        """
        return self._faults.drop(Target(api, **where), response, times, nth)

    def observe(
        self, api: str | None = None, *, times: int | None = None, nth: int = 1, **where: Unpack[Where]
    ) -> Fault:
        """Count matching requests, which are handled as usual. See `hits`, `wait` and `end` of the `Fault` returned.

        Arguments as for `fail`. A request that an earlier fault has already taken over is not counted.
        """
        return self._faults.observe(Target(api, **where), times, nth)

    @settled
    def faults(self) -> list[Fault]:
        """Return the faults and observers that are active, oldest first."""
        return list(self._faults.active)

    @settled
    def drop_connections(self, *, broker: int | None = None, client_id: str | None = None) -> int:
        """Close all open connections, or those of one broker or one client. Return how many."""
        check_choice("client_id", client_id)
        ended = 0
        for node in self.brokers.values() if broker is None else [self._broker_named(broker)]:
            for connection in list(node.connections):
                if client_id in (None, connection.client_id):
                    connection.abort()
                    ended += 1
        return ended

    # -- pending requests

    @former_keywords(client="client_id")
    @settled
    def waiting(self, kind: str | None = None, *, client_id: str | None = None) -> list[Waiting]:
        """Return the pending requests, oldest first: produces, fetches, followers' fetches and so on.

        `kind` is the name of a purgatory, for instance "Produce". By default, return the requests of all kinds and all
        clients. Requests that a fault delays, or that have arrived at a paused broker, are pending too
        (`Waiting.held_by`); their kind is the API's name.
        """
        self._require_kind(kind)
        check_choice("client_id", client_id)
        return self._waiting_now(kind, client_id)

    @former_keywords(client="client_id")
    def until_waiting(
        self, kind: str, count: int = 1, *, client_id: str | None = None, timeout: float = 10.0
    ) -> list[Waiting]:
        """Block until at least `count` requests are pending, and return them. Use it before advancing a held clock.

        Raises TimeoutError after `timeout` seconds of real time, and AbeyantError if the cluster closes. In a coroutine
        or a notebook, write `await asyncio.to_thread(kafka.until_waiting, "Produce")`.
        """
        self._require_kind(kind)
        check_choice("client_id", client_id)
        if type(count) is not int or count < 1:
            raise AbeyantError(f"count must be 1 or more, not {count!r}")
        if not isinstance(timeout, (int, float)) or not 0 <= timeout <= TIMEOUT_MAX:
            raise AbeyantError(f"timeout must be 0 seconds or more, and finite, not {timeout!r}")
        future: Future[list[Waiting]] = Future()
        awaited = Awaited(kind, count, client_id, future)

        def begin() -> None:
            self._awaited.append(awaited)
            self._check_awaited()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise AbeyantError(
                "until_waiting blocks, so it cannot be called in an event loop or a notebook: "
                f"write await asyncio.to_thread(kafka.until_waiting, {kind!r})"
            )
        self._settled(begin)
        try:
            return future.result(timeout)
        except FutureTimeoutError:
            pending = len(self.waiting(kind, client_id=client_id))
            of = kind if client_id is None else f"{kind} of client {client_id!r}"
            text = f"after {timeout:g} s {pending} of {count} requests are pending in {of}; {_summary(self.waiting())}"
            raise TimeoutError(text) from None
        finally:
            if awaited in self._awaited:
                self._on_loop(self._remove_awaited, awaited)

    def readings(self) -> Iterator[Reading]:
        """Return the cluster's metrics, for `abeyant.metrics.Collector`. Thread-safe; does not wait for the loop."""
        from abeyant.broker.api.readings import cluster_readings

        return cluster_readings(self, len(self._faults.active))

    # -- inside, in the loop's thread

    def _end_waits(self) -> None:
        """End the blocked calls of `until_waiting` and `Fault.wait` with an AbeyantError, as the cluster closes."""
        awaited, self._awaited = self._awaited, []
        for kind, number, client_id, future in awaited:
            pending = f"{len(self._waiting_now(kind, client_id))} of {number} requests were pending in {kind}"
            future.set_exception(AbeyantError(f"the cluster was closed: {pending}"))
        for fault in self._faults.active:
            fault._end_waits()

    def _start(self, number: int) -> None:
        raise NotImplementedError

    def _settle(self) -> None:
        self.network.settle()

    def _records(self, topic: str, partition: int | None, beyond: bool, committed: bool) -> list[Record]:
        states = self._topic_named(topic).partitions if partition is None else [self._partition_state(topic, partition)]
        result = []
        for state in states:
            replica = leading(self, topic, state.partition, "read")
            end = replica.log.end_offset if beyond else replica.high_watermark
            end = replica.last_stable_offset if committed else end
            records = replica.log.records(end, aborted=not committed)
            result += [Record(state.partition, *record) for record in records]
        return result

    def _remove_awaited(self, awaited: Awaited) -> None:
        if awaited in self._awaited:
            self._awaited.remove(awaited)

    def _require_kind(self, kind: str | None) -> None:
        purgatories = {purgatory.name for broker in self.brokers.values() for purgatory in broker.purgatories} - {_HELD}
        kinds = {*purgatories, *BY_NAME, REPLICA_FETCH}
        if kind is not None and kind not in kinds:
            hint = did_you_mean(str(kind), kinds)
            raise AbeyantError(
                f"there is no kind {kind!r} of requests{hint}; kinds are {sorted(purgatories)} and the names of APIs"
            )


def _summary(waiting: list[Waiting]) -> str:
    """Describe the pending requests by kind and client, the most frequent first, for an error message."""
    counts = Counter((request.kind, request.client_id) for request in waiting)
    if not counts:
        return "no request is pending"
    text = ", ".join(f"{count} {kind} of {client!r}" for (kind, client), count in counts.most_common(_SHOWN))
    return f"pending are {text}{f', and {len(counts) - _SHOWN} more kinds or clients' if len(counts) > _SHOWN else ''}"
