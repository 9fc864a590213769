"""Leaders that change: epochs, who leads, reassignments, elections."""

from __future__ import annotations

from functools import partial

from ..bodies import epoch_end, fetch, list_offsets, metadata, part, produce, reassign
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table

PREFERRED, UNCLEAN = 0, 1


def put(stage: Stage, topic: Topic, to: int) -> None:
    stage.do("Produce", produce(topic, Batch(at=stage.base_time)), to=to)


def row(stage: Stage, topic: Topic, broker: int = 1, partition: int = 0) -> dict[str, Plain]:
    (found,) = stage.metadata(topic.name, broker)["topics"]
    rows: dict[int, dict[str, Plain]] = {one["partition_index"]: one for one in found["partitions"]}
    return rows[partition]


def move(stage: Stage, topic: Topic, *replicas: int) -> None:
    """Reassign, and wait until every broker knows that it is done."""
    stage.do("AlterPartitionReassignments", reassign(topic, replicas))
    for broker in (1, 2, 3):
        stage.until(partial(_has, stage, topic, broker, replicas), f"{replicas} on {broker}")
    stage.await_leader(topic.name, replicas[0])


def _has(stage: Stage, topic: Topic, broker: int, replicas: tuple[int, ...]) -> bool:
    found = row(stage, topic, broker)
    return found["replica_nodes"] == list(replicas) and sorted(found["isr_nodes"]) == sorted(replicas)


def three_leaders(stage: Stage) -> tuple[Topic, int]:
    """A record under broker 1, two under broker 2, one under 1 again; and the last leader's epoch."""
    topic = stage.topic(replicas=(1,))
    put(stage, topic, 1)
    move(stage, topic, 2)
    put(stage, topic, 2)
    put(stage, topic, 2)
    move(stage, topic, 1)
    put(stage, topic, 1)
    epoch: int = row(stage, topic)["leader_epoch"]
    return topic, epoch


@scenario("OffsetForLeaderEpoch")
def end_of_the_only_epoch(stage: Stage) -> None:
    topic = stage.topic()
    put(stage, topic, 1)
    for epoch in (0, 1, -1):
        stage.ask("OffsetForLeaderEpoch", epoch_end(topic, epoch))


@scenario("OffsetForLeaderEpoch", at=(4,))
def ends_of_three_epochs(stage: Stage) -> None:
    topic, last = three_leaders(stage)
    ends = []
    for epoch in range(last + 2):
        (found,) = stage.do("OffsetForLeaderEpoch", epoch_end(topic, epoch))["topics"]
        ends.append(found["partitions"][0]["end_offset"])
    # How many epochs a move takes is the controller's matter: only where they end is compared.
    stage.note("ends", sorted(set(ends)))


@scenario("OffsetForLeaderEpoch")
def end_in_an_empty_log(stage: Stage) -> None:
    stage.ask("OffsetForLeaderEpoch", epoch_end(stage.topic(), 0))


@table("OffsetForLeaderEpoch", right=(0,), too_high=(2,), none=(-1,))
def asked_with_a_current_epoch(stage: Stage, current: int) -> None:
    stage.ask("OffsetForLeaderEpoch", epoch_end(stage.topic(), 0, current=current))


@table("OffsetForLeaderEpoch", at=(3, 4), consumer=(-1,), debugging_client=(-2,), follower=(2,))
def asked_of_a_follower_by(stage: Stage, replica: int) -> None:
    stage.ask("OffsetForLeaderEpoch", epoch_end(stage.topic(replicas=(2, 1)), 0, replica=replica))


@scenario("OffsetForLeaderEpoch")
def end_in_an_unknown_topic(stage: Stage) -> None:
    stage.ask("OffsetForLeaderEpoch", epoch_end(Topic(stage.name("missing"), ""), 0))


@scenario("OffsetForLeaderEpoch")
def end_in_an_unknown_partition(stage: Stage) -> None:
    stage.ask("OffsetForLeaderEpoch", epoch_end(stage.topic(), 0, partition=6))


@scenario("Fetch", at=(12, 15, 18))
def diverging_epoch(stage: Stage) -> None:
    """A consumer whose last epoch ended before its offset is told where."""
    topic, _ = three_leaders(stage)
    said = stage.do("Fetch", fetch(topic, part(0, 3, last_fetched_epoch=0)), version=stage.version("Fetch"))
    (found,) = said["responses"][0]["partitions"]
    stage.note("diverging epoch", [found["error_code"], found.get("diverging_epoch"), found["records"]])


@table("Fetch", at=(9, 12, 18), fenced=(-1,), unknown=(1,))
def epoch_of_the_leader(stage: Stage, off_by: int) -> None:
    topic, epoch = three_leaders(stage)
    said = stage.do("Fetch", fetch(topic, part(current_leader_epoch=epoch + off_by)), version=stage.version("Fetch"))
    stage.note("error", said["responses"][0]["partitions"][0]["error_code"])


@scenario("ListOffsets", at=(4, 11))
def fenced_epoch(stage: Stage) -> None:
    topic, epoch = three_leaders(stage)
    stage.ask("ListOffsets", list_offsets(topic, -1, epoch=epoch - 1))


@scenario("Fetch", at=(4, 12, 18))
def what_a_move_leaves(stage: Stage) -> None:
    """Nothing is lost on the way, and the old leader says that it is none."""
    topic = stage.topic(replicas=(1, 2))
    put(stage, topic, 1)
    move(stage, topic, 2, 3)
    put(stage, topic, 2)
    said = stage.do("Fetch", fetch(topic), to=2)
    (found,) = said["responses"][0]["partitions"]
    stage.note("there", [found["high_watermark"], len(found["records"]) > 0])
    said = stage.do("Fetch", fetch(topic), version=stage.version("Fetch"))
    (found,) = said["responses"][0]["partitions"]
    stage.note("error", found["error_code"])


@scenario("AlterPartitionReassignments", at=(0, 1))
def reassigned(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    put(stage, topic, 1)
    stage.ask("AlterPartitionReassignments", reassign(topic, (3, 2)))
    stage.until(lambda: _has(stage, topic, 1, (3, 2)), "the new replicas")
    found = row(stage, topic)
    stage.note("replicas", [found["replica_nodes"], sorted(found["isr_nodes"])])
    stage.ask("ListPartitionReassignments", {"topics": None, "timeout": 1000})


@table(
    "AlterPartitionReassignments",
    at=(0, 1),
    to_itself=([1, 2],),
    other_order=([2, 1],),
    more=([1, 2, 3],),
    fewer=([1],),
)
def reassigned_to(stage: Stage, replicas: list[int]) -> None:
    topic = stage.topic(replicas=(1, 2))
    stage.ask("AlterPartitionReassignments", reassign(topic, replicas))
    stage.until(lambda: _has(stage, topic, 1, tuple(replicas)), "the new replicas")


@table(
    "AlterPartitionReassignments",
    at=(0, 1),
    nobody=([],),
    twice_the_same=([1, 1],),
    unknown_broker=([1, 9],),
    negative=([-1],),
    cancel_what_is_not_there=(None,),
)
def cannot_be_reassigned(stage: Stage, replicas: list[int] | None) -> None:
    stage.ask("AlterPartitionReassignments", reassign(stage.topic(replicas=(1, 2)), replicas))


@scenario("AlterPartitionReassignments", at=(1,))
def replication_factor_may_not_change(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    stage.ask("AlterPartitionReassignments", reassign(topic, (1, 2, 3)) | {"allow_replication_factor_change": False})


@scenario("AlterPartitionReassignments", at=(0, 1))
def reassigned_unknown_topic(stage: Stage) -> None:
    stage.ask("AlterPartitionReassignments", reassign(Topic(stage.name("missing"), ""), (1,)))


@scenario("AlterPartitionReassignments", at=(0, 1))
def reassigned_unknown_partition(stage: Stage) -> None:
    stage.ask("AlterPartitionReassignments", reassign(stage.topic(), (1,), 5))


@scenario("ListPartitionReassignments")
def no_reassignments(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("ListPartitionReassignments", {"topics": None, "timeout": 1000})
    rows = [
        {"name": topic.name, "partition_indexes": [0, 4]},
        {"name": stage.name("missing"), "partition_indexes": [0]},
    ]
    stage.ask("ListPartitionReassignments", {"topics": rows, "timeout": 1000})


def elect(topic: Topic, *partitions: int, kind: int = PREFERRED) -> dict[str, Plain]:
    rows = [{"topic": topic.name, "partitions": list(partitions or (0,))}]
    return {"election_type": kind, "topic_partitions": rows, "timeout": 10_000}


@scenario("ElectLeaders")
def preferred_leader_leads_already(stage: Stage) -> None:
    stage.ask("ElectLeaders", elect(stage.topic()))


@scenario("ElectLeaders")
def preferred_leader(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    stage.do("AlterPartitionReassignments", reassign(topic, (2, 1)))
    stage.until(lambda: _has(stage, topic, 1, (2, 1)), "another order")
    stage.note("leader", row(stage, topic)["leader_id"])
    stage.ask("ElectLeaders", elect(topic))
    stage.until(lambda: row(stage, topic)["leader_id"] == 2, "the preferred leader")
    stage.await_leader(topic.name, 2)
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)), to=2)
    stage.ask("ElectLeaders", elect(topic))


@scenario("ElectLeaders", at=(1, 2))
def unclean_where_nothing_is_amiss(stage: Stage) -> None:
    stage.ask("ElectLeaders", elect(stage.topic(), kind=UNCLEAN))


@scenario("ElectLeaders", at=(1, 2))
def kind_that_does_not_exist(stage: Stage) -> None:
    stage.ask("ElectLeaders", elect(stage.topic(), kind=5))


@scenario("ElectLeaders")
def leader_of_an_unknown_topic(stage: Stage) -> None:
    stage.ask("ElectLeaders", elect(Topic(stage.name("missing"), "")))


@scenario("ElectLeaders")
def leader_of_an_unknown_partition(stage: Stage) -> None:
    stage.ask("ElectLeaders", elect(stage.topic(), 0, 8))


@scenario("ElectLeaders", at=(2,))
def leaders_of_all(stage: Stage) -> None:
    """Those that lead already are left out."""
    topic = stage.topic()
    said = stage.do("ElectLeaders", {"election_type": PREFERRED, "topic_partitions": None, "timeout": 10_000})
    rows = [row for row in said["replica_election_results"] if row["topic"] == topic.name]
    stage.note("error, and this topic", [said["error_code"], rows])


@scenario("Metadata", at=(7, 12))
def epoch_in_metadata_grows(stage: Stage) -> None:
    topic, epoch = three_leaders(stage)
    said = stage.do("Metadata", metadata(topic), version=stage.version("Metadata"))
    stage.note("grew", said["topics"][0]["partitions"][0]["leader_epoch"] == epoch > 1)
