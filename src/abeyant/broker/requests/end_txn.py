"""EndTxn (key 26, versions 0-5): commit or abort a transaction.

The response comes once the decision is in the coordinator's log, before the markers are written.
Kafka: `TransactionCoordinator.handleEndTransaction`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.coordinators import error_for_version, transaction_shard
from abeyant.broker.transactions.transaction import BUMPS_SINCE, Producer
from abeyant.broker.wire.schema import ErrorCode, Message

_KNOWS_FENCED_SINCE = 2
_BUMPS_SINCE = 5  # the version from which each transaction gets a new epoch


def handle(call: Call) -> None:
    """Commit or abort the transaction."""
    request = call.request

    def answer(error: ErrorCode, producer: Producer) -> None:
        known = error_for_version(call, error, _KNOWS_FENCED_SINCE)
        call.answer(Message(error_code=known, producer_id=producer.id, producer_epoch=producer.epoch))

    transaction_shard(call, request.transactional_id).finish(
        request.transactional_id, Producer(request.producer_id, request.producer_epoch), request.committed,
        BUMPS_SINCE if call.version >= _BUMPS_SINCE else 0, answer,
    )  # fmt: skip
