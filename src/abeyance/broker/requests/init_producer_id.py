"""InitProducerId: a producer id for an idempotent producer."""

from __future__ import annotations

from typing import Any

from abeyance.broker.requests.call import Call
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "InitProducerIdRequest": {
        "producer_id": -1, "producer_epoch": -1, "enable2_pc": False, "keep_prepared_txn": False,
    },
}  # fmt: skip


def handle(call: Call) -> None:
    """Answer with an id that nobody has, at epoch 0."""
    request = call.request
    if request.transactional_id is not None:
        # Transactions have no coordinator here: as in a Kafka whose coordinator cannot be reached.
        error = ErrorCode.coordinator_not_available if request.transactional_id else ErrorCode.invalid_request
        call.answer(refused(request, error))
    elif (request.producer_id == -1) is not (request.producer_epoch == -1):
        call.answer(refused(request, ErrorCode.invalid_request))
    else:
        call.answer(_response(ErrorCode.none, call.broker.cluster.controller.allocate_producer_id(), 0))


def refused(request: Any, error: ErrorCode) -> Message:
    """The error."""
    return _response(error, -1, -1)


def _response(error: ErrorCode, producer_id: int, epoch: int) -> Message:
    return Message(
        throttle_time=NO_TIME, error_code=error, producer_id=producer_id, producer_epoch=epoch,
        ongoing_txn_producer_id=-1, ongoing_txn_producer_epoch=-1,
    )  # fmt: skip
