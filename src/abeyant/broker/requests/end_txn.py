"""EndTxn (key 26, versions 0-5): commit or abort a transaction.

It is answered once that is in the coordinator's log, before the markers are written.
Kafka: `TransactionCoordinator.handleEndTransaction`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import error_for_version, transaction_shard
from abeyant.broker.transactions.transaction import BUMPS_SINCE, Producer
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_FENCED_SINCE = 2
_BUMPS_SINCE = 5  # the version from which clients take a new epoch for each transaction


def handle(call: Call) -> None:
    """End the transaction at the coordinator."""
    request = call.request

    def ended(error: ErrorCode, producer: Producer) -> None:
        known = error_for_version(call, error, _KNOWS_FENCED_SINCE)
        call.answer(Message(error_code=known, producer_id=producer.id, producer_epoch=producer.epoch))

    transaction_shard(call, request.transactional_id).finish(
        request.transactional_id, Producer(request.producer_id, request.producer_epoch), request.committed,
        BUMPS_SINCE if call.version >= _BUMPS_SINCE else 0, ended,
    )  # fmt: skip
