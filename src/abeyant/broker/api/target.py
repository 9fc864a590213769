"""Select the requests that a fault hits: by API, topic, partition, broker, client, group or transactional id."""

from __future__ import annotations

from typing import Any, NamedTuple, Self, TypedDict, Unpack

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.coordinator.topics import INTERNAL
from abeyant.broker.requests.common.named import (
    NAME_GROUPS,
    NAME_NEW_TOPICS,
    NAME_PARTITIONS,
    NAME_TOPICS,
    NAME_TRANSACTIONS,
    REPLICA_FETCH,
    groups_of,
    is_about,
    keys_of,
    name_of,
    transactional_ids_of,
)
from abeyant.broker.wire.apis import BY_NAME
from abeyant.errors import AbeyantError, did_you_mean


class Where(TypedDict, total=False):
    """Selectors of a fault: it applies to requests that match all given values.

    `Cluster.fail`, `delay`, `throttle`, `drop` and `observe` take them as keywords.
    """

    topic: str | None
    partition: int | None
    """A partition of `topic`."""
    broker: int | None
    client_id: str | None
    group: str | None
    transactional_id: str | None


class NearMiss(NamedTuple):
    """How many requests matched all selectors of a fault but one, with the same wrong value for that selector."""

    selector: str
    wanted: object
    found: str
    """The value that the requests had instead."""
    api: str
    requests: int

    def __str__(self) -> str:
        return f"{self.requests} {self.api} had {self.selector} {self.found!r} instead of {self.wanted!r}"


_TYPES = {"topic": str, "partition": int, "broker": int, "client_id": str, "group": str, "transactional_id": str}
_LONGEST = (1 << 15) - 1  # bytes of a string; unless the string is compact, its length is an INT16
_SHOWN = 40  # characters of a string in an error
_SASL = ("SaslAuthenticate", "SaslHandshake")
_INTERNAL = tuple(INTERNAL)  # made when the first client needs them
_OTHERS = "select by broker or client_id"


class Target:
    """Selects the requests that a fault hits. A selector that is None matches every request."""

    __slots__ = ("api", "broker", "client_id", "clients_only", "group", "partition", "topic", "transactional_id")

    def __init__(self, api: str | None, **where: Unpack[Where]) -> None:
        """Raise TypeError for an unknown selector, and AbeyantError for a value that no request can match."""
        for name in where.keys() - _TYPES.keys():
            hint = did_you_mean(name, _TYPES) or f": select by {', '.join(_TYPES)}"
            raise TypeError(f"requests cannot be selected by {name}={hint}")
        for name, value in where.items():
            check_choice(name, value)
        self.clients_only = False
        self.api = api
        self.topic = where.get("topic")
        self.partition = where.get("partition")
        self.broker = where.get("broker")
        self.client_id = where.get("client_id")
        self.group = where.get("group")
        self.transactional_id = where.get("transactional_id")
        if api is not None and api != REPLICA_FETCH and api not in BY_NAME:
            raise AbeyantError(f"there is no API {api!r}{did_you_mean(str(api), [*BY_NAME, REPLICA_FETCH])}")
        if self.partition is not None and self.topic is None:
            raise AbeyantError(f"partition={self.partition} needs a topic: name it")
        if self.topic is not None and api == REPLICA_FETCH:
            raise AbeyantError(f"a follower's fetch is for all its partitions: {_OTHERS}")
        if self.topic is not None and api is not None and api not in NAME_TOPICS:
            raise AbeyantError(f"{api} names no topics: {_OTHERS}")
        if self.partition is not None and api is not None and api not in NAME_PARTITIONS:
            raise AbeyantError(f"{api} names topics, but no partitions: leave partition out")
        if self.group is not None and api is not None and api not in NAME_GROUPS:
            raise AbeyantError(f"{api} names no groups: {_OTHERS}")
        if self.transactional_id is not None and api is not None and api not in NAME_TRANSACTIONS:
            raise AbeyantError(f"{api} names no transactional ids: {_OTHERS}")

    def of_clients(self) -> Self:
        """Exclude requests between brokers. Return this target."""
        self.clients_only = True
        return self

    def check(self, cluster: BaseCluster) -> None:
        """Raise AbeyantError for an unknown broker, topic or partition, and for SASL APIs in a cluster without SASL.

        The topic need not exist if the API creates topics, or if it is one of Kafka's internal ones. Groups and
        transactional ids need not exist, as clients create them.
        """
        if self.broker is not None:
            cluster._broker_named(self.broker)
        if self.api in _SASL and not cluster.security.mechanisms:
            raise AbeyantError(f"no client sends {self.api}: the cluster has security={cluster.security.protocol!r}")
        if self.topic is None or self.api in NAME_NEW_TOPICS:
            return
        if self.topic in _INTERNAL and self.topic not in cluster.controller.topics:
            return
        if self.partition is None:
            cluster._topic_named(self.topic)
        else:
            cluster._partition_state(self.topic, self.partition)

    def mismatches(self, call: Any) -> list[str]:
        """Return the selectors that a `Call` or `ReplicaFetchCall` fails to match, at most two; [] if all match."""
        if self.clients_only and not hasattr(call, "connection"):
            return ["api", "client_id"]  # a request between brokers is no near miss of a client's
        names = []
        is_replica = name_of(call) == REPLICA_FETCH
        if self.api not in (None, name_of(call)):
            names.append("api")
        if self.broker not in (None, call.broker.id):
            names.append("broker")
        if self.client_id not in (None, call.client_id):
            names.append("client_id")
        if len(names) < 2 and self.topic is not None and (is_replica or not is_about(call, self.topic, self.partition)):
            topic_matches = self.partition is not None and not is_replica and is_about(call, self.topic, None)
            names.append("partition" if topic_matches else "topic")
        if len(names) < 2 and self.group is not None and (is_replica or self.group not in groups_of(call)):
            names.append("group")
        expected = self.transactional_id
        if len(names) < 2 and expected is not None and (is_replica or expected not in transactional_ids_of(call)):
            names.append("transactional_id")
        return names

    def near_miss(self, call: Any, selector: str) -> NearMiss | None:
        """Return a near miss for a request that only `selector` excludes; None if the target has no other selector."""
        if len(self.chosen()) < 2:
            return None
        return NearMiss(selector, getattr(self, selector), _found(call, selector), name_of(call), 1)

    def chosen(self) -> dict[str, object]:
        """Return the selectors that are not None, by name."""
        return {name: value for name in ("api", *_TYPES) if (value := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        chosen = self.chosen()
        chosen.pop("api", None)
        return " ".join([self.api or "any request", *(f"{name}={value!r}" for name, value in chosen.items())])


def _found(call: Any, selector: str) -> str:
    """Return a request's value for a selector, as text for a message; "" if it has none."""
    if selector == "api":
        return name_of(call)
    if selector in ("broker", "client_id"):
        return str(call.broker.id if selector == "broker" else call.client_id)
    if name_of(call) == REPLICA_FETCH:
        return ""
    if selector in ("group", "transactional_id"):
        return ", ".join(sorted(groups_of(call) if selector == "group" else transactional_ids_of(call)))
    return ", ".join(f"{topic}-{partition}" for topic, partition in keys_of(call))


def check_text(name: str, value: object) -> None:
    """Raise AbeyantError unless `value` can be a string in Kafka's protocol: str, valid in UTF-8, not too long."""
    if not isinstance(value, str):
        raise AbeyantError(f"{name} must be str, not {value!r}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise AbeyantError(f"{name} {value!r} has half a surrogate pair, which UTF-8 cannot encode") from None
    if size > _LONGEST:
        raise AbeyantError(f"{name} has {size} bytes; Kafka's strings have at most {_LONGEST}: {value[:_SHOWN]!r}...")


def check_choice(name: str, value: object) -> None:
    """Raise AbeyantError if the selector `name` (`topic`, `partition` ...) has a wrong type. None is valid."""
    if value is not None and (not isinstance(value, _TYPES[name]) or isinstance(value, bool)):
        raise AbeyantError(f"{name} must be {_TYPES[name].__name__}, not {value!r}")
