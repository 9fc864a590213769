"""EndTxn (key 26, versions 0-5): commit or abort a transaction.

It is answered once that is in the coordinator's log, before the markers are written.
Kafka: `TransactionCoordinator.handleEndTransaction`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.transactional import error_for_version, shard_of
from abeyant.broker.transactions.shard import NOBODY
from abeyant.broker.transactions.transaction import BUMPS_SINCE, Producer
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_FENCED_SINCE = 2
_BUMPS_SINCE = 5  # the version from which clients take a new epoch for each transaction


def handle(call: Call) -> None:
    """End the transaction at the coordinator."""
    request = call.request

    def ended(error: ErrorCode, producer: Producer) -> None:
        call.answer(_response(error_for_version(call, error, _KNOWS_FENCED_SINCE), producer))

    try:
        shard = shard_of(call, request.transactional_id)
    except ApiError as error:
        ended(error.code, NOBODY)
        return
    shard.finish(
        request.transactional_id, Producer(request.producer_id, request.producer_epoch), request.committed,
        BUMPS_SINCE if call.version >= _BUMPS_SINCE else 0, ended,
    )  # fmt: skip


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, NOBODY)


def _response(error: ErrorCode, producer: Producer) -> Message:
    return Message(error_code=error, producer_id=producer.id, producer_epoch=producer.epoch)
