"""InitProducerId (key 22, versions 0-5): allocate a producer id and epoch.

For a transactional id the coordinator fences the previous producer.
Kafka: `TransactionCoordinator.handleInitProducerId`.
Not implemented: two-phase commit (KIP-939).
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import error_for_version, milliseconds, transaction_shard
from abeyant.broker.transactions.shard import NOBODY
from abeyant.broker.transactions.transaction import Producer
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "InitProducerIdRequest": {
        "producer_id": -1, "producer_epoch": -1, "enable2_pc": False, "keep_prepared_txn": False,
    },
}  # fmt: skip
_KNOWS_FENCED_SINCE = 4


def handle(call: Call) -> None:
    """Allocate a producer id, or for a transactional id a new epoch of its producer id."""
    request = call.request
    expected = Producer(request.producer_id, request.producer_epoch)

    def respond(error: ErrorCode, producer: Producer) -> None:
        call.answer(_response(error_for_version(call, error, _KNOWS_FENCED_SINCE), producer))

    if (expected.id == NOBODY.id) is not (expected.epoch == NOBODY.epoch) or request.transactional_id == "":
        raise ApiError(ErrorCode.invalid_request)
    if request.transactional_id is None:
        respond(ErrorCode.none, Producer(call.broker.cluster.controller.allocate_producer_id(), 0))
        return
    timeout_ms = milliseconds(request.transaction_timeout)
    if not 0 < timeout_ms <= call.broker.cluster.settings["transaction.max.timeout.ms"]:
        raise ApiError(ErrorCode.invalid_transaction_timeout)
    shard = transaction_shard(call, request.transactional_id)
    shard.initialize(request.transactional_id, timeout_ms, None if expected == NOBODY else expected, respond)


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, NOBODY)


def _response(error: ErrorCode, producer: Producer) -> Message:
    return Message(error_code=error, producer_id=producer.id, producer_epoch=producer.epoch)
