"""Produce (key 0, versions 3-13): append batches to partitions that this broker leads.

With acks=all the response waits for the in-sync replicas (K1, K2).
Kafka: `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.log import Appended, LogError
from abeyant.broker.quotas.table import PRODUCE
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.topics import MOVED, leaders_of, name_leader
from abeyant.broker.requests.common.verified_produce import Verified, verify_then
from abeyant.broker.wire.schema import ErrorCode, Message
from abeyant.broker.wire.single import PRODUCE_SINCE, produce_response

FILL: dict[str, dict[str, object]] = {"TopicProduceData": {"name": None, "topic_id": None}}
_ALL = -1
_NONE = ErrorCode.none
# For these errors Kafka omits the log start offset.
_WITHOUT_START = (
    ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id, ErrorCode.not_leader_or_follower,
    ErrorCode.message_too_large, ErrorCode.record_list_too_large, ErrorCode.corrupt_message,
    ErrorCode.kafka_storage_error,
)  # fmt: skip

# Only for these errors Kafka sends the message.
_WITH_MESSAGE = (ErrorCode.corrupt_message, ErrorCode.invalid_txn_state, ErrorCode.not_enough_replicas)

_LENGTH = Struct(">8xi4xb")  # a batch's length and magic
_ATTRIBUTES = Struct(">21xh")
_UP_TO_MAGIC = 17
_LEAST_LENGTH = 14  # of a message in formats before 2
_CODEC, _ZSTD, _ZSTD_SINCE = 7, 4, 7
_TRANSACTIONAL = 16
_ADMIN = "__admin_client"  # the client id that Kafka allows to write to internal topics


class _Result:
    """The result of one partition's append."""

    __slots__ = ("acked", "appended", "error", "index", "message", "partition", "record_errors")

    def __init__(self, index: int) -> None:
        self.index = index
        self.error: ErrorCode = _NONE
        self.message: str | None = None
        self.record_errors: list[Message] = []
        self.partition: Partition | None = None
        self.appended: Appended | None = None
        self.acked: PendingAck | None = None


def handle(call: Call) -> None:
    """Append the records, then respond; with acks=all, wait for the in-sync replicas before that."""
    request = call.request
    acks = request.acks
    if acks not in (_ALL, 0, 1):
        call.answer(error_response(request, ErrorCode.invalid_required_acks))
        return
    if request.transactional_id is None:
        if _any_transactional(request):
            call.refuse(ErrorCode.transactional_id_authorization_failed)
        else:
            _append_all(call, None)
    elif call.broker.cluster.settings.value("transaction.partition.verification.enable", call.broker.id):
        verify_then(call, lambda verified: _append_all(call, verified))
    else:
        _append_all(call, None)


def _append_all(call: Call, verified: Verified | None) -> None:
    request = call.request
    acks = request.acks
    topics = []
    waiting = []
    for topic in request.topic_data:
        results = []
        for data in topic.partition_data:
            result = _append(call, topic, data, acks, verified)
            if acks == _ALL and result.appended is not None:
                assert result.partition is not None
                result.acked = PendingAck(result.partition, result.appended.last_offset + 1)
                waiting.append(result.acked)
            results.append(result)
        topics.append((topic, results))
    if all(not ack.poll() for ack in waiting):
        # Answer consumers' long polls first: they wait for the followers, which fetch in this turn.
        call.broker.cluster.network.send_last(call.broker, _answer, call, topics)
    else:
        timeout = request.timeout.total_seconds()
        wait_for_acks(call.broker, waiting, timeout, call.client_id, call.since, lambda: _answer(call, topics))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(
        responses=[
            Message(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_response(data.index, error, None, None) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ],
    )


def _append(call: Call, topic: Any, data: Any, acks: int, verified: Verified | None) -> _Result:
    result = _Result(data.index)
    records = data.records or b""
    try:
        partition = call.partition(topic.name, topic.topic_id, data.index)
        _check_single_batch(records, call.version)
        if partition.internal and call.client_id != _ADMIN:
            raise ApiError(ErrorCode.invalid_topic_exception)
        if verified is not None:
            verified.require(partition)
        result.partition = partition
        if verified is not None:
            verified.check(partition, records)
        result.appended = partition.append(records, all_in_sync=acks == _ALL)
    except ApiError as error:
        result.error = error.code
        if error.code in _WITH_MESSAGE:
            result.message = error.message
    except LogError as error:
        result.error = ErrorCode(error.code)
        errors = getattr(error, "record_errors", ())
        if errors:  # else Kafka sends no message
            result.message = str(error)
        result.record_errors = [
            Message(batch_index=index, batch_index_error_message=message) for index, message in errors
        ]
    return result


def _check_single_batch(records: bytes, version: int) -> None:
    """Raise ApiError unless `records` is one whole batch, of format 2. An incomplete second batch is ignored.

    Kafka: `ProduceRequest.validateRecords`.
    """
    size = len(records)
    if size > _UP_TO_MAGIC and version >= _ZSTD_SINCE:
        length, magic = _LENGTH.unpack_from(records)
        if magic == 2 and length >= _LEAST_LENGTH and length + 12 == size:
            return
    end = _batch_end(records, 0)
    if end is None or records[_UP_TO_MAGIC - 1] != 2:
        raise ApiError(ErrorCode.invalid_record)
    if version < _ZSTD_SINCE and _ATTRIBUTES.unpack_from(records)[0] & _CODEC == _ZSTD:
        raise ApiError(ErrorCode.unsupported_compression_type)
    if end != len(records) and _batch_end(records, end) is not None:
        raise ApiError(ErrorCode.invalid_record)


def _batch_end(records: bytes, at: int) -> int | None:
    """Return the end position of the batch at `at`; None if it is incomplete. Raises ApiError for an invalid batch."""
    left = len(records) - at
    if left < _UP_TO_MAGIC:
        return None
    length, magic = _LENGTH.unpack_from(records, at)
    if length < _LEAST_LENGTH:
        message = f"Record size {length} is less than the minimum record overhead ({_LEAST_LENGTH})"
        raise ApiError(ErrorCode.corrupt_message, message)
    if not 0 <= magic <= 2:
        raise ApiError(ErrorCode.corrupt_message, f"Invalid magic found in record: {magic}")
    return at + 12 + length if 12 + length <= left else None


def _any_transactional(request: Any) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records
                and len(records) >= _ATTRIBUTES.size
                and records[_UP_TO_MAGIC - 1] == 2
                and _ATTRIBUTES.unpack_from(records)[0] & _TRANSACTIONAL
            ):
                return True
    return False


def _answer(call: Call, topics: list[tuple[Any, list[_Result]]]) -> None:
    if call.is_plain and _answer_single(call, topics):
        return
    if call.broker.client_quotas.table.enabled:
        call.charge(PRODUCE, call.size)
    failed = any(_error(result) is not _NONE for _, results in topics for result in results)
    if call.request.acks == 0:
        if failed:
            # Without a response, this is the only way to make the client refresh its metadata.
            call.connection.close()
        else:
            call.done()
        return
    moved = [
        (topic.name, topic.topic_id, result.index)
        for topic, results in (topics if failed else ())
        for result in results
        if _error(result) in MOVED
    ]
    responses = [
        Message(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[_partition_response(call, topic, result) for result in results],
        )
        for topic, results in topics
    ]
    call.answer(Message(responses=responses, node_endpoints=leaders_of(call, moved) if moved else ()))


def _answer_single(call: Call, topics: list[tuple[Any, list[_Result]]]) -> bool:
    """Send a packed response if this is a successful append to a single partition. Return whether it was sent."""
    if len(topics) != 1 or len(topics[0][1]) != 1 or call.version < PRODUCE_SINCE or not call.request.acks:
        return False
    (result,) = topics[0][1]
    partition, appended = result.partition, result.appended
    if partition is None or appended is None or _error(result) is not _NONE:
        return False
    topic = partition.wire_name if topics[0][0].topic_id is None else partition.wire_id
    time, start = max(appended.append_time_ms, -1), partition.log.start_offset
    call.answer_encoded(produce_response(call.correlation_id, topic, result.index, appended.base_offset, time, start))
    return True


def _error(result: _Result) -> ErrorCode:
    return result.error if result.acked is None else result.acked.error


def _partition_response(call: Call, topic: Any, result: _Result) -> Message:
    error = _error(result)
    response = _response(result.index, error, result.appended, None if error in _WITHOUT_START else result.partition)
    response.error_message = result.message
    response.record_errors = result.record_errors
    if error in MOVED:
        name_leader(response, call, topic.name, topic.topic_id, result.index)
    return response


def _response(index: int, error: ErrorCode, appended: Appended | None, partition: Partition | None) -> Message:
    time = -1 if appended is None else appended.append_time_ms
    return Message(
        index=index,
        error_code=error,
        base_offset=-1 if appended is None else appended.base_offset,
        log_append_time=None if time < 0 else time,  # for a duplicate it is the client's, which may be in any year
        log_start_offset=-1 if partition is None else partition.log.start_offset,
        record_errors=(),
    )
