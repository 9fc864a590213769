"""Authorize a request: refuse it, or handle the part that is allowed and respond to the rest with errors.

Most requests name several topics or groups, of which a client may use some. The items that the client may not use are
removed from the request, and their errors are added to the response. Only Fetch checks its topics itself, as it keeps
them in sessions. Kafka: `KafkaApis`, `ControllerApis`, `AuthHelper`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, NoReturn

from abeyant.broker.acls import (
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DESCRIBE,
    GROUP,
    IDEMPOTENT_WRITE,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.allowed import allows, client_of, may_create, topic_name
from abeyant.broker.requests.common.hidden import hide
from abeyant.broker.requests.common.rights import (
    CONFIGS,
    FAILED,
    FIELDS,
    INSTEAD,
    ITEMS,
    NAMES,
    NEEDING,
    SAYING,
    SAYS,
    WHOLE,
    WHOLE_CLUSTER,
)
from abeyant.broker.wire.schema import ErrorCode, Message

__all__ = ["authorize"]


def authorize(call: Any) -> None:
    """Remove from a request the items that its client may not use. Raises ApiError if it may not send the request."""
    api, request = call.api.name, call.request
    if request is None:
        return
    for operation, kind in WHOLE.get(api, () if api in ITEMS else ((CLUSTER_ACTION, CLUSTER),)):
        name = CLUSTER_NAME if kind == CLUSTER else _first(request, FIELDS[kind])
        if name is not None and not allows(call, operation, kind, name):
            instead = INSTEAD.get(api)
            if instead is None or not allows(call, *instead, CLUSTER_NAME):
                _refuse(call, operation, kind)
    special = _SPECIAL.get(api)
    if special is not None:
        special(call)
    if api in ITEMS:
        _take_out(call, *ITEMS[api])
    hide(call)


def _refuse(call: Any, operation: int, kind: int) -> NoReturn:
    """Raise ApiError, and have Kafka's message set wherever the response has this error."""
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
    if api in NEEDING:
        return f"Request {api} needs {NAMES[operation]} permission."
    return SAYS[kind] if api in SAYING else None


def _explain(part: Any, error: ErrorCode, text: str | None) -> None:
    """Set the message `text` wherever a response, or a part of it, has this error."""
    if text is None:
        return
    if isinstance(part, (list, tuple)):
        for item in part:
            _explain(item, error, text)
    elif isinstance(part, Message):
        if part.error_code == error:
            part.error_message = text
        for item in vars(part).values():
            _explain(item, error, text)


def _first(request: Any, names: Iterable[str]) -> str | None:
    return next((value for name in names if (value := getattr(request, name, None)) is not None), None)


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
        kind = CONFIGS.get(item.resource_type, CLUSTER)
        name = CLUSTER_NAME if kind == CLUSTER else item.resource_name
    elif kind == GROUP:
        name = item.group_id
    else:
        name = _first(item, ("name", "topic", "topic_name")) or topic_name(call, getattr(item, "topic_id", None))
    if name is None:
        return None  # an unknown id: its error reveals nothing
    if not allows(call, operation, kind, name):
        return FAILED[kind]
    if api == "Metadata" and name not in call.broker.cluster.controller.topics and _creates(call):
        return None if may_create(call, name) else FAILED[TOPIC]
    return None


def _creates(call: Any) -> bool:
    settings = call.broker.cluster.settings
    return bool(call.request.allow_auto_topic_creation and settings["auto.create.topics.enable"])


def _take_out(call: Any, fields: tuple[str, ...], operation: int, kind: int) -> None:
    wider = WHOLE_CLUSTER.get(call.api.name)
    if wider is not None and allows(call, wider, CLUSTER, CLUSTER_NAME):
        return
    for field in fields:
        items = getattr(call.request, field, None)
        if not items:
            continue
        refused: dict[ErrorCode, list[Any]] = {}
        allowed = []
        for item in items:
            error = _refusal(call, item, operation, kind)
            if error is None:
                allowed.append(item)
            else:
                refused.setdefault(error, []).append(_shown(call, item))
        for error, refused_items in refused.items():
            rows = _rows_of(call, replace(call.request, **{field: tuple(refused_items)}), error)
            error_kind = next(key for key, code in FAILED.items() if code is error)
            _explain(rows, error, _message(call, operation, error_kind))
            call.amendments.append(_adding(rows, alone=not allowed and not call.amendments))
        if refused:
            call.request = replace(call.request, **{field: tuple(allowed)})


def _rows_of(call: Any, request: Any, error: ErrorCode) -> Any:
    make = getattr(call.api.module, "refused_rows", None)
    return call.api.error_response(request, error) if make is None else make(call, request, error)


def _shown(call: Any, item: Any) -> Any:
    """Return an item of a request, with its topic's name if the client may know it."""
    if call.api.name != "DeleteTopics" or getattr(item, "name", None) is not None or not hasattr(item, "topic_id"):
        return item
    name = topic_name(call, item.topic_id)
    return replace(item, name=name) if name is not None and allows(call, DESCRIBE, TOPIC, name) else item


def _adding(rows: Any, *, alone: bool) -> Callable[[Any], None]:
    """Return a function that adds `rows` to a response. With `alone`, as no item was allowed, they replace its rows."""

    def add(response: Any) -> None:
        if response.error_code is not ErrorCode.none:
            return
        for name, value in vars(rows).items():
            if isinstance(value, (list, tuple)) and value:
                before = () if alone else getattr(response, name, None) or ()
                setattr(response, name, [*before, *value])
        if alone and "next_cursor" in vars(response):
            response.next_cursor = None  # it is of all topics, which a request without topics lists

    return add


# -- requests with rules of their own


def _init_producer_id(call: Any) -> None:
    name = call.request.transactional_id
    if name is not None:
        if not allows(call, WRITE, TRANSACTIONAL_ID, name):
            raise ApiError(FAILED[TRANSACTIONAL_ID])
        return
    acls = call.broker.cluster.controller.acls
    if not allows(call, IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME) and not acls.allows_any(client_of(call), WRITE, TOPIC):
        raise ApiError(FAILED[CLUSTER])


def _find_coordinator(call: Any) -> None:
    if call.request.key is not None:
        error = _refusal(call, call.request.key, DESCRIBE, GROUP)
        if error is not None:
            _refuse(call, DESCRIBE, next(kind for kind, code in FAILED.items() if code is error))


def _offset_fetch(call: Any) -> None:
    request = call.request
    group_id = getattr(request, "group_id", None) if request.groups is None else None
    if group_id is not None and not allows(call, DESCRIBE, GROUP, group_id):
        raise ApiError(FAILED[GROUP])


def _each_topic(operation: int, field: str) -> Callable[[Any], None]:
    """Return a check that refuses the whole request if the client lacks the right to one of its topics."""

    def check(call: Any) -> None:
        for item in getattr(call.request, field, None) or ():
            if not allows(call, operation, TOPIC, item if isinstance(item, str) else item.name):
                raise ApiError(FAILED[TOPIC])

    return check


def _add_partitions(call: Any) -> None:
    """If the client may not write to a topic, refuse the whole request; allowed topics get OPERATION_NOT_ATTEMPTED."""
    if hasattr(call.request, "transactions"):  # between brokers
        if not allows(call, CLUSTER_ACTION, CLUSTER, CLUSTER_NAME):
            raise ApiError(FAILED[CLUSTER])
        return
    topics = call.request.v3_and_below_topics
    refused = [topic for topic in topics if not allows(call, WRITE, TOPIC, topic.name)]
    if refused:
        for subset, error in (
            (refused, FAILED[TOPIC]),
            ([topic for topic in topics if topic not in refused], ErrorCode.operation_not_attempted),
        ):
            rows = call.api.error_response(replace(call.request, v3_and_below_topics=tuple(subset)), error)
            call.amendments.append(_adding(rows, alone=not call.amendments))
        call.request = replace(call.request, v3_and_below_topics=())


def _share_offsets(call: Any) -> None:
    """In the groups that the client may describe, remove the topics that the client may not describe."""
    groups = []
    for group in call.request.groups:
        topics = group.topics
        if topics is not None and allows(call, DESCRIBE, GROUP, group.group_id):
            refused = [topic for topic in topics if not allows(call, DESCRIBE, TOPIC, topic.topic_name)]
            if refused:
                topics = tuple(topic for topic in topics if topic not in refused)
                rows = call.api.module.refused_topics(refused, FAILED[TOPIC], SAYS[TOPIC])
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
