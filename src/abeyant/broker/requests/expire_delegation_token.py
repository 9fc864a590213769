"""ExpireDelegationToken (key 40, versions 1-2): let a delegation token expire earlier, or now (KIP-48).

Kafka: `KafkaApis.handleExpireTokenRequest`, `DelegationTokenControlManager.expireDelegationToken`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.authorization import client_of
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import NO_TIME_MS, require_identity
from abeyant.broker.wire.schema import Message


def handle(call: Call) -> None:
    """Set the token's expiry."""
    request = call.request
    refused_at = NO_TIME_MS
    try:
        require_identity(call)
        refused_at = 0  # by Kafka's controller
        period_ms = round(request.expiry_time_period.total_seconds() * 1000)
        expires_ms = call.broker.cluster.controller.tokens.expire(client_of(call).principal, request.hmac, period_ms)
    except ApiError as error:
        call.answer(Message(error_code=error.code, expiry_timestamp=refused_at))
        return
    call.answer(Message(expiry_timestamp=expires_ms))
