"""Interpret a Kafka request as a delayed operation: its kind, time-out, keys, condition, and outcome in the log.

docs/analysis-tables.md lists the rules, with what was seen in a genuine log. Independent of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from abeyant.pipeline.request_log.body import integer, is_raft, items, milliseconds, replica_id, text, topic_name
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError

__all__ = [
    "COMPLETED",
    "DELAYABLE",
    "EARLY_MS",
    "EXPIRED",
    "LONG_POLLS",
    "REQUEST_TIMED_OUT",
    "Operated",
    "Operation",
    "Read",
    "first_error",
    "operation",
    "read_request",
]

COMPLETED: Final = "completed"
EXPIRED: Final = "expired"

EARLY_MS: Final = 1.0
"""Kafka may expire an operation this many ms before its time-out: it truncates both ends of the wait to ms."""

DELAYABLE: Final = frozenset({"PRODUCE", "FETCH", "SHARE_FETCH", "JOIN_GROUP", "SYNC_GROUP", "DELETE_RECORDS"})
"""APIs whose requests Kafka may delay: each request is an operation, even if it was answered at once. A request of
another API is an operation only if it waited."""

LONG_POLLS: Final = frozenset({"FETCH", "FETCH_CONSUMER", "FETCH_FOLLOWER", "FETCH_RAFT", "SHARE_FETCH"})
"""Kinds of operations that ordinarily expire, as no new data came. OFFSET_FETCH is not of these kinds."""

REQUEST_TIMED_OUT: Final = 7
# The group coordinator returns this when its own write timed out, but also when it is loading or has moved.
_COORDINATOR_NOT_AVAILABLE: Final = 15

Watch = tuple[str, int | None]


Operated = tuple[str, int | None, list[str], list[int | None], str, str | None, int | None, int | None]
"""Kind, time-out in ms, keys, the progress required of each key, condition, outcome, error code, bytes of records."""

Read = tuple[str, int, int, bool, str | None, float, float, float, Operated | None]
"""API, start and wait in microseconds, whether it waited, client id, local, send and throttle times in milliseconds;
then the operation, None for a request that is only counted."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A request as a delayed operation: its kind, time-out and keys, from its body, and how it ended."""

    kind: str
    timeout_ms: int | None
    watches: tuple[Watch, ...]
    """(key, the least progress of the key with which the condition may hold, None if the log does not have it)."""
    condition: str
    outcome: str | None
    """`completed`, `expired`, or None if the log does not show it."""
    error_code: int | None
    """The first error of the response, 0 for none, None without a response."""
    size_bytes: int | None = None
    """Size of the records in a produce's request or a fetch's response; None if the log does not have it."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """The facts that decide the outcome of a wait."""

    request: ApiRequest
    timeout_ms: int | None
    error_codes: frozenset[int]

    @property
    def at_limit(self) -> bool:
        """Whether the local and the remote time together reached the request's time-out.

        The operation's timer starts inside the local handler; the remote time starts when the handler returns. So the
        remote time alone may be too short: a fetch that expired had 6.9 ms less than its time-out.
        """
        waited_ms = self.request.local_ms + self.request.remote_ms
        return self.timeout_ms is not None and waited_ms >= self.timeout_ms - EARLY_MS


def operation(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    """Return a request as an operation; `topics` maps topic ids to names.

    Raises `BadLineError` for a body that Kafka does not write.
    """
    try:
        return _KINDS.get(request.api, _other)(request, topics)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadLineError):
            raise
        detail = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise BadLineError(f"unexpected body of {request.api}: {detail}") from error


def read_request(request: ApiRequest, topics: Mapping[str, str]) -> Read:
    """Return a request's times and its operation. Raises `BadLineError` for a body that Kafka does not write."""
    texts = [request.client_id or ""]
    operated = None
    if request.api in DELAYABLE or request.remote_ms > 0:
        wait = operation(request, topics)
        keys, required = [key for key, _ in wait.watches], [required for _, required in wait.watches]
        texts += keys
        ending = wait.condition, wait.outcome, wait.error_code, wait.size_bytes
        operated = wait.kind, wait.timeout_ms, keys, required, *ending
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise BadLineError("not valid text: a lone surrogate") from error
    times = request.local_ms, request.send_ms, request.throttle_ms
    waited = request.remote_ms > 0
    return request.api, request.start_us, request.wait_us, waited, request.client_id, *times, operated


def _produce(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    body, response = request.request, request.response
    timeout_ms = milliseconds(body, "timeoutMs")
    errors: set[int] = set()
    base_offsets: dict[tuple[str, int], int] = {}
    for topic in items(response, "responses"):
        for partition in items(topic, "partitionResponses"):
            errors.add(integer(partition, "errorCode"))
            base_offsets[topic_name(topic, topics), integer(partition, "index")] = integer(partition, "baseOffset")
    watches: list[Watch] = []
    partitions: list[Mapping[str, Any]] = []
    for topic in items(body, "topicData"):
        name = topic_name(topic, topics)
        for partition in items(topic, "partitionData"):
            partitions.append(partition)
            index = integer(partition, "index")
            base = base_offsets.get((name, index), -1)
            # The high watermark has to pass the batch. Its length is not logged, so: its first record at least.
            watches.append((f"{name}-{index}", base + 1 if base >= 0 else None))
    ended = _Ended(request, timeout_ms, frozenset(errors))
    return _made("PRODUCE", ended, watches, "all", _by_error_code(ended), _record_bytes(partitions))


def _fetch(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    body, response = request.request, request.response
    timeout_ms = milliseconds(body, "maxWaitMs")
    watches: list[Watch] = []
    for topic in items(body, "topics"):
        name = topic_name(topic, topics)
        for partition in items(topic, "partitions"):
            offset = integer(partition, "fetchOffset")
            watches.append((f"{name}-{integer(partition, 'partition')}", offset + 1 if offset >= 0 else None))
    errors = {integer(response, "errorCode", 0)} if response is not None else set()
    partitions: list[Mapping[str, Any]] = []
    for topic in items(response, "responses"):
        for partition in items(topic, "partitions"):
            errors.add(integer(partition, "errorCode"))
            partitions.append(partition)
    ended = _Ended(request, timeout_ms, frozenset(errors))
    return _made(_fetch_kind(request), ended, watches, "any", _by_clock(ended), _record_bytes(partitions))


def _share_fetch(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    body = request.request
    watches: list[Watch] = []
    for topic in items(body, "topics"):
        name = topic_name(topic, topics)
        # What a share group may still acquire of a partition is the broker's own state: the request has no offset.
        watches += [(f"{name}-{integer(p, 'partitionIndex')}", None) for p in items(topic, "partitions")]
    ended = _Ended(request, milliseconds(body, "maxWaitMs"), _error_codes(request.response))
    return _made("SHARE_FETCH", ended, watches, "any", _by_clock(ended))


def _fetch_kind(request: ApiRequest) -> str:
    """Return the kind of a fetch: of the KRaft quorum, a follower or a consumer. Kafka too counts them separately."""
    if is_raft(request):
        return "FETCH_RAFT"
    body = request.request
    if body is None:
        return "FETCH"
    return "FETCH_FOLLOWER" if replica_id(body) >= 0 else "FETCH_CONSUMER"


def _join_group(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    # Version 0 has no rebalance time-out: there the session time-out is both.
    body = request.request
    name = "rebalanceTimeoutMs" if body is not None and "rebalanceTimeoutMs" in body else "sessionTimeoutMs"
    ended = _Ended(request, milliseconds(body, name), _error_codes(request.response))
    return _made("JOIN_GROUP", ended, _groups(body, "join"), "all", _by_clock(ended))


def _sync_group(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    # Its limit is the rebalance time-out of an earlier JOIN_GROUP: not in this line. An error after a wait may be
    # that limit or a new rebalance.
    ended = _Ended(request, None, _error_codes(request.response))
    settled = request.remote_ms == 0 or ended.error_codes == {0}
    return _made("SYNC_GROUP", ended, _groups(request.request, "sync"), "all", COMPLETED if settled else None)


def _delete_records(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    body = request.request
    watches: list[Watch] = []
    for topic in items(body, "topics"):
        name = topic_name(topic, topics)
        for partition in items(topic, "partitions"):
            # Offset -1 stands for the high watermark at that moment, which the log does not have.
            offset = integer(partition, "offset")
            key = f"{name}-{integer(partition, 'partitionIndex')}"
            watches.append((key, offset if offset >= 0 else None))
    ended = _Ended(request, milliseconds(body, "timeoutMs"), _error_codes(request.response))
    return _made("DELETE_RECORDS", ended, watches, "all", _by_error_code(ended))


def _other(request: ApiRequest, topics: Mapping[str, str]) -> Operation:
    """Return the operation of any other request that waited: coordinators and controllers answer asynchronously."""
    body = request.request
    timeout_ms = None
    for name in ("timeoutMs", "maxWaitMs"):
        if body is not None and name in body:
            timeout_ms = milliseconds(body, name)
    ended = _Ended(request, timeout_ms, _error_codes(request.response))
    outcome = _by_error_code(ended)
    if outcome == COMPLETED and request.remote_ms > 0:
        if ended.at_limit:
            outcome = EXPIRED
        elif _COORDINATOR_NOT_AVAILABLE in ended.error_codes:
            outcome = None
    return _made(request.api, ended, _groups(body, "group"), "all", outcome)


_KINDS: Final[Mapping[str, Callable[[ApiRequest, Mapping[str, str]], Operation]]] = {
    "PRODUCE": _produce,
    "FETCH": _fetch,
    "SHARE_FETCH": _share_fetch,
    "JOIN_GROUP": _join_group,
    "SYNC_GROUP": _sync_group,
    "DELETE_RECORDS": _delete_records,
}


def _by_clock(ended: _Ended) -> str | None:
    """Return the outcome by the time-out alone, for requests whose responses do not show whether they expired.

    The bytes in a fetch's response do not show it either: Kafka reads the log again when a fetch expires.
    """
    if ended.request.remote_ms == 0:
        return COMPLETED
    if ended.timeout_ms is None:
        return None
    return EXPIRED if ended.at_limit else COMPLETED


def _by_error_code(ended: _Ended) -> str | None:
    """Return the outcome: expired with the error REQUEST_TIMED_OUT or, without error codes, by the time-out.

    Without error codes and time-out: completed if there is a response, else None.
    """
    if REQUEST_TIMED_OUT in ended.error_codes:
        return EXPIRED
    if ended.error_codes or ended.request.remote_ms == 0:
        return COMPLETED
    if ended.timeout_ms is None:
        return COMPLETED if ended.request.response is not None else None
    return EXPIRED if ended.at_limit else COMPLETED


def _record_bytes(partitions: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the total size of the partitions' records; None if no partition has the size."""
    sizes = [integer(partition, "recordsSizeInBytes") for partition in partitions if "recordsSizeInBytes" in partition]
    return integer({"recordsSizeInBytes": sum(sizes)}, "recordsSizeInBytes") if sizes else None


def first_error(codes: Set[int]) -> int:
    """Return the error that counts for a response: REQUEST_TIMED_OUT if present, else the least code; 0 for none."""
    error = REQUEST_TIMED_OUT if REQUEST_TIMED_OUT in codes else min(codes - {0}, default=0)
    if not -(2**15) <= error < 2**15:
        raise BadLineError(f"field errorCode is {error}, beyond Kafka's 16 bits")
    return error


def _made(
    kind: str,
    ended: _Ended,
    watches: Iterable[Watch],
    condition: str,
    outcome: str | None,
    size_bytes: int | None = None,
) -> Operation:
    error_code = None if ended.request.response is None else first_error(ended.error_codes)
    merged = tuple(_merge(watches, condition).items())
    return Operation(kind, ended.timeout_ms, merged, condition, outcome, error_code, size_bytes)


def _merge(watches: Iterable[Watch], condition: str) -> dict[str, int | None]:
    """Return each key once, with the progress required of it. A request may name a partition several times."""
    merged: dict[str, int | None] = {}
    for key, required in watches:
        previous = merged.get(key)
        if previous is not None and required is not None:
            required = min(previous, required) if condition == "any" else max(previous, required)
        merged[key] = required if required is not None else previous
    return merged


def _groups(body: Mapping[str, Any] | None, purpose: str) -> list[Watch]:
    if body is None:
        return []
    group_ids = [body["groupId"]] if "groupId" in body else [group["groupId"] for group in items(body, "groups")]
    return [(f"{purpose}-{text(group, 'groupId')}", None) for group in group_ids if group is not None]


def _error_codes(response: Mapping[str, Any] | None) -> frozenset[int]:
    """Return every error code of a response, at any depth."""
    codes: set[int] = set()
    level: list[Any] = [response]
    while level:
        node = level.pop()
        if isinstance(node, dict):
            if "errorCode" in node:
                codes.add(integer(node, "errorCode"))
            level += [value for value in node.values() if isinstance(value, _NESTED)]
        elif isinstance(node, list):
            level += [value for value in node if isinstance(value, _NESTED)]
    return frozenset(codes)


_NESTED: Final = (dict, list)
