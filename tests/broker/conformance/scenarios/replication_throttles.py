"""Replication throttles: their settings, and replicas that they hold back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..bodies import produce, reassign
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table
from .configs import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, described, stepwise

DESCRIBE, ALTER = "DescribeConfigs", "IncrementalAlterConfigs"
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"


def value(stage: Stage, kind: int, name: str, key: str, broker: int) -> Plain:
    found = stage.do(DESCRIBE, described(kind, name, [key]), to=broker)["results"][0]["configs"]
    return found[0]["value"] if found else None


def set_to(stage: Stage, kind: int, name: str, key: str, wanted: str | None) -> None:
    """Set a setting, or delete it, and wait until the brokers know."""
    brokers = (int(name),) if kind == BROKER else (1, 2, 3)
    stage.do(ALTER, stepwise(kind, name, (DELETE if wanted is None else SET, key, wanted)), to=brokers[0])
    for broker in brokers:

        def known(broker: int = broker) -> bool:
            return (value(stage, kind, name, key, broker) or "") == (wanted or "")

        stage.until(known, f"{key} at broker {broker}")


@table(
    ALTER, at=(0, 1),
    all=(SET, "*"), one=(SET, "0:1"), some=(SET, "0:1,0:2,1:3"), none=(SET, ""), no_colon=(SET, "0"),
    not_numbers=(SET, "a:b"), negative=(SET, "0:-1"), three_parts=(SET, "0:1:2"), star_and_more=(SET, "*,0:1"),
    brackets=(SET, "[0:1]"), appended=(APPEND, "0:1"), subtracted=(SUBTRACT, "0:1"), null=(SET, None),
)  # fmt: skip
def replicas_of_a_topic(stage: Stage, operation: int, wanted: str | None) -> None:
    topic = stage.topic()
    for side in (LEADER, FOLLOWER):
        stage.ask(ALTER, stepwise(TOPIC, topic.name, (operation, f"{side}.replicas", wanted)))


@scenario(DESCRIBE)
def described_of_a_topic(stage: Stage) -> None:
    topic = stage.topic(config={f"{LEADER}.replicas": "0:1,0:2", f"{FOLLOWER}.replicas": "*"})
    keys = [f"{side}.replicas" for side in (LEADER, FOLLOWER)]
    stage.ask(DESCRIBE, described(TOPIC, topic.name, keys, synonyms=True))
    stage.ask(DESCRIBE, described(TOPIC, stage.topic("other").name, keys))


@table(
    ALTER, at=(0, 1),
    one=("1",), large=("9000000000",), zero=("0",), negative=("-1",), text=("fast",), empty=("",), fraction=("1.5",),
)  # fmt: skip
def rate_of_a_broker(stage: Stage, wanted: str) -> None:
    for side in (LEADER, FOLLOWER):
        stage.ask(ALTER, stepwise(BROKER, "1", (SET, f"{side}.rate", wanted), (SET, "log.cleaner.threads", "1")))
        stage.do(ALTER, stepwise(BROKER, "1", (DELETE, f"{side}.rate", None), (DELETE, "log.cleaner.threads", None)))


@scenario(DESCRIBE, at=(1, 4))
def rates_described(stage: Stage) -> None:
    keys = [f"{side}.rate" for side in (LEADER, FOLLOWER)]
    stage.ask(DESCRIBE, described(BROKER, "1", keys, synonyms=True))
    set_to(stage, BROKER, "1", keys[0], "1000")
    set_to(stage, BROKER, "1", keys[1], "2000")
    stage.ask(DESCRIBE, described(BROKER, "1", keys, synonyms=True))
    for key in keys:
        set_to(stage, BROKER, "1", key, None)
    stage.ask(DESCRIBE, described(BROKER, "1", keys))


@scenario(ALTER, at=(1,))
def rate_of_all_brokers(stage: Stage) -> None:
    stage.ask(ALTER, stepwise(BROKER, "", (SET, f"{LEADER}.rate", "1000000")))
    stage.until(lambda: value(stage, BROKER, "2", f"{LEADER}.rate", 2) == "1000000", "the rate")
    stage.ask(DESCRIBE, described(BROKER, "2", [f"{LEADER}.rate"], synonyms=True), to=2, version=4)
    stage.ask(ALTER, stepwise(BROKER, "", (DELETE, f"{LEADER}.rate", None)))
    stage.until(lambda: value(stage, BROKER, "2", f"{LEADER}.rate", 2) is None, "its end")


@contextmanager
def throttled(stage: Stage, topic: Topic, side: str, broker: int, replicas: str) -> Iterator[None]:
    """Replicas of a topic throttled on one side, at a broker, to next to nothing."""
    set_to(stage, TOPIC, topic.name, f"{side}.replicas", replicas)
    set_to(stage, BROKER, str(broker), f"{side}.rate", "1")
    try:
        yield
    finally:
        set_to(stage, BROKER, str(broker), f"{side}.rate", None)
        set_to(stage, TOPIC, topic.name, f"{side}.replicas", None)


def filled(stage: Stage, **more: Plain) -> Topic:
    """A topic with 3 MB on broker 1; a follower gets at most 1 MB at once."""
    topic = stage.topic(replicas=(1,))
    for number in range(6):
        batch = Batch(at=stage.base_time, values=(bytes([number]) * 500_000,), **more)
        said = stage.do("Produce", produce(topic, batch))
        if said["responses"][0]["partition_responses"][0]["error_code"] != "NONE":
            raise RuntimeError(str(said))
    return topic


def moving(stage: Stage, topic: Topic) -> Plain:
    body = {"topics": [{"name": topic.name, "partition_indexes": [0]}], "timeout": 10_000}
    return stage.do("ListPartitionReassignments", body)["topics"]


def in_sync(stage: Stage, topic: Topic) -> Plain:
    (found,) = stage.metadata(topic.name)["topics"]
    return sorted(found["partitions"][0]["isr_nodes"])


def throttled_move(stage: Stage, side: str, broker: int, replicas: str, *, is_held: bool = True) -> None:
    topic = filled(stage)
    with throttled(stage, topic, side, broker, replicas):
        said = stage.do("AlterPartitionReassignments", reassign(topic, [1, 2]))
        stage.note("begun", said["responses"][0]["partitions"])
        if is_held:
            stage.brokers.elapse(2.0)
            stage.note("still moving", [row["partitions"] for row in moving(stage, topic)])
        else:
            stage.until(lambda: not moving(stage, topic), "the new replica")
    stage.until(lambda: not moving(stage, topic), "the new replica")
    stage.until(lambda: in_sync(stage, topic) == [1, 2], "the metadata")


@table(all=("*",), this_one=("0:1",))
def held_back_by_the_leader(stage: Stage, replicas: str) -> None:
    throttled_move(stage, LEADER, 1, replicas)


@table(all=("*",), this_one=("0:2",))
def held_back_by_the_follower(stage: Stage, replicas: str) -> None:
    throttled_move(stage, FOLLOWER, 2, replicas)


@table(
    other_replica=(LEADER, 1, "0:2"), other_partition=(LEADER, 1, "1:1"), other_broker=(LEADER, 3, "*"),
    follower_at_the_leader=(FOLLOWER, 1, "*"), none=(LEADER, 1, ""),
)  # fmt: skip
def not_held_back(stage: Stage, side: str, broker: int, replicas: str) -> None:
    throttled_move(stage, side, broker, replicas, is_held=False)
