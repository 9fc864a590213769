"""ListTransactions (key 66, versions 0-2): list the transactional ids that this broker coordinates.

Kafka: `TransactionStateManager.listTransactionStates`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.consumer import patterns
from abeyant.broker.requests.common.call import Call
from abeyant.broker.transactions.transaction import BY_NAME, Transaction
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "ListTransactionsRequest": {"duration_filter": -1, "transactional_id_pattern": None},
}


def handle(call: Call) -> None:
    """List the transactional ids that match all filters."""
    request = call.request
    pattern: str = request.transactional_id_pattern or ""
    try:
        patterns.check(pattern)
    except patterns.PatternError:
        raise ApiError(ErrorCode.invalid_regular_expression) from None
    coordinator = call.broker.transaction_coordinator
    if any(shard.loading for shard in coordinator.shards.values()):
        raise ApiError(ErrorCode.coordinator_load_in_progress)
    states = {BY_NAME[name] for name in request.state_filters if name in BY_NAME}
    now_ms = call.broker.now_ms()

    def matches(transaction: Transaction) -> bool:
        now = transaction.now
        return (
            (not request.producer_id_filters or now.producer_id in request.producer_id_filters)
            and (not request.state_filters or now.state in states)
            and (request.duration_filter < 0 or now_ms - now.started_ms > request.duration_filter)
            and (not pattern or patterns.matches(pattern, transaction.id))
        )

    unknown = [name for name in request.state_filters if name not in BY_NAME]
    found = [
        Message(
            transactional_id=transaction.id,
            producer_id=transaction.now.producer_id,
            transaction_state=transaction.now.state.shown,
        )
        for shard in coordinator.loaded()
        for transaction in shard.transactions.values()
        if matches(transaction)
    ]
    call.answer(Message(unknown_state_filters=unknown, transaction_states=found))
