"""WriteTxnMarkers (key 27, versions 1-2): write transaction markers to partitions that this broker leads.

The response waits for the in-sync replicas. The request comes from transaction coordinators, and from tools that end a
hanging transaction.
Kafka: `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.coordinator.topics import OFFSETS
from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.log import LogError
from abeyant.broker.log.markers import Marker, marker_batch
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"WritableTxnMarker": {"transaction_version": 0}}

_EPOCH_GROWS = 2  # the transaction version from which each transaction has its own epoch

_Key = tuple[str, int]
_Result = PendingAck | ErrorCode


def handle(call: Call) -> None:
    """Append the markers, then wait for the replicas."""
    results = [(marker, {key: _write(call, marker, key) for key in _keys(marker)}) for marker in call.request.markers]
    waiting = [result for _, by_key in results for result in by_key.values() if isinstance(result, PendingAck)]
    timeout = call.broker.request_timeout
    wait_for_acks(call.broker, waiting, timeout, call.client_id, call.since, lambda: call.answer(_response(results)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return _response([(marker, dict.fromkeys(_keys(marker), error)) for marker in request.markers])


def _keys(marker: Any) -> list[_Key]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _write(call: Call, marker: Any, key: _Key) -> _Result:
    broker = call.broker
    partition = broker.partitions.get(key)
    if partition is None:
        return ErrorCode.unknown_topic_or_partition
    end = Marker(marker.transaction_result, marker.coordinator_epoch)
    batch = marker_batch(marker.producer_id, marker.producer_epoch, end, broker.now_ms())
    try:
        append_info = partition.end_transaction(batch, newer_epoch=marker.transaction_version >= _EPOCH_GROWS)
    except ApiError as error:
        return error.code
    except LogError as error:
        return ErrorCode(error.code)
    if partition.topic == OFFSETS.name:
        group_shard = broker.group_coordinator.shards.get(partition.index)
        if group_shard is not None and not group_shard.loading:  # else it will read the marker from the log
            group_shard.end_transaction(marker.producer_id, append_info.base_offset, commits=end.commits)
    return PendingAck(partition, append_info.last_offset + 1)


def _error(result: _Result) -> ErrorCode:
    return result.error if isinstance(result, PendingAck) else result


def _response(results: list[tuple[Any, dict[_Key, Any]]]) -> Message:
    return Message(
        markers=[
            Message(
                producer_id=marker.producer_id,
                topics=[
                    Message(
                        name=topic.name,
                        partitions=[
                            Message(partition_index=index, error_code=_error(by_key[topic.name, index]))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker, by_key in results
        ]
    )
