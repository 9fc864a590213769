"""The methods with which a test reads and disturbs a cluster. `Cluster` adds how it starts and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import wraps
from threading import TIMEOUT_MAX
from typing import Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, Unpack

from abeyant.broker.api.base import Awaited, BaseCluster
from abeyant.broker.api.faults import Fault, Faults, Target, Where, check_choice
from abeyant.broker.api.outages import Outages
from abeyant.broker.definitions import ConfigError
from abeyant.broker.delayed.operation import Waiting
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.about import REPLICA_FETCH
from abeyant.broker.settings import from_python
from abeyant.broker.wire.apis import BY_NAME
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.metrics.series import Reading

P = ParamSpec("P")
T = TypeVar("T")

_HELD = "Held"  # the purgatory of delayed requests, which are called by their API


class Written(NamedTuple):
    """One record of a topic, decoded."""

    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def _settled(method: Callable[Concatenate[ClusterApi, P], T]) -> Callable[Concatenate[ClusterApi, P], T]:
    """Run a method in the loop's thread, once the messages between brokers are delivered. From any thread."""

    @wraps(method)
    def run(self: ClusterApi, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.settled(lambda: method(self, *args, **kwargs))

    return run


class ClusterApi(BaseCluster, Outages):
    """The methods of a `Cluster` that is open. Call them from any thread, or in its loop."""

    _faults: Faults

    # -- topics

    @_settled
    def create_topic(
        self, name: str, partitions: int = 1, replicas: int | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic. The default of `replicas` is three, or as many as there are brokers.

        Partition 0 is led by broker 1, partition 1 by broker 2, and so on. `config` has Kafka's settings for topics,
        with dots or with underscores.
        Raises AbeyantError where there is one of that name, where a setting is wrong, or with too few brokers.
        """
        wanted = min(3, len(self.brokers)) if replicas is None else replicas
        for what, number in (("partitions", partitions), ("replicas", wanted)):
            if type(number) is not int:
                raise AbeyantError(f"cannot create topic {name!r}: {what} must be a whole number, not {number!r}")
        try:
            given = from_python(config or {})
        except ConfigError as error:
            raise AbeyantError(f"cannot create topic {name!r}: {error}") from None
        try:
            self.controller.create_topic(name, partitions, wanted, {}, given)
        except ApiError as error:
            raise AbeyantError(f"cannot create topic {name!r}: {error.message}") from None
        self.network.settle()

    @_settled
    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises AbeyantError for an unknown topic, or a full disk."""
        try:
            self.controller.delete_topic(self.topic_named(name))
        except ApiError as error:
            raise AbeyantError(f"cannot delete topic {name!r}: {error.message}") from None
        self.network.settle()

    @_settled
    def topics(self) -> list[str]:
        """Return the names of all topics, Kafka's internal ones included, in order."""
        return sorted(self.controller.topics)

    @_settled
    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the broker that leads a partition; None without a leader."""
        leader = self.partition_state(topic, partition).leader
        return None if leader < 0 else leader

    @_settled
    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the brokers whose replicas are in sync."""
        return self.partition_state(topic, partition).isr

    @_settled
    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        uncommitted: bool = False,
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    ) -> list[Written]:
        """Return the records of a topic by partition and offset, as a consumer of all of it would see them.

        With `isolation="read_committed"`, up to the first open transaction, and without aborted ones. With
        `uncommitted`, also what the leader has and some in-sync replica has not. A partition without a leader has no
        records. Raises AbeyantError where there is no such topic or partition, and ValueError for another isolation.
        """
        if isolation not in ("read_uncommitted", "read_committed"):
            raise ValueError(f'isolation must be "read_uncommitted" or "read_committed", not {isolation!r}')
        committed = isolation == "read_committed"
        if committed and uncommitted:
            raise ValueError('uncommitted=True and isolation="read_committed" contradict each other: leave one out')
        return self._records(topic, partition, uncommitted, committed)

    @_settled
    def compact(self, topic: str) -> None:
        """Compact a topic now: all its replicas, up to what is committed, however little that frees.

        Brokers also compact by themselves, as the topic's settings say. Raises AbeyantError where there is no such
        topic, or where its `cleanup.policy` has no `compact`.
        """
        if "compact" not in self.topic_named(topic).settings["cleanup.policy"]:
            raise AbeyantError(f"topic {topic!r} has no cleanup.policy=compact")
        for broker in self.brokers.values():
            for partition in [] if broker.stopped else broker.partitions.values():
                if partition.topic == topic:
                    partition.log.compact(broker.now_ms(), partition.last_stable_offset, force=True)

    # -- brokers

    @_settled
    def pause(self, broker: int) -> None:
        """Pause a broker, as under SIGSTOP: connections stay open, and it does nothing until `resume`.

        A second call does nothing. Raises AbeyantError for one that is stopped.
        """
        if self.broker_named(broker).stopped:
            raise AbeyantError(f"broker {broker} is stopped, so it cannot be paused: start it first")
        self.broker_named(broker).pause()

    @_settled
    def resume(self, broker: int) -> None:
        """Resume a paused broker; it first handles what has arrived meanwhile. Do nothing for one that runs."""
        self.broker_named(broker).resume()
        self.network.settle()

    @_settled
    def stop(self, broker: int) -> None:
        """Stop a broker: connections close, other brokers lead its partitions. Records in memory are lost.

        A second call does nothing.
        """
        if not self.broker_named(broker).stopped:
            self.broker_named(broker).stop()

    @_settled
    def is_stopped(self, broker: int) -> bool:
        """Return whether a broker is stopped."""
        return self.broker_named(broker).stopped

    @_settled
    def start(self, broker: int) -> None:
        """Start a stopped broker again, at the same port. Raises AbeyantError where the port is taken."""
        if not self.broker_named(broker).stopped:
            raise AbeyantError(f"broker {broker} has not been stopped")
        self._start(broker)
        self.network.settle()

    # -- faults

    def fail(self, api: str | None = None, *, error: str, times: int | None = None, **where: Unpack[Where]) -> Fault:
        """Answer requests with an error and do nothing else: `fail("Produce", error="NOT_LEADER_OR_FOLLOWER")`.

        `api` is Kafka's name for it, None for every one; "ReplicaFetch" is a follower's fetch. Requests that match all
        that is given fail, with the error for everything in them; where the response has no field for an error, the
        connection is closed. The fault ends after `times` requests, by `end()`, or with its `with` block. Raises
        AbeyantError for a fault that no request can match, of an unknown topic for instance.
        """
        return self._faults.fail(Target(api, **where), error, times)

    def delay(
        self, api: str | None = None, *, seconds: float, times: int | None = None, **where: Unpack[Where]
    ) -> Fault:
        """Handle requests `seconds` after they arrived, on the cluster's clock. The rest is as for `fail`.

        Until then `waiting` lists them, by the API's name.
        """
        return self._faults.delay(Target(api, **where), seconds, times)

    def drop(
        self, api: str | None = None, *, answer: bool = False, times: int | None = None, **where: Unpack[Where]
    ) -> Fault:
        """Lose requests: close the connection and do nothing else. The rest is as for `fail`.

        With `answer` the request is handled and its response is lost: the client cannot tell the two apart.
        """
        return self._faults.drop(Target(api, **where), times, answer)

    @_settled
    def drop_connections(self, *, broker: int | None = None, client_id: str | None = None) -> int:
        """Close the connections that are open now, of one broker or one client; return how many."""
        check_choice("client_id", client_id)
        ended = 0
        for one in self.brokers.values() if broker is None else [self.broker_named(broker)]:
            for connection in list(one.connections):
                if client_id in (None, connection.client_id):
                    connection.abort()
                    ended += 1
        return ended

    # -- groups

    @_settled
    def expire_member(self, group: str, member: str) -> None:
        """Expire the session of a member now, as if it had been silent for too long.

        `member` is its member id, its `group.instance.id`, or the client id that no other member has. Raises
        AbeyantError where there is no such group or member, or where its coordinator is stopped, paused or not ready.
        """
        from abeyant.broker.api.coordinators import expire_member

        expire_member(self, group, member)

    # -- transactions

    @_settled
    def fence(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, as another producer with the same id does.

        Its open transaction is aborted, and its further requests are refused. Raises AbeyantError where there is no
        such id, where its coordinator is paused, or while its transaction is being ended.
        """
        from abeyant.broker.api.coordinators import fence_producer

        fence_producer(self, transactional_id)

    # -- what waits

    @_settled
    def waiting(self, kind: str | None = None, *, client: str | None = None) -> list[Waiting]:
        """List the requests that wait now, oldest first: produces, fetches, followers' fetches and so on.

        `kind` is the purgatory's name, "Produce" for instance, `client` a client's id; by default all. Requests that a
        fault delays, or that have come to a paused broker, wait too (`Waiting.held_by`): by their API's name.
        """
        self._require_kind(kind)
        check_choice("client_id", client, "client")
        return self.waiting_now(kind, client)

    def until_waiting(
        self, kind: str, count: int = 1, *, client: str | None = None, timeout: float = 10.0
    ) -> list[Waiting]:
        """Block until at least `count` requests wait, and return them: then a held clock can be advanced.

        `timeout` is in seconds of real time. Raises TimeoutError once it is over. Not for the cluster's own loop.
        """
        self._require_kind(kind)
        check_choice("client_id", client, "client")
        if type(count) is not int or count < 1:
            raise AbeyantError(f"count must be 1 or more, not {count!r}")
        if not isinstance(timeout, (int, float)) or not 0 <= timeout <= TIMEOUT_MAX:
            raise AbeyantError(f"timeout must be 0 seconds or more, and finite, not {timeout!r}")
        found: Future[list[Waiting]] = Future()
        awaited = Awaited(kind, count, client, found)

        def begin() -> None:
            self.awaited.append(awaited)
            self.check_awaited()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise AbeyantError("until_waiting blocks, so it cannot be called in an event loop: use waiting() there")
        self.settled(begin)
        try:
            return found.result(timeout)
        except FutureTimeoutError:
            there = len(self.waiting(kind, client=client))
            raise TimeoutError(f"after {timeout:g} s {there} of {count} requests wait in {kind}") from None
        finally:
            self.on_loop(self._give_up, awaited)

    def readings(self) -> Iterator[Reading]:
        """Return the metrics, for `abeyant.metrics.Collector`. From any thread, without waiting for the loop."""
        from abeyant.broker.api.readings import cluster_readings

        return cluster_readings(self, len(self._faults.active))

    # -- inside, in the loop's thread

    def _start(self, number: int) -> None:
        raise NotImplementedError

    def _settle(self) -> None:
        self.network.settle()

    def _records(self, topic: str, partition: int | None, uncommitted: bool, committed: bool) -> list[Written]:
        states = self.topic_named(topic).partitions if partition is None else [self.partition_state(topic, partition)]
        found = []
        for state in states:
            broker = self.brokers.get(state.leader)
            replica = None if broker is None else broker.partitions.get((topic, state.partition))
            if replica is not None and replica.leads:
                end = replica.log.end_offset if uncommitted else replica.high_watermark
                end = replica.last_stable_offset if committed else end
                records = replica.log.records(end, aborted=not committed)
                found += [Written(state.partition, *record) for record in records]
        return found

    def _give_up(self, awaited: Awaited) -> None:
        if awaited in self.awaited:
            self.awaited.remove(awaited)

    def _require_kind(self, kind: str | None) -> None:
        purgatories = {one.name for broker in self.brokers.values() for one in broker.purgatories} - {_HELD}
        known = {*purgatories, *BY_NAME, REPLICA_FETCH}
        if kind is not None and kind not in known:
            hint = did_you_mean(str(kind), known)
            raise AbeyantError(f"nothing waits by the name {kind!r}{hint}; there are {sorted(purgatories)}, and APIs")
