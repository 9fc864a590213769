"""Authorize a request: refuse it, or handle the part that is allowed and answer the rest with errors.

Most requests name several topics or groups, of which a client may use some. Those that it may not use are taken out of
the request, and their errors are added to the response. Fetch, which keeps its topics in sessions, asks for itself.
Kafka: `KafkaApis`, `ControllerApis`, `AuthHelper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, NoReturn

from abeyant.broker.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Client,
)
from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode, Message

__all__ = ["authorize", "client_of", "may", "may_create", "may_describe", "may_read"]

FAILED: Final = {
    TOPIC: ErrorCode.topic_authorization_failed, GROUP: ErrorCode.group_authorization_failed,
    CLUSTER: ErrorCode.cluster_authorization_failed,
    TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}  # fmt: skip
_FIELDS: Final = {
    GROUP: ("group_id",), TRANSACTIONAL_ID: ("transactional_id", "v3_and_below_transactional_id"),
}  # fmt: skip

# What the whole request needs; without a rule here or below, a request needs CLUSTER_ACTION.
_WHOLE: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    **dict.fromkeys(
        (
            "ApiVersions", "DescribeCluster", "SaslAuthenticate", "SaslHandshake", "Fetch", "InitProducerId",
            "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
            "GetTelemetrySubscriptions", "PushTelemetry",
        ),
        (),
    ),
    **dict.fromkeys(
        (
            "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "ConsumerGroupHeartbeat",
            "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "AlterShareGroupOffsets", "StreamsGroupHeartbeat",
        ),
        ((READ, GROUP),),
    ),
    **dict.fromkeys(("Produce", "EndTxn", "AddPartitionsToTxn"), ((WRITE, TRANSACTIONAL_ID),)),
    **dict.fromkeys(("AddOffsetsToTxn", "TxnOffsetCommit"), ((WRITE, TRANSACTIONAL_ID), (READ, GROUP))),
    **dict.fromkeys(
        (
            "CreateAcls", "DeleteAcls", "AlterPartitionReassignments", "ElectLeaders", "AlterUserScramCredentials",
            "AlterReplicaLogDirs", "UpdateFeatures",
        ),
        ((ALTER, CLUSTER),),
    ),
    **dict.fromkeys(
        (
            "DescribeAcls", "DescribeQuorum", "ListPartitionReassignments", "DescribeUserScramCredentials",
            "DescribeLogDirs",
        ),
        ((DESCRIBE, CLUSTER),),
    ),
    **dict.fromkeys(("OffsetDelete", "DeleteShareGroupOffsets"), ((DELETE, GROUP),)),
    "AlterClientQuotas": ((ALTER_CONFIGS, CLUSTER),),
    **dict.fromkeys(("DescribeClientQuotas", "ListConfigResources"), ((DESCRIBE_CONFIGS, CLUSTER),)),
}  # fmt: skip

# With these a request may be sent, too, by API.
_INSTEAD: Final = {"WriteTxnMarkers": (ALTER, CLUSTER)}

# The messages of refusals: Kafka sends one to clients of these APIs only. Without an entry there is none.
_SAYS: Final = {
    TOPIC: "Topic authorization failed.",
    GROUP: "Group authorization failed.",
    CLUSTER: "Cluster authorization failed.",
    TRANSACTIONAL_ID: "Transactional Id authorization failed.",
}
_SAYING: Final = frozenset(
    {
        "AlterClientQuotas", "AlterConfigs", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
        "DeleteShareGroupState", "DeleteTopics", "DescribeConfigs", "DescribeProducers", "FindCoordinator",
        "IncrementalAlterConfigs", "InitializeShareGroupState", "ReadShareGroupState", "ReadShareGroupStateSummary",
        "WriteShareGroupState",
    }
)  # fmt: skip
_NEEDING: Final = frozenset(
    {
        "AlterPartitionReassignments", "AlterUserScramCredentials", "CreateAcls", "DeleteAcls", "DescribeAcls",
        "ElectLeaders", "ListPartitionReassignments",
    }
)  # fmt: skip
_NAMES: Final = {ALTER: "ALTER", DESCRIBE: "DESCRIBE"}

# The operation and type of the items in a request's field, by API: topics, groups, transactional ids.
_ITEMS: Final[dict[str, tuple[tuple[str, ...], int, int]]] = {
    "Produce": (("topic_data",), WRITE, TOPIC),
    "ListOffsets": (("topics",), DESCRIBE, TOPIC),
    "OffsetForLeaderEpoch": (("topics",), DESCRIBE, TOPIC),
    "DescribeTopicPartitions": (("topics",), DESCRIBE, TOPIC),
    "Metadata": (("topics",), DESCRIBE, TOPIC),
    "OffsetCommit": (("topics",), READ, TOPIC),
    "TxnOffsetCommit": (("topics",), READ, TOPIC),
    "DescribeProducers": (("topics",), READ, TOPIC),
    "AlterShareGroupOffsets": (("topics",), READ, TOPIC),
    "OffsetDelete": (("topics",), READ, TOPIC),
    "DeleteShareGroupOffsets": (("topics",), READ, TOPIC),
    "DescribeShareGroupOffsets": (("groups",), DESCRIBE, GROUP),
    "DeleteRecords": (("topics",), DELETE, TOPIC),
    "DeleteTopics": (("topics", "topic_names"), DELETE, TOPIC),
    "CreateTopics": (("topics",), CREATE, TOPIC),
    "CreatePartitions": (("topics",), ALTER, TOPIC),
    "DescribeGroups": (("groups",), DESCRIBE, GROUP),
    "ConsumerGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "ShareGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "StreamsGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "DeleteGroups": (("groups_names",), DELETE, GROUP),
    "OffsetFetch": (("groups",), DESCRIBE, GROUP),
    "DescribeTransactions": (("transactional_ids",), DESCRIBE, TRANSACTIONAL_ID),
    "DescribeConfigs": (("resources",), DESCRIBE_CONFIGS, TOPIC),
    "AlterConfigs": (("resources",), ALTER_CONFIGS, TOPIC),
    "IncrementalAlterConfigs": (("resources",), ALTER_CONFIGS, TOPIC),
    "FindCoordinator": (("coordinator_keys",), DESCRIBE, GROUP),
    "ListGroups": ((), DESCRIBE, GROUP),
    "ListTransactions": ((), DESCRIBE, TRANSACTIONAL_ID),
}
_WHOLE_CLUSTER: Final = {"CreateTopics": CREATE, "DeleteTopics": DELETE, "ListGroups": DESCRIBE}
"""With this right to the cluster, a client needs none to the items."""

_CONFIGS: Final = {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 16: CLUSTER, 32: GROUP}
_NO_OPERATIONS: Final = -(1 << 31)
_SHOWING_OPERATIONS: Final = (
    "Metadata", "DescribeTopicPartitions", "DescribeCluster", "DescribeGroups", "ConsumerGroupDescribe",
    "ShareGroupDescribe", "StreamsGroupDescribe",
)  # fmt: skip


def client_of(call: Any) -> Client:
    """Return who sends a request."""
    return Client(f"User:{call.connection.user}", call.connection.peer.rpartition(":")[0])


def may_read(call: Any, name: str | None, topic_id: Any) -> bool:
    """Return whether a client may fetch from a topic, which a fetch names either way."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        return True
    name = name or _topic_name(call, topic_id)
    return name is None or acls.allows(client_of(call), READ, TOPIC, name)


def may(call: Any, operation: int, kind: int, name: str) -> bool:
    """Return whether a client may do this with a resource."""
    return not call.broker.cluster.controller.acls.enabled or _allows(call, operation, kind, name)


def may_create(call: Any, topic: str) -> bool:
    """Return whether a client may create a topic."""
    return may(call, CREATE, CLUSTER, CLUSTER_NAME) or may(call, CREATE, TOPIC, topic)


def may_describe(call: Any, topic: str) -> bool:
    """Return whether a client may describe a topic."""
    return may(call, DESCRIBE, TOPIC, topic)


def authorize(call: Any) -> None:
    """Take out of a request what its client may not use. Raises ApiError if it may not send it at all."""
    api, request = call.api.name, call.request
    if request is None:
        return
    for operation, kind in _WHOLE.get(api, () if api in _ITEMS else ((CLUSTER_ACTION, CLUSTER),)):
        name = CLUSTER_NAME if kind == CLUSTER else _first(request, _FIELDS[kind])
        if name is not None and not _allows(call, operation, kind, name):
            instead = _INSTEAD.get(api)
            if instead is None or not _allows(call, *instead, CLUSTER_NAME):
                _refuse(call, operation, kind)
    special = _SPECIAL.get(api)
    if special is not None:
        special(call)
    if api in _ITEMS:
        _take_out(call, *_ITEMS[api])
    _amend(call, api)


def _refuse(call: Any, operation: int, kind: int) -> NoReturn:
    """Raise ApiError, with Kafka's message in every part of the response."""
    error, text = FAILED[kind], _message(call, operation, kind)
    if hasattr(call.request, "member_id") and call.api.name == "JoinGroup":
        call.request = replace(call.request, member_id="")
    call.amendments.append(lambda response: _explain(response, error, text))
    raise ApiError(error)


def _message(call: Any, operation: int, kind: int) -> str | None:
    api = call.api.name
    if api == "CreateTopics":
        return "Authorization failed."
    if api == "FindCoordinator" and call.version >= 4 and kind != CLUSTER:
        return ""
    if api in _NEEDING:
        return f"Request {api} needs {_NAMES[operation]} permission."
    return _SAYS[kind] if api in _SAYING else None


def _explain(part: Any, error: ErrorCode, text: str | None) -> None:
    """Set the message of an error in all parts of a response."""
    if text is None:
        return
    if isinstance(part, (list, tuple)):
        for one in part:
            _explain(one, error, text)
    elif isinstance(part, Message):
        if part.error_code == error:
            part.error_message = text
        for one in vars(part).values():
            _explain(one, error, text)


def _allows(call: Any, operation: int, kind: int, name: str) -> bool:
    allowed: bool = call.broker.cluster.controller.acls.allows(client_of(call), operation, kind, name)
    return allowed


def _first(request: Any, names: Iterable[str]) -> str | None:
    return next((found for name in names if (found := getattr(request, name, None)) is not None), None)


def _topic_name(call: Any, topic_id: Any) -> str | None:
    topic = call.broker.cluster.controller.by_id.get(topic_id)
    return None if topic is None else topic.name


def _refusal(call: Any, item: Any, operation: int, kind: int) -> ErrorCode | None:
    """Return the error for an item of a request; None if it is allowed."""
    api = call.api.name
    if isinstance(item, str):
        name: str | None = item
        if api == "FindCoordinator":
            kind = {0: GROUP, 1: TRANSACTIONAL_ID}.get(call.request.key_type, CLUSTER)
            if kind == CLUSTER:
                operation, name = CLUSTER_ACTION, CLUSTER_NAME
    elif hasattr(item, "resource_type"):
        kind = _CONFIGS.get(item.resource_type, CLUSTER)
        name = CLUSTER_NAME if kind == CLUSTER else item.resource_name
    elif kind == GROUP:
        name = item.group_id
    else:
        name = _first(item, ("name", "topic", "topic_name")) or _topic_name(call, getattr(item, "topic_id", None))
    if name is None:
        return None  # an unknown id: nothing is told by saying so
    if not _allows(call, operation, kind, name):
        return FAILED[kind]
    if api == "Metadata" and name not in call.broker.cluster.controller.topics and _creates(call):
        return None if may_create(call, name) else FAILED[TOPIC]
    return None


def _creates(call: Any) -> bool:
    settings = call.broker.cluster.settings
    return bool(call.request.allow_auto_topic_creation and settings["auto.create.topics.enable"])


def _take_out(call: Any, fields: tuple[str, ...], operation: int, kind: int) -> None:
    wider = _WHOLE_CLUSTER.get(call.api.name)
    if wider is not None and _allows(call, wider, CLUSTER, CLUSTER_NAME):
        return
    for field in fields:
        items = getattr(call.request, field, None)
        if not items:
            continue
        refused: dict[ErrorCode, list[Any]] = {}
        kept = []
        for item in items:
            error = _refusal(call, item, operation, kind)
            if error is None:
                kept.append(item)
            else:
                refused.setdefault(error, []).append(_shown(call, item))
        for error, some in refused.items():
            rows = _rows_of(call, replace(call.request, **{field: tuple(some)}), error)
            what = next(one for one, code in FAILED.items() if code is error)
            _explain(rows, error, _message(call, operation, what))
            call.amendments.append(_adding(rows, alone=not kept and not call.amendments))
        if refused:
            call.request = replace(call.request, **{field: tuple(kept)})


def _rows_of(call: Any, request: Any, error: ErrorCode) -> Any:
    make = getattr(call.api.module, "refused_rows", None)
    return call.api.error_response(request, error) if make is None else make(call, request, error)


def _shown(call: Any, item: Any) -> Any:
    """Return an item of a request, with its topic's name if the client may know it."""
    if call.api.name != "DeleteTopics" or getattr(item, "name", None) is not None or not hasattr(item, "topic_id"):
        return item
    name = _topic_name(call, item.topic_id)
    return replace(item, name=name) if name is not None and _allows(call, DESCRIBE, TOPIC, name) else item


def _adding(rows: Any, *, alone: bool) -> Callable[[Any], None]:
    """Return what adds the rows of one response to another, or replaces that one's, as nothing else was allowed."""

    def add(response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            return
        for name, value in vars(rows).items():
            if isinstance(value, (list, tuple)) and value:
                before = () if alone else getattr(response, name, None) or ()
                setattr(response, name, [*before, *value])
        if alone and "next_cursor" in vars(response):
            response.next_cursor = None  # of what else there is, as nothing that was asked for is left

    return add


# -- requests with rules of their own


def _init_producer_id(call: Any) -> None:
    name = call.request.transactional_id
    if name is not None:
        if not _allows(call, WRITE, TRANSACTIONAL_ID, name):
            raise ApiError(FAILED[TRANSACTIONAL_ID])
        return
    acls = call.broker.cluster.controller.acls
    if not _allows(call, IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME) and not acls.allows_any(
        client_of(call), WRITE, TOPIC
    ):
        raise ApiError(FAILED[CLUSTER])


def _find_coordinator(call: Any) -> None:
    if call.request.key is not None:
        error = _refusal(call, call.request.key, DESCRIBE, GROUP)
        if error is not None:
            _refuse(call, DESCRIBE, next(kind for kind, code in FAILED.items() if code is error))


def _offset_fetch(call: Any) -> None:
    request = call.request
    one = getattr(request, "group_id", None) if request.groups is None else None
    if one is not None and not _allows(call, DESCRIBE, GROUP, one):
        raise ApiError(FAILED[GROUP])


def _each_topic(operation: int, field: str) -> Callable[[Any], None]:
    """Return what refuses a whole request for one of its topics."""

    def check(call: Any) -> None:
        for item in getattr(call.request, field, None) or ():
            if not _allows(call, operation, TOPIC, item if isinstance(item, str) else item.name):
                raise ApiError(FAILED[TOPIC])

    return check


def _add_partitions(call: Any) -> None:
    """Refuse all partitions for one topic that may not be written: the others are not attempted."""
    if hasattr(call.request, "transactions"):  # between brokers
        if not _allows(call, CLUSTER_ACTION, CLUSTER, CLUSTER_NAME):
            raise ApiError(FAILED[CLUSTER])
        return
    topics = call.request.v3_and_below_topics
    refused = [topic for topic in topics if not _allows(call, WRITE, TOPIC, topic.name)]
    if refused:
        for some, error in (
            (refused, FAILED[TOPIC]),
            ([topic for topic in topics if topic not in refused], ErrorCode.operation_not_attempted),
        ):
            rows = call.api.error_response(replace(call.request, v3_and_below_topics=tuple(some)), error)
            call.amendments.append(_adding(rows, alone=not call.amendments))
        call.request = replace(call.request, v3_and_below_topics=())


def _share_offsets(call: Any) -> None:
    """Take topics out of each group that may be described."""
    groups = []
    for group in call.request.groups:
        topics = group.topics
        if topics is not None and _allows(call, DESCRIBE, GROUP, group.group_id):
            refused = [one for one in topics if not _allows(call, DESCRIBE, TOPIC, one.topic_name)]
            if refused:
                topics = tuple(one for one in topics if one not in refused)
                rows = call.api.module.refused_topics(refused, FAILED[TOPIC], _SAYS[TOPIC])
                call.amendments.append(_adding_topics(group.group_id, rows))
        groups.append(replace(group, topics=topics))
    call.request = replace(call.request, groups=tuple(groups))


def _adding_topics(group_id: str, rows: list[Any]) -> Callable[[Any], None]:
    def add(response: Any) -> None:
        for group in response.groups:
            if group.group_id == group_id and group.error_code is ErrorCode.none:
                group.topics = [*group.topics, *rows]

    return add


_SPECIAL: Final[dict[str, Callable[[Any], None]]] = {
    "InitProducerId": _init_producer_id,
    "FindCoordinator": _find_coordinator,
    "OffsetFetch": _offset_fetch,
    "AddPartitionsToTxn": _add_partitions,
    "ConsumerGroupHeartbeat": _each_topic(DESCRIBE, "subscribed_topic_names"),
    "ShareGroupHeartbeat": _each_topic(DESCRIBE, "subscribed_topic_names"),
    "DescribeShareGroupOffsets": _share_offsets,
}


# -- responses that list what was not named


def _amend(call: Any, api: str) -> None:
    if api in ("Metadata", "DescribeTopicPartitions") and not call.request.topics and not call.amendments:
        call.amendments.append(lambda response: _keep(call, response, "topics", "name", DESCRIBE, TOPIC))
    if api == "ListGroups" and not _allows(call, DESCRIBE, CLUSTER, CLUSTER_NAME):
        call.amendments.append(lambda response: _keep(call, response, "groups", "group_id", DESCRIBE, GROUP))
    if api == "ListTransactions":
        what = "transaction_states", "transactional_id", DESCRIBE, TRANSACTIONAL_ID
        call.amendments.append(lambda response: _keep(call, response, *what))
    if api == "OffsetFetch":
        call.amendments.append(lambda response: _hide_offsets(call, response))
    if api == "CreateTopics":
        call.amendments.append(lambda response: _hide_configs(call, response))
    if api == "DescribeShareGroupOffsets":
        call.amendments.append(lambda response: _hide_topics(call, response))
    if api in _SHOWING_OPERATIONS:
        call.amendments.append(lambda response: _limit_operations(call, response))


def _keep(call: Any, response: Any, field: str, name: str, operation: int, kind: int) -> None:
    rows = getattr(response, field, None) or ()
    setattr(response, field, [row for row in rows if _allows(call, operation, kind, getattr(row, name))])


def _hide_offsets(call: Any, response: Any) -> None:
    """Hide the offsets of topics that the client may not describe."""
    asked = {one.group_id: one.topics for one in call.request.groups or ()}
    for group in response.groups if call.request.groups is not None else (response,):
        topics = []
        all_of_them = (asked.get(group.group_id) if asked else getattr(call.request, "topics", None)) is None
        for topic in getattr(group, "topics", None) or ():
            name = getattr(topic, "name", None) or _topic_name(call, getattr(topic, "topic_id", None))
            if name is None or _allows(call, DESCRIBE, TOPIC, name):
                topics.append(topic)
            elif not all_of_them:
                for one in topic.partitions:
                    one.error_code, one.committed_offset = FAILED[TOPIC], -1
                    one.committed_leader_epoch, one.metadata = -1, ""
                topics.append(topic)
        group.topics = topics


def _hide_configs(call: Any, response: Any) -> None:
    """Hide what new topics are like if the client may not describe their settings."""
    for topic in response.topics:
        if topic.error_code is ErrorCode.none and not _allows(call, DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.configs, topic.num_partitions, topic.replication_factor = [], -1, -1
            topic.topic_config_error_code = FAILED[TOPIC].value


def _hide_topics(call: Any, response: Any) -> None:
    """Hide the topics that a group has and the client may not describe, where all of them are wanted."""
    every = {group.group_id for group in call.request.groups if group.topics is None}
    for group in response.groups:
        if group.group_id in every:
            group.topics = [one for one in group.topics if _allows(call, DESCRIBE, TOPIC, one.topic_name)]


def _limit_operations(call: Any, response: Any) -> None:
    """Leave those among the authorized operations that the client has."""
    rows = [(response, "cluster_authorized_operations", CLUSTER, CLUSTER_NAME)]
    rows += [(row, "topic_authorized_operations", TOPIC, row.name) for row in getattr(response, "topics", None) or ()]
    rows += [(row, "authorized_operations", GROUP, row.group_id) for row in getattr(response, "groups", None) or ()]
    for row, field, kind, name in rows:
        every = getattr(row, field, _NO_OPERATIONS)
        if every != _NO_OPERATIONS and name is not None:
            bits = (bit for bit in range(READ, IDEMPOTENT_WRITE + 1) if every >> bit & 1)
            setattr(row, field, sum(1 << bit for bit in bits if _allows(call, bit, kind, name)))
