"""A Kafka-compatible broker whose waiting is Kafka's own, in one process: for tests, for learning, for looking.

    from abeyance import broker

    with broker.Cluster(brokers=3) as kafka:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})

Needs the extra `broker`: pip install 'abeyance[broker]'. This import alone pulls in nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abeyance.errors import AbeyanceError

if TYPE_CHECKING:
    from abeyance.broker.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    if name != "Cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from abeyance.broker.cluster import Cluster
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("kio", "crc32c"):
            raise
        said = f"{package} is not installed; the broker needs it: pip install 'abeyance[broker]'"
        raise AbeyanceError(said) from error
    return Cluster
