"""Kafka's replication rebuilt from request logs: high watermarks, the produces that wait for them, and a comparison."""

from abeyance.pipeline.replication.comparison import compare_with_kafka
from abeyance.pipeline.replication.facts import read_kafka_replication
from abeyance.pipeline.replication.high_watermarks import high_watermarks
from abeyance.pipeline.replication.produces import acks_all_produces

__all__ = ["acks_all_produces", "compare_with_kafka", "high_watermarks", "read_kafka_replication"]
