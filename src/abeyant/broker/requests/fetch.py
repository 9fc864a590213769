"""Fetch (key 1, versions 4-18): read records for consumers, at once or when `min.bytes` are available (K3, K4).

Followers in this process fetch through replica/session.py instead.
Kafka: `KafkaApis.handleFetchRequest`, `ReplicaManager.fetchMessages`.
A consumer in another rack than the leader is redirected to a replica in its own rack (KIP-392).
Not implemented: fetches by brokers of other processes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from abeyant.broker.delayed.fetch import DelayedFetch, PendingFetch
from abeyant.broker.errors import ApiError
from abeyant.broker.log import LogError
from abeyant.broker.partition_state import NO_LEADER
from abeyant.broker.quotas.table import FETCH
from abeyant.broker.replica.partition import Partition
from abeyant.broker.replica.selection import preferred_replica
from abeyant.broker.requests.common.allowed import may_read
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.fetch_sessions import NO_SESSION, FetchSession, Key
from abeyant.broker.requests.common.topics import MOVED, leaders_of, name_leader
from abeyant.broker.wire.schema import ErrorCode, Message
from abeyant.broker.wire.single import FETCH_SINCE, fetch_response

_NO_REPLICA = Message(replica_id=-1, replica_epoch=-1)
FILL: dict[str, dict[str, object]] = {
    "FetchRequest": {
        "replica_id": -1, "session_id": 0, "session_epoch": -1, "forgotten_topics_data": (), "rack_id": "",
        "cluster_id": None, "replica_state": _NO_REPLICA,
    },
    "FetchTopic": {"topic": None, "topic_id": None},
    "ForgottenTopic": {"topic": None, "topic_id": None},
    "FetchPartition": {
        "log_start_offset": -1, "current_leader_epoch": -1, "last_fetched_epoch": -1, "replica_directory_id": None,
        "high_watermark": (1 << 63) - 1,
    },
}  # fmt: skip
_UNCOMMITTED, _COMMITTED = 0, 1
_WITH_IDS = 13  # the version from which requests have topic ids
_FROM_FOLLOWERS = 11  # the version from which consumers may read from any replica (KIP-392)
# Kafka detects these errors before it reads; then the list of aborted transactions is empty instead of null.
_UNKNOWN = (
    ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id, ErrorCode.inconsistent_topic_id,
    ErrorCode.topic_authorization_failed, ErrorCode.invalid_topic_exception,
)  # fmt: skip


class PartitionQuery:
    """One partition of a fetch request."""

    __slots__ = ("index", "last_epoch", "leader_epoch", "max_bytes", "name", "offset", "topic_id")

    def __init__(self, name: str | None, topic_id: uuid.UUID | None, query: Any) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index: int = query.partition
        self.offset: int = query.fetch_offset
        self.max_bytes: int = query.partition_max_bytes
        self.leader_epoch: int = query.current_leader_epoch
        self.last_epoch: int = query.last_fetched_epoch

    @property
    def key(self) -> Key:
        """Return the partition's key in a fetch session."""
        return self.name, self.topic_id, self.index


class PartitionResult:
    """The result of reading one partition."""

    __slots__ = (
        "aborted", "diverging", "error", "high_watermark", "partition", "preferred", "query", "records", "stable",
        "start",
    )  # fmt: skip

    def __init__(self, query: PartitionQuery) -> None:
        self.query = query
        self.partition: Partition | None = None
        self.error: ErrorCode = ErrorCode.none
        self.records = b""
        self.high_watermark = self.stable = self.start = -1
        self.preferred = NO_LEADER
        self.aborted: list[Message] | None = None
        self.diverging: Message | None = None

    @property
    def is_news(self) -> bool:
        """Return whether a response in a session must include this partition."""
        return bool(self.records) or self.error is not ErrorCode.none or self.ends_wait

    @property
    def ends_wait(self) -> bool:
        """Return whether to respond without records: the client has to truncate, or to fetch from another replica."""
        return self.diverging is not None or self.preferred != NO_LEADER


class FetchReader:
    """Reads the partitions of a fetch: at once, and `again` after a wait."""

    __slots__ = ("_call", "_committed", "_from_a_replica", "_rack", "max_bytes", "min_bytes", "queries")

    def __init__(self, call: Call, queries: list[PartitionQuery]) -> None:
        request = call.request
        self._call = call
        self._committed = request.isolation_level == _COMMITTED
        # Replicas in this process fetch through replica/session.py, and there are no others.
        self._from_a_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
        settings = call.broker.cluster.settings
        self._rack: str = request.rack_id if settings["replica.selector.class"] else ""
        self.max_bytes = min(request.max_bytes, settings["fetch.max.bytes"])
        self.min_bytes = request.min_bytes
        if call.broker.client_quotas.table.enabled:
            most = call.broker.client_quotas.most(FETCH, call.connection.user, call.client_id)
            self.max_bytes = int(min(self.max_bytes, most))
            self.min_bytes = min(self.min_bytes, self.max_bytes)
        self.queries = queries

    @property
    def is_plain(self) -> bool:
        """Return whether neither ACLs nor a replica selector apply to this fetch."""
        return not (self._rack or self._call.broker.cluster.controller.acls.enabled)

    def read(self, *, in_session: bool = False, again: bool = False) -> list[PartitionResult]:
        """Read the partitions, within the request's limits, which the first batch may exceed (KIP-74).

        After a wait (`again`) and in a fetch session, an unknown topic id gets UNKNOWN_TOPIC_OR_PARTITION, as names do.
        """
        remaining = self.max_bytes
        min_one = True
        results = []
        for query in self.queries:
            result = PartitionResult(query)
            try:
                self._read(result, min(query.max_bytes, remaining), min_one)
            except ApiError as error:
                result.error = error.code
                if (again or in_session) and error.code is ErrorCode.unknown_topic_id:
                    result.error = ErrorCode.unknown_topic_or_partition
                if not again and error.code in _UNKNOWN:
                    result.aborted = []
            except LogError as error:
                result.error = ErrorCode(error.code)
            if result.records:
                min_one = False
                remaining = max(remaining - len(result.records), 0)
            results.append(result)
        return results

    def must_wait(self, results: list[PartitionResult]) -> list[PendingFetch] | None:
        """Return the partitions that the fetch has to wait for; None if it has to respond now."""
        request = self._call.request
        if request.max_wait.total_seconds() <= 0 or not results:
            return None
        size = 0
        for result in results:
            if result.error is not ErrorCode.none or result.ends_wait:
                return None
            size += len(result.records)
        if size >= self.min_bytes:
            return None
        return [
            PendingFetch(result.partition, result.query.offset, result.query.max_bytes, self._committed)
            for result in results
            if result.partition is not None
        ]

    def _read(self, result: PartitionResult, max_bytes: int, min_one: bool) -> None:
        query = result.query
        if max_bytes < 0:
            raise ApiError(ErrorCode.unknown_server_error)
        if not may_read(self._call, query.name, query.topic_id):
            raise ApiError(ErrorCode.topic_authorization_failed)
        partition = self._call.partition(query.name, query.topic_id, query.index)
        if self._from_a_replica:
            raise ApiError(ErrorCode.not_leader_or_follower)
        partition.check_leader(query.leader_epoch, leader_only=self._call.version < _FROM_FOLLOWERS)
        if self._rack and partition.leads:
            result.preferred = preferred_replica(partition, self._rack, query.offset)
            if result.preferred != NO_LEADER:
                self._set_marks(result, partition)
                return
        log = partition.log
        if query.last_epoch >= 0 and self._diverges(result, partition):
            return
        mark = partition.high_watermark
        stable = partition.last_stable_offset
        end = stable if self._committed else mark
        if (
            query.offset < log.start_offset or query.offset > log.end_offset
        ):  # between `end` and the log end, return nothing
            raise ApiError(ErrorCode.offset_out_of_range)
        result.partition = partition
        if query.offset < end:
            result.records = log.read(query.offset, max_bytes, end, min_one=min_one)
        result.high_watermark, result.stable, result.start = mark, stable, log.start_offset
        if self._committed:
            result.aborted = self._aborted(partition, query.offset, len(result.records)) if result.records else []

    def _diverges(self, result: PartitionResult, partition: Partition) -> bool:
        """Return whether the reader's last record is not in this log (KIP-320, KIP-595)."""
        query = result.query
        epoch, end = partition.log.epoch_end(query.last_epoch)
        if epoch == -1 or end == -1 or query.offset < partition.log.start_offset:
            raise ApiError(ErrorCode.offset_out_of_range)
        if epoch >= query.last_epoch and end >= query.offset:
            return False
        result.diverging = Message(epoch=epoch, end_offset=end)
        self._set_marks(result, partition)
        return True

    def _set_marks(self, result: PartitionResult, partition: Partition) -> None:
        result.partition = partition
        result.high_watermark, result.stable = partition.high_watermark, partition.last_stable_offset
        result.start = partition.log.start_offset

    def _aborted(self, partition: Partition, start: int, size: int) -> list[Message]:
        log = partition.log
        if not log.producers.has_aborted:
            return []
        return [
            Message(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
            for transaction in log.producers.aborted_between(start, log.end_of_read(start, size))
        ]


def handle(call: Call) -> None:
    """Read the partitions, then respond, or wait for more records."""
    request = call.request
    if request.isolation_level not in (_UNCOMMITTED, _COMMITTED):
        raise ApiError(ErrorCode.unknown_server_error)
    try:
        session, queries = _session_and_queries(call)
    except ApiError as error:
        call.answer(Message(error_code=error.code))
        return
    reader = FetchReader(call, queries)
    results = reader.read(in_session=session is not None)
    pending = reader.must_wait(results)
    if pending is None:
        _answer(call, results, session)
        return
    operation = DelayedFetch(
        request.max_wait.total_seconds(),
        reader.min_bytes,
        pending,
        call.client_id,
        call.since,
        lambda: _answer_waited(call, reader, pending, session),
    )
    call.broker.fetch_purgatory.try_complete_else_watch(operation, [fetch.partition for fetch in pending])


def _answer_waited(call: Call, reader: FetchReader, pending: list[PendingFetch], session: FetchSession | None) -> None:
    """Read again after the wait, and respond: in the packed form if only a single partition has news."""
    if call.version >= FETCH_SINCE and call.is_plain and reader.is_plain:
        index = _only_news(call, reader, pending, session)
        records = None if index is None else pending[index].read(reader.max_bytes)
        if index is not None and records is not None:
            fetch = pending[index]
            partition = fetch.partition
            mark, start = partition.high_watermark, partition.log.start_offset
            number = NO_SESSION
            if session is not None:
                number = session.id
                session.keep(reader.queries[index].key, (mark, start), moves=True)
            _send_single(call, partition, number, (mark, mark, start), records, fetch.committed)
            return
    _answer(call, reader.read(again=True), session)


def _only_news(
    call: Call, reader: FetchReader, pending: list[PendingFetch], session: FetchSession | None
) -> int | None:
    """Return the index of the one partition that the response has to include; None for no or several partitions."""
    if len(pending) == 1:
        return 0 if session is None or reader.queries[0].key in session.partitions else None
    if session is None or call.request.session_epoch <= 0:  # a full fetch gets all partitions
        return None
    only_index = None
    for index, fetch in enumerate(pending):
        cached_partition = session.partitions.get(reader.queries[index].key)
        if cached_partition is None:
            return None
        partition = fetch.partition
        if not fetch.has_nothing or cached_partition.last_marks != (
            partition.high_watermark,
            partition.log.start_offset,
        ):
            if only_index is not None:
                return None
            only_index = index
    return only_index


def _session_and_queries(call: Call) -> tuple[FetchSession | None, list[PartitionQuery]]:
    """Return the session, if any, and the partitions to read. Raises ApiError."""
    request = call.request
    queries = [
        PartitionQuery(topic.topic, topic.topic_id, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(queries) > 1:  # if a partition is repeated, its last query counts
        queries = list({query.key: query for query in queries}.values())
    forgotten = [
        (topic.topic, topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    broker = call.broker
    session = broker.fetch_sessions.session_for(
        request, queries, forgotten, broker.now(), uses_ids=call.version >= _WITH_IDS
    )
    if session is not None:
        queries = [partition.query for partition in session.partitions.values()]
    return session, queries


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    results = []
    for topic in request.topics:
        for partition in topic.partitions:
            result = PartitionResult(PartitionQuery(topic.topic, topic.topic_id, partition))
            result.error = error
            result.aborted = []
            results.append(_response(result, None))
    return Message(error_code=error, responses=_by_topic(results))


def _answer(call: Call, results: list[PartitionResult], session: FetchSession | None) -> None:
    number = NO_SESSION
    in_session = session if session is not None and session.partitions else None
    news = results if in_session is None else in_session.changes(results)
    if in_session is not None:
        number = in_session.id
        if call.request.session_epoch > 0:  # a full fetch gets all partitions
            results = news
    if _is_throttled(call, results, number):
        # As in Kafka: send no partitions and record no marks. A session begun by this request ends.
        if call.request.session_epoch <= 0:
            call.broker.fetch_sessions.end(number)
            number = NO_SESSION
        call.answer(Message(session_id=number, responses=()))
        return
    if in_session is not None:
        in_session.sent(news)
    if call.is_plain and _answer_single(call, results, number):
        return
    responses = _by_topic([_response(result, call) for result in results])
    moved = [result.query.key for result in results if result.error in MOVED]
    leaders = leaders_of(call, moved) if moved else ()
    call.answer(Message(error_code=ErrorCode.none, session_id=number, responses=responses, node_endpoints=leaders))


def _answer_single(call: Call, results: list[PartitionResult], session: int) -> bool:
    """Send a packed response if the results are one partition's records and offsets. Return whether it was sent."""
    if len(results) != 1 or call.version < FETCH_SINCE:
        return False
    (result,) = results
    partition = result.partition
    if partition is None or result.error is not ErrorCode.none or result.ends_wait or result.aborted:
        return False
    marks = result.high_watermark, result.stable, result.start
    _send_single(call, partition, session, marks, result.records, result.aborted is not None)
    return True


def _send_single(
    call: Call, partition: Partition, session: int, marks: tuple[int, int, int], records: bytes, committed: bool
) -> None:
    """Send a partition's records in the packed form of `wire/single.py`."""
    topic = partition.wire_id if call.version >= _WITH_IDS else partition.wire_name
    call.answer_encoded(
        fetch_response(call.correlation_id, session, topic, partition.index, marks, records, committed=committed)
    )


def _is_throttled(call: Call, results: list[PartitionResult], number: int) -> bool:
    """Charge the client's quotas for the response's bytes and the time. Return whether the client is throttled."""
    quotas = call.broker.client_quotas
    if quotas.table.enabled:
        size = call.size_of(
            Message(session_id=number, responses=_by_topic([_response(result, None) for result in results]))
        )
        call.charge(FETCH, size)
        call.charge_time()
        if call.throttle_seconds:
            quotas.refund(FETCH, call.connection.user, call.client_id, size)
    return call.throttle_seconds > 0


def _response(result: PartitionResult, call: Call | None) -> tuple[PartitionQuery, Message]:
    response = Message(
        partition_index=result.query.index,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.stable,
        log_start_offset=result.start,
        aborted_transactions=result.aborted,
        preferred_read_replica=result.preferred,
        records=result.records,
    )
    if result.diverging is not None:
        response.diverging_epoch = result.diverging
    if call is not None and result.error in MOVED:
        name_leader(response, call, *result.query.key)
    return result.query, response


def _by_topic(results: Iterable[tuple[PartitionQuery, Message]]) -> list[Message]:
    topics: dict[tuple[str | None, uuid.UUID | None], Message] = {}
    for query, response in results:
        topic = topics.get((query.name, query.topic_id))
        if topic is None:
            topic = Message(topic=query.name, topic_id=query.topic_id, partitions=[])
            topics[query.name, query.topic_id] = topic
        topic.partitions.append(response)
    return list(topics.values())
