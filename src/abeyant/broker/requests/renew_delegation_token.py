"""RenewDelegationToken (key 39, versions 1-2): postpone the expiry of a delegation token (KIP-48).

Kafka: `KafkaApis.handleRenewTokenRequest`, `DelegationTokenControlManager.renewDelegationToken`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import change_expiry


def handle(call: Call) -> None:
    """Renew the token."""
    change_expiry(call, call.request.renew_period, call.broker.cluster.controller.tokens.renew)
