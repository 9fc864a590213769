"""Offsets that a transaction commits: who may, and from when on others see them."""

from __future__ import annotations

from typing import Any

from ..bodies import Body
from ..scenario import Stage, Topic, scenario, table
from .transactions import UNKNOWN_ID, Till, await_state, coordinated, end, finish, till

OFFSETS_TOPIC = "__consumer_offsets"


def grouped(stage: Stage) -> None:
    """Have broker 1 coordinate groups: all of them are in one partition here."""
    stage.until(lambda: _coordinator(stage) >= 0, "a coordinator")
    if _coordinator(stage) != 1:
        row = {"partition_index": 0, "replicas": [1, 2, 3]}
        topics = [{"name": OFFSETS_TOPIC, "partitions": [row]}]
        stage.do("AlterPartitionReassignments", {"timeout": 10_000, "topics": topics})
        partitions = [{"topic": OFFSETS_TOPIC, "partitions": [0]}]
        stage.do("ElectLeaders", {"election_type": 0, "topic_partitions": partitions, "timeout": 10_000})
        stage.until(lambda: _coordinator(stage) == 1, "broker 1 as coordinator")

    def ready() -> bool:
        said = stage.do("OffsetFetch", _fetch(stage.name("nobody"), None, stable=False))
        return bool(said["groups"][0]["error_code"] == "NONE")

    stage.until(ready, "a coordinator of groups that is ready")


def _coordinator(stage: Stage) -> int:
    said = stage.do("FindCoordinator", {"key_type": 0, "coordinator_keys": ["any"]})
    found: int = said["coordinators"][0]["node_id"]
    return found


def _fetch(group: str, topic: Topic | None, *, stable: bool) -> Body:
    topics = None if topic is None else [{"name": topic.name, "topic_id": topic.id, "partition_indexes": [0, 1]}]
    return {"groups": [{"group_id": group, "topics": topics}], "require_stable": stable}


def commit(stage: Stage, one: Till, topic: Topic, offset: int = 5, *partitions: int, **more: Any) -> Body:
    rows = [
        {"partition_index": index, "committed_offset": offset, "committed_metadata": "note"}
        for index in partitions or (0,)
    ]
    return one.row | {"group_id": stage.name("readers"), "topics": [{"name": topic.name, "partitions": rows}]} | more


def seen(stage: Stage, topic: Topic) -> None:
    """What others see, with what is pending and without. OffsetFetch at version 9 names topics."""
    for stable in (False, True):
        said = stage.do("OffsetFetch", _fetch(stage.name("readers"), topic, stable=stable), version=9)
        stage.note(f"OffsetFetch {'stable' if stable else 'any'}", said)


def ready(stage: Stage, *, joined: bool) -> tuple[Till, Topic]:
    grouped(stage)
    coordinated(stage)
    one, topic = till(stage), stage.topic(partitions=2)
    if joined:
        said = stage.do("AddOffsetsToTxn", one.row | {"group_id": stage.name("readers")})
        if said["error_code"] != "NONE":
            raise RuntimeError(f"not joined: {said}")
    return one, topic


@table("TxnOffsetCommit", commit=(True,), abort=(False,))
def offsets_until_the_end(stage: Stage, commits: bool) -> None:
    one, topic = ready(stage, joined=True)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic))
    seen(stage, topic)
    finish(stage, one, commits)
    seen(stage, topic)


@scenario("TxnOffsetCommit", at=(5,))
def offsets_until_the_end_of_the_newer_protocol(stage: Stage) -> None:
    one, topic = ready(stage, joined=False)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic))
    said = stage.ask("EndTxn", end(one, True), version=5)
    await_state(stage, one, "CompleteCommit")
    seen(stage, topic)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic, 6))
    stage.ask("TxnOffsetCommit", commit(stage, one.but(epoch=said["producer_epoch"]), topic, 7))
    seen(stage, topic)


@scenario("TxnOffsetCommit", at=(0, 3, 4, 5))
def group_that_did_not_join(stage: Stage) -> None:
    """Up to version 4 that is an error, from 5 on the broker adds it."""
    one, topic = ready(stage, joined=False)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic))


@table(
    "TxnOffsetCommit",
    at=(0, 3, 4, 5),
    older_epoch=({"epoch": -1},),
    newer_epoch=({"epoch": 1},),
    other_producer_id=({"producer_id": UNKNOWN_ID},),
    nobodys_id=({"name": "nobody"},),
)
def offsets_of_who_is_not_its_producer(stage: Stage, changes: dict[str, Any]) -> None:
    one, topic = ready(stage, joined=True)
    stage.ask("TxnOffsetCommit", commit(stage, one.but(**changes), topic))


@table(
    "TxnOffsetCommit",
    at=(3, 5),
    unknown_member=({"member_id": "nobody", "generation_id": 1},),
    generation_without_a_member=({"generation_id": 1},),
    static_member_that_is_none=({"group_instance_id": "nobody", "member_id": "nobody", "generation_id": 1},),
    group_without_a_name=({"group_id": ""},),
)
def member_that_is_none(stage: Stage, more: Body) -> None:
    one, topic = ready(stage, joined=True)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic) | more)


@scenario("TxnOffsetCommit")
def offsets_of_partitions_that_are_missing(stage: Stage) -> None:
    one, topic = ready(stage, joined=True)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic, 5, 0, 9))
    stage.ask("TxnOffsetCommit", commit(stage, one, topic._replace(name=stage.name("missing"))))
    seen(stage, topic)


@scenario("TxnOffsetCommit")
def offsets_that_change_within_and_beside_a_transaction(stage: Stage) -> None:
    one, topic = ready(stage, joined=True)
    stage.ask("TxnOffsetCommit", commit(stage, one, topic, 5, 0, 1))
    stage.ask("TxnOffsetCommit", commit(stage, one, topic, 6))
    row = {"partition_index": 1, "committed_offset": 9, "committed_metadata": "plain"}
    body = {"group_id": stage.name("readers"), "generation_id_or_member_epoch": -1, "member_id": ""}
    topics = [{"name": topic.name, "topic_id": topic.id, "partitions": [row]}]
    stage.ask("OffsetCommit", body | {"topics": topics}, version=9)
    seen(stage, topic)
    finish(stage, one, True)
    seen(stage, topic)
