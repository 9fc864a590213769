"""DeleteRecords (key 21, versions 0-2): advance log starts, and wait until every replica has followed (K6).

Kafka: `KafkaApis.handleDeleteRecordsRequest`, `ReplicaManager.deleteRecords`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.delayed.operation import PartitionsOperation
from abeyant.broker.errors import ApiError
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import by_topic
from abeyant.broker.wire.schema import ErrorCode, Message


class PendingDelete:
    """One partition of the request, which waits for its replicas, and its result."""

    __slots__ = ("error", "low_watermark", "partition", "pending", "required", "response")

    def __init__(self, partition: Partition, required: int, response: Message) -> None:
        """Wait until all replicas' logs start at `required` or later. `response` gets the result."""
        self.partition = partition
        self.required = required
        self.response = response
        self.pending = True
        self.low_watermark = -1
        self.error = ErrorCode.request_timed_out  # the result if the operation expires

    def poll(self) -> bool:
        """Update the result. Return whether the partition is still pending."""
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
    """The wait for every replica's log start to advance, in the DeleteRecords purgatory."""

    __slots__ = ()

    kind = "DeleteRecords"


def handle(call: Call) -> None:
    """Advance the log starts, then wait for the replicas."""
    request = call.request
    waiting: list[PendingDelete] = []
    topics = by_topic(request.topics, partial(_delete, call, waiting), _failed)

    def answer() -> None:
        for one in waiting:
            one.response.error_code, one.response.low_watermark = one.error, one.low_watermark
        call.answer(Message(topics=topics))

    if not waiting:
        answer()
        return
    operation = DelayedDeleteRecords(request.timeout.total_seconds(), waiting, call.client_id, call.since, answer)
    call.broker.delete_records_purgatory.try_complete_else_watch(operation, [one.partition for one in waiting])


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(topics=by_topic(request.topics, error, _failed))


def _failed(query: Any, error: ErrorCode) -> Message:
    return Message(partition_index=query.partition_index, error_code=error, low_watermark=-1)


def _delete(call: Call, waiting: list[PendingDelete], topic: Any, query: Any) -> Message:
    partition = call.partition(topic.name, None, query.partition_index)
    if not partition.log.config.delete and partition.log.config.compact:
        raise ApiError(ErrorCode.policy_violation)
    response = Message(partition_index=query.partition_index)
    waiting.append(PendingDelete(partition, partition.delete_records(query.offset), response))
    return response
