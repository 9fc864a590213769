"""The requests that most scenarios ask, without their ceremony. Topics are named both ways: by name and by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .messages import Plain
from .records import Batch
from .scenario import Topic

CONSUMER = -1
Body = dict[str, Plain]


def topic_row(topic: Topic, **more: Plain) -> Body:
    return {"name": topic.name, "topic": topic.name, "topic_id": topic.id} | more


def produce(
    topic: Topic, records: Batch | bytes | Mapping[int, bytes | None] | None = None, *, acks: int = -1,
    timeout: int = 10_000, transactional_id: str | None = None,
) -> Body:  # fmt: skip
    """Produce one batch to partition 0, or any bytes to any partitions."""
    if isinstance(records, Batch):
        records = records.data()
    by_partition = records if isinstance(records, Mapping) else {0: records}
    rows = [{"index": index, "records": data} for index, data in by_partition.items()]
    return {
        "transactional_id": transactional_id, "acks": acks, "timeout": timeout,
        "topic_data": [{"name": topic.name, "topic_id": topic.id, "partition_data": rows}],
    }  # fmt: skip


def part(partition: int = 0, offset: int = 0, **more: Plain) -> Body:
    """One partition of a fetch."""
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20} | more


def fetch(topic: Topic | None = None, *parts: Body, **more: Plain) -> Body:
    """A consumer's fetch that does not wait; of partition 0 from its beginning unless `parts` say otherwise."""
    rows = [] if topic is None else [{"topic": topic.name, "topic_id": topic.id, "partitions": list(parts or [part()])}]
    base = {"replica_id": CONSUMER, "max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 24, "topics": rows}
    return base | more


def list_offsets(topic: Topic, timestamp: int, partition: int = 0, *, epoch: int = -1, isolation: int = 0) -> Body:
    row = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": epoch}
    topics = [{"name": topic.name, "partitions": [row]}]
    return {"replica_id": CONSUMER, "isolation_level": isolation, "topics": topics, "timeout": 5000}


def epoch_end(topic: Topic, epoch: int, *, current: int = -1, partition: int = 0, replica: int = CONSUMER) -> Body:
    row = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    return {"replica_id": replica, "topics": [{"topic": topic.name, "partitions": [row]}]}


def create(name: str, partitions: int = 1, replication: int = 1, *, validate_only: bool = False, **more: Plain) -> Body:
    row = {"name": name, "num_partitions": partitions, "replication_factor": replication} | more
    return {"topics": [row], "timeout": 10_000, "validate_only": validate_only}


def assigned(*replicas: Sequence[int]) -> list[Body]:
    """Assignments of the partitions 0, 1, ..."""
    return [{"partition_index": index, "broker_ids": list(ids)} for index, ids in enumerate(replicas)]


def settings(**values: str | None) -> list[Body]:
    """Settings with underscores for dots."""
    return [{"name": name.replace("_", "."), "value": value} for name, value in values.items()]


def delete_records(topic: Topic, offset: int, partition: int = 0, timeout: int = 10_000) -> Body:
    rows = [{"partition_index": partition, "offset": offset}]
    return {"topics": [{"name": topic.name, "partitions": rows}], "timeout": timeout}


def reassign(topic: Topic, replicas: Sequence[int] | None, partition: int = 0) -> Body:
    row = {"partition_index": partition, "replicas": None if replicas is None else list(replicas)}
    return {"timeout": 10_000, "topics": [{"name": topic.name, "partitions": [row]}]}


def metadata(*topics: Topic | str, auto_create: bool = False) -> Body:
    rows = [{"name": topic if isinstance(topic, str) else topic.name} for topic in topics]
    return {"topics": rows, "allow_auto_topic_creation": auto_create}
