"""ShareAcknowledge (key 79, versions 1-2): acknowledge, release, reject or renew records of a share group.

With the final epoch, the request also ends the member's share session, and so releases all records that it still holds.
Kafka: `KafkaApis.handleShareAcknowledgeRequest`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.shares import (
    Results,
    acknowledge,
    by_topic,
    lock_timeout,
    name_leaders,
    new_row,
    require_member,
)
from abeyant.broker.shares.sessions import FINAL, INITIAL
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"ShareAcknowledgeRequest": {"is_renew_ack": False}}


def handle(call: Call) -> None:
    """Apply the acknowledgements, and respond once they are stored."""
    request = call.request
    require_member(call)
    if request.share_session_epoch == INITIAL:
        raise ApiError(ErrorCode.invalid_share_session_epoch)
    sessions = call.broker.share_sessions
    session = sessions.require(request.group_id, request.member_id, request.share_session_epoch)
    final = request.share_session_epoch == FINAL
    if not final:
        session.advance()

    def answer(results: Results) -> None:
        if final:
            sessions.end(request.group_id, request.member_id)
        rows = [(key, new_row(key[1], error)) for key, error in results.items()]
        endpoints = name_leaders(call, rows)
        call.answer(
            Message(responses=by_topic(rows), node_endpoints=endpoints, acquisition_lock_timeout=lock_timeout(call))
        )

    acknowledge(call, answer)
