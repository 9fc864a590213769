"""What Kafka's tools find on both sides: topics with records, members of groups of each protocol, a transaction."""

from __future__ import annotations

import time

from broker.conformance.messages import Plain
from broker.conformance.records import TRANSACTIONAL, Batch
from real_kafka.tools import Side

TOPICS = {"orders": [[1, 2, 3], [2, 3, 1], [3, 1, 2]], "bills": [[1, 2]], "texts": [[2]]}
NO_TASKS = ("active_tasks", "standby_tasks", "warmup_tasks", "client_tags", "task_offsets", "task_end_offsets")


def create(side: Side) -> None:
    """Create the topics, and write two records to each partition."""
    configs = [{"name": "min.insync.replicas", "value": "2"}, {"name": "segment.bytes", "value": "10000000"}]
    rows = [
        {
            "name": name, "num_partitions": -1, "replication_factor": -1,
            "configs": configs if name == "orders" else [],
            "assignments": [{"partition_index": place, "broker_ids": one} for place, one in enumerate(replicas)],
        }
        for name, replicas in TOPICS.items()
    ]  # fmt: skip
    for said in side.ask("CreateTopics", {"topics": rows, "timeout": 10_000})["topics"]:
        assert said["error_code"] in ("NONE", "TOPIC_ALREADY_EXISTS"), said
        side.topics[said["name"]] = said["topic_id"]
    for name, replicas in TOPICS.items():
        for partition, (leader, *_) in enumerate(replicas):
            produce(side, name, partition, leader, Batch((b"one", b"two"), at=int(time.time() * 1000)))


def produce(
    side: Side, topic: str, partition: int, leader: int, batch: Batch, transactional: str | None = None
) -> None:
    row = {"index": partition, "records": batch.data()}
    data = [{"name": topic, "topic_id": side.topics[topic], "partition_data": [row]}]
    body = {"acks": -1, "timeout": 10_000, "transactional_id": transactional, "topic_data": data}
    for _ in range(100):  # the leader hears of it a moment later
        (said,) = side.ask("Produce", body, leader)["responses"][0]["partition_responses"]
        if said["error_code"] == "NONE":
            return
        time.sleep(0.1)
    raise AssertionError(said)


def ask_group(side: Side, group: str, api: str, **body: Plain) -> dict[str, Plain]:
    said = side.ask_coordinator(group, api, {"group_id": group, **body})
    assert said.get("error_code", "NONE") in ("NONE", "MEMBER_ID_REQUIRED"), said
    return said


def commit(side: Side, group: str, member: str = "", epoch: int = -1) -> None:
    rows = [{"partition_index": place, "committed_offset": 1, "committed_metadata": ""} for place in (0, 1)]
    topics = [{"name": "orders", "topic_id": side.topics["orders"], "partitions": rows}]
    body = {"member_id": member, "generation_id_or_member_epoch": epoch, "topics": topics}
    for _ in range(100):  # who is to coordinate the first group hears of it a moment later
        said = ask_group(side, group, "OffsetCommit", **body)
        error = said["topics"][0]["partitions"][0]["error_code"]
        if error == "NONE":
            return
        if error not in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"):
            break
        time.sleep(0.1)
    raise AssertionError(said)


def join(side: Side) -> None:
    """Let members join a group of each protocol, and commit offsets; group "old" has nothing but offsets."""
    commit(side, "old")
    protocol = {"name": "range", "metadata": b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0"}
    first = {
        "session_timeout": 1_000_000, "rebalance_timeout": 60_000, "group_instance_id": None,
        "protocol_type": "consumer", "protocols": [protocol],
    }  # fmt: skip
    member = ask_group(side, "classic", "JoinGroup", member_id="", **first)["member_id"]
    epoch = ask_group(side, "classic", "JoinGroup", member_id=member, **first)["generation_id"]
    assigned = b"\0\1\0\0\0\1\0\6orders\0\0\0\3\0\0\0\0\0\0\0\1\0\0\0\2\xff\xff\xff\xff"
    ask_group(
        side, "classic", "SyncGroup", generation_id=epoch, member_id=member, protocol_type="consumer",
        protocol_name="range", assignments=[{"member_id": member, "assignment": assigned}],
    )  # fmt: skip
    commit(side, "classic", member, epoch)
    side.classic = member
    for name, instance in (("one", None), ("two", "static")):
        ask_group(
            side, "consumer", "ConsumerGroupHeartbeat", member_id=name, instance_id=instance, member_epoch=0,
            rebalance_timeout=60_000, subscribed_topic_names=["orders"], topic_partitions=[],
        )  # fmt: skip
    epoch = 0
    names: list[str] | None = ["orders"]
    for _ in range(100):
        said = ask_group(
            side, "share", "ShareGroupHeartbeat", member_id="one", member_epoch=epoch, subscribed_topic_names=names
        )
        epoch, names = said["member_epoch"], None
        given = (said["assignment"] or {"topic_partitions": []})["topic_partitions"]
        if sum(len(row["partitions"]) for row in given) == len(TOPICS["orders"]):
            break
        time.sleep(0.1)
    part = {
        "subtopology_id": "0", "source_topics": ["orders"], "repartition_source_topics": [],
        "state_changelog_topics": [], "repartition_sink_topics": [], "copartition_groups": [],
    }  # fmt: skip
    empty: dict[str, Plain] = {name: [] for name in NO_TASKS[:4]} | dict.fromkeys(NO_TASKS[4:])
    said = ask_group(
        side, "streams", "StreamsGroupHeartbeat", member_id="one", member_epoch=0, rebalance_timeout=60_000,
        process_id="here", topology={"epoch": 0, "subtopologies": [part]}, **empty,
    )  # fmt: skip
    commit(side, "streams", "one", said["member_epoch"])


def leave(side: Side) -> None:
    """Let all members leave."""
    ask_group(side, "classic", "LeaveGroup", members=[{"member_id": side.classic, "group_instance_id": None}])
    for name, instance in (("one", None), ("two", "static")):
        ask_group(
            side, "consumer", "ConsumerGroupHeartbeat", member_id=name, instance_id=instance, member_epoch=-1,
            rebalance_timeout=-1, topic_partitions=None,
        )  # fmt: skip
    ask_group(side, "share", "ShareGroupHeartbeat", member_id="one", member_epoch=-1)
    ask_group(side, "streams", "StreamsGroupHeartbeat", member_id="one", member_epoch=-1, **dict.fromkeys(NO_TASKS))


def begin_transaction(side: Side) -> None:
    """Let a transactional producer write a record."""
    name = "till"
    said = side.ask_coordinator(
        name, "InitProducerId", kind=1, version=4,
        body={"transactional_id": name, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1},
    )  # fmt: skip
    producer, epoch = said["producer_id"], said["producer_epoch"]
    body = {
        "v3_and_below_transactional_id": name, "v3_and_below_producer_id": producer,
        "v3_and_below_producer_epoch": epoch, "v3_and_below_topics": [{"name": "texts", "partitions": [0]}],
    }  # fmt: skip
    side.ask_coordinator(name, "AddPartitionsToTxn", body, kind=1, version=3)
    batch = Batch(
        at=int(time.time() * 1000), attributes=TRANSACTIONAL, producer_id=producer, producer_epoch=epoch, sequence=0
    )
    produce(side, "texts", 0, TOPICS["texts"][0][0], batch, name)
