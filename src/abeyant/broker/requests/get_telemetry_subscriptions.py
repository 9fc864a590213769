"""GetTelemetrySubscriptions (key 71, versions 0-0): tell a client which metrics to push, and how often (KIP-714).

Kafka advertises this API only with a plugin that receives the metrics; this broker only if subscriptions exist.
Kafka: `ClientMetricsManager.processGetTelemetrySubscriptionRequest`.
"""

from __future__ import annotations

from datetime import timedelta

from abeyant.broker.requests.common.call import Call
from abeyant.broker.telemetry.clients import ACCEPTED
from abeyant.broker.wire.schema import Message


def handle(call: Call) -> None:
    """Respond with one subscription, which combines all subscriptions that match the client."""
    telemetry = call.broker.telemetry
    client = telemetry.get(call.request.client_instance_id, call.connection)
    call.answer(
        Message(
            client_instance_id=client.id,
            subscription_id=client.subscription_id,
            accepted_compression_types=ACCEPTED,
            push_interval=timedelta(seconds=client.interval),
            telemetry_max_bytes=telemetry.max_bytes,
            delta_temporality=True,
            requested_metrics=client.metrics,
        )
    )
