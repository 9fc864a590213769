"""ExpireDelegationToken (key 40, versions 1-2): let a delegation token expire earlier, or now (KIP-48).

Kafka: `KafkaApis.handleExpireTokenRequest`, `DelegationTokenControlManager.expireDelegationToken`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import change_expiry


def handle(call: Call) -> None:
    """Set the token's expiry."""
    change_expiry(call, call.request.expiry_time_period, call.broker.cluster.controller.tokens.expire)
