"""Faults that are ordered: requests that fail, come late, are lost, or whose answer is lost.

They are faults of timing and availability only (K11): a request is handled as ever or not at all, and no log is
touched. A `Fault` holds until it has struck `times` times, until `end`, or until its `with` block ends.

All of this runs in the loop's thread. While no fault is ordered the cluster has no gate, and a request pays nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from abeyant.broker.wire.apis import BY_NAME
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError

if TYPE_CHECKING:
    from abeyant.broker.api.ports import Cluster

REPLICA_FETCH = "ReplicaFetch"
"""The name by which faults know a follower's fetch; "Fetch" is a client's."""


class Where(TypedDict, total=False):
    """Which requests: those that match all that is given."""

    topic: str | None
    partition: int | None
    """Of that topic."""
    broker: int | None
    client_id: str | None


class Target:
    """Which requests a fault is for. What is None matches everything."""

    __slots__ = ("api", "broker", "client_id", "partition", "topic")

    def __init__(self, api: str | None, **where: Unpack[Where]) -> None:
        known = Where.__annotations__
        for name in where.keys() - known.keys():
            hint = nearest(name, known) or f": choose by {', '.join(known)}"
            raise TypeError(f"no requests can be chosen by {name}={hint}")
        self.api = api
        self.topic = where.get("topic")
        self.partition = where.get("partition")
        self.broker = where.get("broker")
        self.client_id = where.get("client_id")
        if api is not None and api != REPLICA_FETCH and api not in BY_NAME:
            raise AbeyantError(f"there is no API {api!r}{nearest(api, [*BY_NAME, REPLICA_FETCH])}")
        if self.partition is not None and self.topic is None:
            raise AbeyantError(f"partition={self.partition} needs the topic that it is of: add topic=")
        if self.topic is not None and api == REPLICA_FETCH:
            raise AbeyantError("a follower's fetch is for all that it follows: choose by broker= or client_id=")

    def matches(self, call: Any) -> bool:
        """Whether a `Call`, or a `ReplicaFetchCall`, is meant."""
        if self.api not in (None, _name(call)) or self.broker not in (None, call.broker.id):
            return False
        if self.client_id not in (None, call.client_id):
            return False
        if self.topic is None:
            return True
        return any(
            topic == self.topic and self.partition in (None, index)
            for topic, index in _partitions(call.request, call.broker.cluster.controller.by_id)
        )

    def __repr__(self) -> str:
        chosen = ((name, getattr(self, name)) for name in ("topic", "partition", "broker", "client_id"))
        return " ".join(
            [self.api or "any request", *(f"{name}={value!r}" for name, value in chosen if value is not None)]
        )


class Fault:
    """One fault that has been ordered. A context manager: it ends with its block."""

    def __init__(
        self, faults: Faults, target: Target, times: int | None, what: str, act: Callable[[Any], None]
    ) -> None:
        if times is not None and times < 1:
            raise AbeyantError(f"times must be 1 or more, or None for until it is ended, not {times!r}")
        self.target = target
        self.hits = 0
        """How many requests it has struck so far."""
        self._faults = faults
        self._times = times
        self._what = what
        self._act = act

    @property
    def active(self) -> bool:
        """Whether it can strike still."""
        return self in self._faults.ordered

    def end(self) -> None:
        """Strike no more. A second call does nothing. Requests that were delayed come at their time all the same."""
        self._faults.cluster.on_loop(self._faults.remove, self)

    def strike(self, call: Any) -> None:
        """Do to `call` what this fault does. In the loop's thread."""
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
    """The faults of a cluster, and its gate while there are any: the first that matches strikes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.ordered: list[Fault] = []

    def __call__(self, call: Any) -> bool:
        """Take over a request that a fault is for; True if one was."""
        for fault in self.ordered:
            if fault.target.matches(call):
                fault.strike(call)
                return True
        return False

    def fail(self, target: Target, error: str, times: int | None) -> Fault:
        """Answer with an error, and do nothing of what is asked for."""
        code = error_code(error)
        return self._order(Fault(self, target, times, f"{code.name.upper()} for", lambda call: call.refuse(code)))

    def delay(self, target: Target, seconds: float, times: int | None) -> Fault:
        """Handle it `seconds` later, on the cluster's clock."""
        if not 0 <= seconds < float("inf"):
            raise AbeyantError(f"seconds must be 0 or more, not {seconds!r}")

        def later(call: Any) -> None:
            call.broker.timer.call_later(seconds, call.broker.handle, call)

        return self._order(Fault(self, target, times, f"{seconds:g} s more for", later))

    def drop(self, target: Target, times: int | None, answer: bool) -> Fault:
        """End the connection: before the request is handled, or once it has been and its answer is due."""

        def lose(call: Any) -> None:
            if answer and _name(call) != REPLICA_FETCH:
                call.lose_answer()
                call.broker.handle(call)
            else:
                call.drop()

        return self._order(Fault(self, target, times, "the answer lost of" if answer else "lost:", lose))

    def remove(self, fault: Fault) -> None:
        """It strikes no more. In the loop's thread."""
        if fault in self.ordered:
            self.ordered.remove(fault)
        if not self.ordered:
            self.cluster.gate = None

    def _order(self, fault: Fault) -> Fault:
        def order() -> None:
            if fault.target.broker is not None:
                self.cluster.broker_named(fault.target.broker)
            self.ordered.append(fault)
            self.cluster.gate = self

        self.cluster.on_loop(order)
        return fault


def error_code(name: str) -> ErrorCode:
    """Kafka's error of that name, in whatever case. Raises AbeyantError with the nearest that exists."""
    found = ErrorCode.__members__.get(name.lower())
    if found is None:
        known = [known.upper() for known in ErrorCode.__members__]
        raise AbeyantError(f"there is no error {name!r}{nearest(name.upper(), known)}")
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ": did you mean X?" for an error message, or nothing where nothing is near."""
    from difflib import get_close_matches  # needed for mistakes only

    by_folded = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_folded, n=1)
    return f": did you mean {by_folded[close[0]]!r}?" if close else ""


def _name(call: Any) -> str:
    return REPLICA_FETCH if hasattr(call, "fetch") else call.api.name


def _partitions(request: Any, by_id: Any) -> Iterator[tuple[str | None, int | None]]:
    """What a request is about: topics and partitions, by the fields that Kafka's messages have for them."""
    for several in (*(getattr(request, "markers", None) or ()), *(getattr(request, "transactions", None) or ())):
        yield from _partitions(several, by_id)
    for topic in _first_of(request, "topic_data", "topics", "v3_and_below_topics"):
        name = topic if isinstance(topic, str) else _topic_name(topic, by_id)
        partitions = _first_of(topic, "partition_data", "partitions", "partition_indexes")
        yield name, None
        for partition in partitions:
            yield name, _index(partition)
    for name in getattr(request, "topic_names", None) or ():
        yield name, None


def _first_of(message: Any, *fields: str) -> Iterable[Any]:
    return next((found for field in fields if (found := getattr(message, field, None))), ())


def _topic_name(topic: Any, by_id: Any) -> str | None:
    name = getattr(topic, "name", None) or getattr(topic, "topic", None)
    found = by_id.get(getattr(topic, "topic_id", None) or uuid.UUID(int=0))
    return name or (None if found is None else found.name)


def _index(partition: Any) -> int | None:
    if isinstance(partition, int):
        return partition
    for field in ("index", "partition", "partition_index"):
        if hasattr(partition, field):
            return int(getattr(partition, field))
    return None
