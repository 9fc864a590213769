"""RenewDelegationToken (key 39, versions 1-2): postpone the expiry of a delegation token (KIP-48).

Kafka: `KafkaApis.handleRenewTokenRequest`, `DelegationTokenControlManager.renewDelegationToken`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.authorization import client_of
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import NO_TIME_MS, require_identity
from abeyant.broker.wire.schema import Message


def handle(call: Call) -> None:
    """Renew the token."""
    request = call.request
    refused_at = NO_TIME_MS
    try:
        require_identity(call)
        refused_at = 0  # by Kafka's controller
        period_ms = round(request.renew_period.total_seconds() * 1000)
        expires_ms = call.broker.cluster.controller.tokens.renew(client_of(call).principal, request.hmac, period_ms)
    except ApiError as error:
        call.answer(Message(error_code=error.code, expiry_timestamp=refused_at))
        return
    call.answer(Message(expiry_timestamp=expires_ms))
