"""Check the ACLs for the client that sent a request."""

from __future__ import annotations

from typing import Any

from abeyant.broker.acls import CLUSTER, CLUSTER_NAME, CREATE, DESCRIBE, READ, TOPIC, Client

__all__ = ["allows", "client_of", "may", "may_create", "may_describe", "may_read", "topic_name"]


def client_of(call: Any) -> Client:
    """Return the principal and host that sent a request."""
    return Client(f"User:{call.connection.user}", call.connection.peer.rpartition(":")[0])


def may_read(call: Any, name: str | None, topic_id: Any) -> bool:
    """Return whether a client may fetch from a topic, given by name or id. True for an unknown id."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        return True
    name = name or topic_name(call, topic_id)
    return name is None or acls.allows(client_of(call), READ, TOPIC, name)


def may(call: Any, operation: int, kind: int, name: str) -> bool:
    """Return whether a client may perform an operation on a resource; True if ACLs are not enabled."""
    return not call.broker.cluster.controller.acls.enabled or allows(call, operation, kind, name)


def may_create(call: Any, topic: str) -> bool:
    """Return whether a client may create a topic."""
    return may(call, CREATE, CLUSTER, CLUSTER_NAME) or may(call, CREATE, TOPIC, topic)


def may_describe(call: Any, topic: str) -> bool:
    """Return whether a client may describe a topic."""
    return may(call, DESCRIBE, TOPIC, topic)


def allows(call: Any, operation: int, kind: int, name: str) -> bool:
    """Return whether the ACLs allow a client an operation on a resource. Call it only if ACLs are enabled."""
    allowed: bool = call.broker.cluster.controller.acls.allows(client_of(call), operation, kind, name)
    return allowed


def topic_name(call: Any, topic_id: Any) -> str | None:
    """Return the name of a topic that a request names by its id; None for an unknown id."""
    topic = call.broker.cluster.controller.by_id.get(topic_id)
    return None if topic is None else topic.name
