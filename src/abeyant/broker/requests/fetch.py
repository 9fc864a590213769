"""Fetch (key 1, versions 4-18): read records for consumers, at once or when `min.bytes` are there (K3, K4).

Followers in this process do not use it; they fetch through replica/session.py.
Kafka: `KafkaApis.handleFetchRequest`, `ReplicaManager.fetchMessages`.
Not implemented: fetches by brokers of other processes, a preferred read replica by rack, throttling by quotas.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.errors import ApiError
from abeyant.broker.log import LogError
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.fetch_sessions import NO_SESSION, FetchSession, Key
from abeyant.broker.requests.common.topics import MOVED, current_leader, leaders_of
from abeyant.broker.wire.schema import OMIT, ErrorCode, Message

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
_WITH_IDS = 13  # the version from which topics are named by their ids
_FROM_FOLLOWERS = 11  # the version from which consumers may read from any replica (KIP-392)
# Kafka finds these before it reads, and such answers have an empty list where others have none.
_UNKNOWN = (
    ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id, ErrorCode.inconsistent_topic_id,
    ErrorCode.topic_authorization_failed, ErrorCode.invalid_topic_exception,
)  # fmt: skip


class Asked:
    """One partition of a fetch."""

    __slots__ = ("index", "last_epoch", "leader_epoch", "max_bytes", "name", "offset", "topic_id")

    def __init__(self, name: str | None, topic_id: uuid.UUID | None, asked: Any) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index: int = asked.partition
        self.offset: int = asked.fetch_offset
        self.max_bytes: int = asked.partition_max_bytes
        self.leader_epoch: int = asked.current_leader_epoch
        self.last_epoch: int = asked.last_fetched_epoch

    @property
    def key(self) -> Key:
        """Return the key of the partition in a fetch session."""
        return self.name, self.topic_id, self.index


class Got:
    """What a read has brought for one partition."""

    __slots__ = ("aborted", "asked", "diverging", "error", "high_watermark", "partition", "records", "stable", "start")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.partition: Partition | None = None
        self.error: ErrorCode = ErrorCode.none
        self.records = b""
        self.high_watermark = self.stable = self.start = -1
        self.aborted: list[Message] | None = None
        self.diverging: Message = OMIT

    @property
    def is_news(self) -> bool:
        """Return whether a session's response has it in any case."""
        return bool(self.records) or self.error is not ErrorCode.none or self.diverging is not OMIT


class Awaited:
    """One partition of a fetch that waits: its offset, and how many bytes are available from there."""

    __slots__ = ("_counted_to", "_leader_epoch", "_leads", "_max_bytes", "_offset", "bytes", "committed", "partition")

    def __init__(self, partition: Partition, offset: int, max_bytes: int, committed: bool) -> None:
        self.partition = partition
        self.committed = committed
        self.bytes = 0
        self._offset = offset
        self._max_bytes = max_bytes
        self._leader_epoch = partition.state.leader_epoch
        self._leads = partition.leads
        self._counted_to = offset

    def poll(self) -> bool:
        """Count the bytes that were added. Return False where the fetch has to end now, since reading will fail."""
        partition = self.partition
        if partition.leads is not self._leads or partition.state.leader_epoch != self._leader_epoch:
            return False
        end = partition.last_stable_offset if self.committed else partition.high_watermark
        if end != self._counted_to:
            if end < self._offset or self._offset < partition.log.start_offset:
                return False  # truncated, or deleted up to beyond the offset
            self.bytes = min(partition.log.bytes_between(self._offset, end), self._max_bytes)
            self._counted_to = end
        return self._offset >= partition.log.start_offset


class DelayedFetch(BrokerOperation):
    """Waits in the Fetch purgatory, keyed by its partitions."""

    __slots__ = ("_answer", "_awaited", "_min_bytes")

    kind = "Fetch"

    def __init__(
        self,
        timeout: float,
        min_bytes: int,
        awaited: list[Awaited],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait for at most `timeout` seconds; `answer` is called once, and reads the records."""
        super().__init__(timeout, client_id, since)
        self._min_bytes = min_bytes
        self._awaited = awaited
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return all partitions of the fetch."""
        return ((awaited.partition.topic, awaited.partition.index) for awaited in self._awaited)

    def try_complete(self) -> bool:
        """Complete when there are `min_bytes`. Only partitions that have grown are counted. Kafka: `DelayedFetch`."""
        total = 0
        for awaited in self._awaited:
            if not awaited.poll():
                return self.force_complete()
            total += awaited.bytes
        return total >= self._min_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Read, and answer."""
        self._answer()


class Reading:
    """A fetch in work: reads all of its partitions, now and again when it has waited."""

    __slots__ = ("_call", "_committed", "_from_a_replica", "_max_bytes", "asked")

    def __init__(self, call: Call, asked: list[Asked]) -> None:
        request = call.request
        self._call = call
        self._committed = request.isolation_level == _COMMITTED
        # Replicas in this process do not come this way, and there are no others.
        self._from_a_replica = max(request.replica_id, request.replica_state.replica_id) >= 0
        self._max_bytes = min(request.max_bytes, call.broker.cluster.settings["fetch.max.bytes"])
        self.asked = asked

    def read(self, *, known: bool = False, again: bool = False) -> list[Got]:
        """Read within the request's limits; the first batch may exceed them (KIP-74).

        `again` when it has waited, `known` when it goes on with a session: a topic that is gone is missed by its name.
        """
        left = self._max_bytes
        min_one = True
        results = []
        for asked in self.asked:
            got = Got(asked)
            try:
                self._read(got, min(asked.max_bytes, left), min_one)
            except ApiError as error:
                got.error = error.code
                if (again or known) and error.code is ErrorCode.unknown_topic_id:
                    got.error = ErrorCode.unknown_topic_or_partition
                if not again and error.code in _UNKNOWN:
                    got.aborted = []
            except LogError as error:
                got.error = ErrorCode(error.code)
            if got.records:
                min_one = False
                left = max(left - len(got.records), 0)
            results.append(got)
        return results

    def waits(self, results: list[Got]) -> list[Awaited] | None:
        """Return what the fetch has to wait for; None to answer it now."""
        request = self._call.request
        if request.max_wait.total_seconds() <= 0 or not results:
            return None
        there = 0
        for got in results:
            if got.error is not ErrorCode.none or got.diverging is not OMIT:
                return None
            there += len(got.records)
        if there >= request.min_bytes:
            return None
        return [
            Awaited(got.partition, got.asked.offset, got.asked.max_bytes, self._committed)
            for got in results
            if got.partition is not None
        ]

    def _read(self, got: Got, max_bytes: int, min_one: bool) -> None:
        asked = got.asked
        if max_bytes < 0:
            raise ApiError(ErrorCode.unknown_server_error)
        partition = self._call.partition(asked.name, asked.topic_id, asked.index)
        if self._from_a_replica:
            raise ApiError(ErrorCode.not_leader_or_follower)
        partition.check_leader(asked.leader_epoch, leader_only=self._call.version < _FROM_FOLLOWERS)
        log = partition.log
        if asked.last_epoch >= 0 and self._diverges(got, partition):
            got.partition = partition
            return
        mark = partition.high_watermark
        stable = partition.last_stable_offset
        end = stable if self._committed else mark
        if asked.offset < log.start_offset or asked.offset > log.end_offset:  # above the mark there is nothing yet
            raise ApiError(ErrorCode.offset_out_of_range)
        got.partition = partition
        if asked.offset < end:
            got.records = log.read(asked.offset, max_bytes, end, min_one=min_one)
        got.high_watermark, got.stable, got.start = mark, stable, log.start_offset
        if self._committed:
            got.aborted = self._aborted(partition, asked.offset, len(got.records)) if got.records else []

    def _diverges(self, got: Got, partition: Partition) -> bool:
        """Return whether the reader's last record is of another history than this log's (KIP-320, KIP-595)."""
        asked = got.asked
        epoch, end = partition.log.epoch_end(asked.last_epoch)
        if epoch == -1 or end == -1 or asked.offset < partition.log.start_offset:
            raise ApiError(ErrorCode.offset_out_of_range)
        if epoch >= asked.last_epoch and end >= asked.offset:
            return False
        got.diverging = Message(epoch=epoch, end_offset=end)
        got.high_watermark, got.stable = partition.high_watermark, partition.last_stable_offset
        got.start = partition.log.start_offset
        return True

    def _aborted(self, partition: Partition, start: int, size: int) -> list[Message]:
        log = partition.log
        if not log.has_aborted_transactions:
            return []
        return [
            Message(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.aborted_transactions(start, log.end_of_read(start, size))
        ]


def handle(call: Call) -> None:
    """Read, then answer or wait."""
    request = call.request
    if request.isolation_level not in (_UNCOMMITTED, _COMMITTED):
        call.answer(refused(request, ErrorCode.unknown_server_error))
        return
    try:
        session, asked = _in_session(call)
    except ApiError as error:
        call.answer(_fetched(error.code, NO_SESSION, []))
        return
    reading = Reading(call, asked)
    results = reading.read(known=session is not None)
    awaited = reading.waits(results)
    if awaited is None:
        _answer(call, results, session)
        return
    operation = DelayedFetch(
        request.max_wait.total_seconds(),
        request.min_bytes,
        awaited,
        call.client_id,
        call.since,
        lambda: _answer(call, reading.read(again=True), session),
    )
    call.broker.fetch_purgatory.try_complete_else_watch(operation, [one.partition for one in awaited])


def _in_session(call: Call) -> tuple[FetchSession | None, list[Asked]]:
    """Return the session, if there is one, and the partitions to read. Raises ApiError."""
    request = call.request
    # What is asked for twice is read once, as it was asked for last.
    asked = list(
        {
            (topic.topic, topic.topic_id, one.partition): Asked(topic.topic, topic.topic_id, one)
            for topic in request.topics
            for one in topic.partitions
        }.values()
    )
    forgotten = [
        (topic.topic, topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    broker = call.broker
    session = broker.fetch_sessions.session_for(
        request, asked, forgotten, broker.now(), uses_ids=call.version >= _WITH_IDS
    )
    if session is not None:
        asked = [kept.asked for kept in session.partitions.values()]
    return session, asked


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    results = []
    for topic in request.topics:
        for partition in topic.partitions:
            got = Got(Asked(topic.topic, topic.topic_id, partition))
            got.error = error
            got.aborted = []
            results.append(_response(got, None))
    return _fetched(error, NO_SESSION, _by_topic(results))


def _answer(call: Call, results: list[Got], session: FetchSession | None) -> None:
    number = NO_SESSION
    if session is not None and session.partitions:
        number = session.id
        news = session.select(results)
        if call.request.session_epoch > 0:  # a full fetch is answered in full
            results = news
    response = _fetched(ErrorCode.none, number, _by_topic([_response(got, call) for got in results]))
    if moved := [got.asked.key for got in results if got.error in MOVED]:
        response.node_endpoints = leaders_of(call, moved)
    call.answer(response)


def _fetched(error: ErrorCode, session: int, topics: list[Message]) -> Message:
    return Message(
        error_code=error, session_id=session, responses=topics, node_endpoints=()
    )  # fmt: skip


def _response(got: Got, call: Call | None) -> tuple[Asked, Message]:
    return got.asked, Message(
        partition_index=got.asked.index,
        error_code=got.error,
        high_watermark=got.high_watermark,
        last_stable_offset=got.stable,
        log_start_offset=got.start,
        diverging_epoch=got.diverging,
        current_leader=current_leader(call, *got.asked.key) if call is not None and got.error in MOVED else OMIT,
        snapshot_id=OMIT,
        aborted_transactions=got.aborted,
        preferred_read_replica=-1,
        records=got.records,
    )


def _by_topic(results: Iterable[tuple[Asked, Message]]) -> list[Message]:
    topics: dict[tuple[str | None, uuid.UUID | None], Message] = {}
    for asked, response in results:
        topic = topics.get((asked.name, asked.topic_id))
        if topic is None:
            topic = Message(topic=asked.name, topic_id=asked.topic_id, partitions=[])
            topics[asked.name, asked.topic_id] = topic
        topic.partitions.append(response)
    return list(topics.values())
