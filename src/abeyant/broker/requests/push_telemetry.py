"""PushTelemetry (key 72, versions 0-0): receive a client's metrics (KIP-714).

Pushes are counted, and `Cluster.pushed_metrics` lists the names of the metrics; their values are dropped.
Kafka: `ClientMetricsManager.processPushTelemetryRequest`.
"""

from __future__ import annotations

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import Message


def handle(call: Call) -> None:
    """Record the push, then respond."""
    request = call.request
    call.broker.telemetry.push(
        request.client_instance_id,
        call.connection,
        request.subscription_id,
        request.compression_type,
        request.metrics,
        terminating=request.terminating,
    )
    call.answer(Message())
