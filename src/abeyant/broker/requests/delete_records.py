"""DeleteRecords (key 21, versions 0-2): move the start of logs, and wait until that of every replica has moved (K6).

Kafka: `KafkaApis.handleDeleteRecordsRequest`, `ReplicaManager.deleteRecords`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.delayed.operation import PartitionsOperation
from abeyant.broker.errors import ApiError
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


class PendingDelete:
    """One partition of the request, and its result."""

    __slots__ = ("error", "low_watermark", "partition", "pending", "required")

    def __init__(self, partition: Partition, required: int) -> None:
        """Wait until the partition's logs start at `required` or later."""
        self.partition = partition
        self.required = required
        self.pending = True
        self.low_watermark = -1
        self.error = ErrorCode.request_timed_out  # the result if the operation expires

    def poll(self) -> bool:
        """Update the result; return whether the partition is still pending."""
        if self.pending:
            if not self.partition.leads:
                self.pending = False
                self.error = ErrorCode.not_leader_or_follower
            else:
                self.low_watermark = self.partition.low_watermark
                if self.low_watermark >= self.required:
                    self.pending = False
                    self.error = ErrorCode.none
        return self.pending


class DelayedDeleteRecords(PartitionsOperation):
    """Waits in the DeleteRecords purgatory, until the log start of every replica has moved."""

    __slots__ = ()

    kind = "DeleteRecords"


def handle(call: Call) -> None:
    """Delete, then wait."""
    topics: list[tuple[str, list[tuple[int, PendingDelete | ErrorCode]]]] = []
    for topic in call.request.topics:
        topics.append(
            (topic.name, [(query.partition_index, _delete(call, topic, query)) for query in topic.partitions])
        )
    waiting = [one for _, results in topics for _, one in results if isinstance(one, PendingDelete)]
    if not waiting:
        _answer(call, topics)
        return
    operation = DelayedDeleteRecords(
        call.request.timeout.total_seconds(), waiting, call.client_id, call.since, lambda: _answer(call, topics)
    )
    call.broker.delete_records_purgatory.try_complete_else_watch(operation, [one.partition for one in waiting])


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return Message(
        topics=[
            Message(
                name=topic.name,
                partitions=[_response(query.partition_index, error, -1) for query in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _delete(call: Call, topic: Any, query: Any) -> PendingDelete | ErrorCode:
    try:
        partition = call.partition(topic.name, None, query.partition_index)
        if not partition.log.config.delete and partition.log.config.compact:
            raise ApiError(ErrorCode.policy_violation)
        return PendingDelete(partition, partition.delete_records(query.offset))
    except ApiError as error:
        return error.code


def _answer(call: Call, topics: list[tuple[str, list[tuple[int, PendingDelete | ErrorCode]]]]) -> None:
    call.answer(
        Message(
            topics=[
                Message(name=name, partitions=[_responded(index, one) for index, one in results])
                for name, results in topics
            ],
        )
    )


def _responded(index: int, one: PendingDelete | ErrorCode) -> Message:
    if isinstance(one, ErrorCode):
        return _response(index, one, -1)
    return _response(index, one.error, one.low_watermark)


def _response(index: int, error: ErrorCode, low_watermark: int) -> Message:
    return Message(partition_index=index, error_code=error, low_watermark=low_watermark)
