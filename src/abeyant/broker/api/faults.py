"""Fault injection: fail, delay or drop requests, or drop their responses.

Faults change timing and availability only (K11): a request is handled in full or not at all, and no log is modified.
A `Fault` is active until it has fired `times` times, until `end`, or until its `with` block ends.

All of this runs in the loop's thread. Without active faults the cluster has no gate, and requests cost nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.coordinator.topics import OFFSETS, TRANSACTIONS
from abeyant.broker.delayed.operation import BrokerOperation, Waiting
from abeyant.broker.requests.common.about import (
    NAME_NEW_TOPICS,
    NAME_PARTITIONS,
    NAME_TOPICS,
    REPLICA_FETCH,
    is_about,
    keys_of,
    name_of,
)
from abeyant.broker.wire.apis import BY_NAME
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError, did_you_mean


class Where(TypedDict, total=False):
    """Selects the requests that match every given value."""

    topic: str | None
    partition: int | None
    """A partition of that topic."""
    broker: int | None
    client_id: str | None


_TYPES = {"topic": str, "partition": int, "broker": int, "client_id": str}
_CENTURY = 100 * 365 * 86_400  # seconds: the longest delay of a timer
_SASL = ("SaslAuthenticate", "SaslHandshake")
_INTERNAL = (OFFSETS.name, TRANSACTIONS.name)  # created when the first client needs them


class Target:
    """Selects the requests of a fault. None matches everything."""

    __slots__ = ("api", "broker", "client_id", "partition", "topic")

    def __init__(self, api: str | None, **where: Unpack[Where]) -> None:
        """Raises TypeError for an unknown selector, and AbeyantError for a value that no request can match."""
        for name in where.keys() - _TYPES.keys():
            hint = did_you_mean(name, _TYPES) or f": choose by {', '.join(_TYPES)}"
            raise TypeError(f"no requests can be chosen by {name}={hint}")
        for name, value in where.items():
            check_choice(name, value)
        self.api = api
        self.topic = where.get("topic")
        self.partition = where.get("partition")
        self.broker = where.get("broker")
        self.client_id = where.get("client_id")
        if api is not None and api != REPLICA_FETCH and api not in BY_NAME:
            raise AbeyantError(f"there is no API {api!r}{did_you_mean(str(api), [*BY_NAME, REPLICA_FETCH])}")
        if self.partition is not None and self.topic is None:
            raise AbeyantError(f"partition={self.partition} needs a topic: add topic=")
        if self.topic is not None and api == REPLICA_FETCH:
            raise AbeyantError("a follower's fetch is for all its partitions: choose by broker= or client_id=")
        if self.topic is not None and api is not None and api not in NAME_TOPICS:
            raise AbeyantError(f"{api} names no topics: choose by broker= or client_id=")
        if self.partition is not None and api is not None and api not in NAME_PARTITIONS:
            raise AbeyantError(f"{api} names topics, but no partitions: leave partition= out")

    def check(self, cluster: BaseCluster) -> None:
        """Raise AbeyantError for an unknown broker, topic or partition, and for an API that no client can use here.

        The topic need not exist if the API creates topics, or if it is one of Kafka's internal ones.
        """
        if self.broker is not None:
            cluster.broker_named(self.broker)
        if self.api in _SASL and not cluster.security.mechanisms:
            raise AbeyantError(f"no client sends {self.api}: the cluster has security={cluster.security.protocol!r}")
        if self.topic is None or self.api in NAME_NEW_TOPICS:
            return
        if self.topic in _INTERNAL and self.topic not in cluster.controller.topics:
            return
        if self.partition is None:
            cluster.topic_named(self.topic)
        else:
            cluster.partition_state(self.topic, self.partition)

    def matches(self, call: Any) -> bool:
        """Return whether this selects a `Call` or a `ReplicaFetchCall`."""
        if self.api not in (None, name_of(call)) or self.broker not in (None, call.broker.id):
            return False
        if self.client_id not in (None, call.client_id):
            return False
        return self.topic is None or (name_of(call) != REPLICA_FETCH and is_about(call, self.topic, self.partition))

    def __repr__(self) -> str:
        chosen = ((name, getattr(self, name)) for name in ("topic", "partition", "broker", "client_id"))
        return " ".join(
            [self.api or "any request", *(f"{name}={value!r}" for name, value in chosen if value is not None)]
        )


class HeldRequest(BrokerOperation):
    """A delayed request, in the Held purgatory of the broker that received it. Its kind is the API's name in faults."""

    __slots__ = ("_handle", "_keys", "kind")

    def __init__(
        self,
        kind: str,
        seconds: float,
        keys: tuple[tuple[str, int | str], ...],
        client_id: str,
        since: float,
        handle: Callable[[], object],
    ) -> None:
        """Call `handle` once, `seconds` after `since`. `keys` are what the request names."""
        super().__init__(seconds, client_id, since)
        self.kind = kind
        self._keys = keys
        self._handle = handle

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or the group and member, that the request names."""
        return self._keys

    def describe(self, broker: int) -> Waiting:
        """Return its row in `Cluster.waiting`, held by the delay."""
        return super().describe(broker)._replace(held_by="delay")

    def try_complete(self) -> bool:
        """Return False, as only its deadline completes it."""
        return False

    def on_complete(self) -> None:
        """Handle the request."""
        self._handle()


class Fault:
    """One active fault. A context manager: it ends with its block."""

    def __init__(
        self, faults: Faults, target: Target, times: int | None, what: str, act: Callable[[Any], None]
    ) -> None:
        if times is not None and (type(times) is not int or times < 1):
            raise AbeyantError(f"times must be 1 or more, or None for no limit, not {times!r}")
        self.target = target
        self.hits = 0
        """The number of requests it was applied to."""
        self._faults = faults
        self._times = times
        self._what = what
        self._act = act

    @property
    def active(self) -> bool:
        """Return whether it still applies to requests."""
        return self in self._faults.active

    def end(self) -> None:
        """End the fault. A second call does nothing. Requests that it delayed are still handled after their delay."""
        self._faults.cluster.settled(self._faults.remove, self)

    def fire(self, call: Any) -> None:
        """Apply this fault to a call. In the loop's thread."""
        self.hits += 1
        if self.hits == self._times:
            self._faults.remove(self)
        self._act(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        left = "" if self._times is None else f", {self.hits} of {self._times} times"
        return f"<Fault: {self._what} {self.target!r}{left}{'' if self.active else ', ended'}>"


class Faults:
    """The active faults of a cluster, and its gate while there are any. The first one that matches applies."""

    def __init__(self, cluster: BaseCluster) -> None:
        self.cluster = cluster
        self.active: list[Fault] = []

    def __call__(self, call: Any) -> bool:
        """Apply the first fault that matches a request. Return whether one did."""
        for fault in self.active:
            if fault.target.matches(call):
                fault.fire(call)
                if self.cluster.awaited:
                    self.cluster.check_awaited()
                return True
        return False

    def fail(self, target: Target, error: str, times: int | None) -> Fault:
        """Respond with an error, and do nothing else."""
        code = error_code(error)
        fault = Fault(self, target, times, f"{code.name.upper()} for", lambda call: call.refuse(code))
        if code is ErrorCode.none:
            raise AbeyantError("NONE is not an error: name one, or use drop() to lose requests")
        return self._add(fault)

    def delay(self, target: Target, seconds: float, times: int | None) -> Fault:
        """Handle requests `seconds` later, on the cluster's clock."""
        if not _is_number(seconds) or not 0 < seconds < _CENTURY:
            raise AbeyantError(f"seconds must be more than 0, and less than a century, not {seconds!r}")

        def later(call: Any) -> None:
            broker = call.broker
            held = HeldRequest(
                name_of(call), seconds, keys_of(call), call.client_id, broker.now(), lambda: broker.handle(call)
            )
            broker.held_purgatory.try_complete_else_watch(held, [held])

        return self._add(Fault(self, target, times, f"{seconds:g} s more for", later))

    def drop(self, target: Target, times: int | None, answer: bool) -> Fault:
        """Close the connection, or with `answer` handle the request and drop the response."""
        if answer and target.api == REPLICA_FETCH:
            raise AbeyantError("a follower's fetch cannot be separated from its response: leave answer=True out")

        def lose(call: Any) -> None:
            if answer and name_of(call) != REPLICA_FETCH:
                call.lose_answer()
                call.broker.handle(call)
            else:
                call.drop()

        return self._add(Fault(self, target, times, "the answer lost of" if answer else "lost:", lose))

    def remove(self, fault: Fault) -> None:
        """End a fault. In the loop's thread."""
        if fault in self.active:
            self.active.remove(fault)
        if not self.active:
            self.cluster.gate = None

    def _add(self, fault: Fault) -> Fault:
        def add() -> None:
            fault.target.check(self.cluster)
            self.active.append(fault)
            self.cluster.gate = self

        self.cluster.settled(add)
        return fault


def error_code(name: str) -> ErrorCode:
    """Return Kafka's error by its name, in upper or lower case. Raises AbeyantError with the nearest name."""
    found = ErrorCode.__members__.get(str(name).lower())
    if found is None:
        known = [known.upper() for known in ErrorCode.__members__]
        raise AbeyantError(f"there is no error {name!r}{did_you_mean(str(name).upper(), known)}")
    return found


def check_choice(name: str, value: object, shown: str = "") -> None:
    """Raise AbeyantError unless the value of `topic`, `partition`, `broker` or `client_id` is None or has its type."""
    if value is not None and (not isinstance(value, _TYPES[name]) or isinstance(value, bool)):
        raise AbeyantError(f"{shown or name} must be {_TYPES[name].__name__}, not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
