"""Settings: described, altered, refused."""

from __future__ import annotations

import json
import re

from ..bodies import fetch, produce, settings
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table

API = "DescribeConfigs"
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def described(
    kind: int, name: str, keys: list[str] | None, *, synonyms: bool = False, documentation: bool = False
) -> dict[str, Plain]:
    row = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return {"resources": [row], "include_synonyms": synonyms, "include_documentation": documentation}


SOME = ["cleanup.policy", "compression.type", "max.message.bytes", "retention.ms", "segment.bytes"]


@scenario("DescribeConfigs")
def of_a_topic(stage: Stage) -> None:
    topic = stage.topic(config={"retention.ms": "1000"})
    stage.ask("DescribeConfigs", described(TOPIC, topic.name, SOME, synonyms=True))


@scenario("DescribeConfigs", at=(4,))
def all_of_a_topic(stage: Stage) -> None:
    ask_all(stage, None)


@scenario("DescribeConfigs", at=(1, 4))
def none_of_a_topic(stage: Stage) -> None:
    """No names are all names."""
    ask_all(stage, [])


def ask_all(stage: Stage, names: list[str] | None) -> None:
    said = stage.do("DescribeConfigs", described(TOPIC, stage.topic().name, names), version=stage.version(API))
    (found,) = said["results"]
    # A new cluster of genuine Kafka sets this one for all brokers, to the value that it has anyway.
    found["configs"] = [row for row in found["configs"] if row["name"] != "min.insync.replicas"]
    stage.note(API, said)


@scenario("DescribeConfigs", at=(1, 4))
def some_that_do_not_exist(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(TOPIC, stage.topic().name, ["no.such.setting", "retention.ms"]))


@scenario("DescribeConfigs", at=(4,))
def with_documentation(stage: Stage) -> None:
    said = stage.do("DescribeConfigs", described(TOPIC, stage.topic().name, ["retention.ms"], documentation=True))
    stage.note("is documented", [bool(row["documentation"]) for row in said["results"][0]["configs"]])


@scenario("DescribeConfigs")
def of_an_unknown_topic(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(TOPIC, stage.name("missing"), None))


@table(
    "DescribeConfigs",
    at=(1, 4),
    topic_name_that_cannot_be=(TOPIC, "a/b"),
    topic_without_a_name=(TOPIC, ""),
    unknown_broker=(BROKER, "9"),
    broker_that_is_no_number=(BROKER, "one"),
    kind_that_does_not_exist=(3, "x"),
)
def of_what_is_not_there(stage: Stage, kind: int, name: str) -> None:
    stage.ask("DescribeConfigs", described(kind, name, ["retention.ms"]))


BROKER_SOME = [
    "auto.create.topics.enable", "default.replication.factor", "group.initial.rebalance.delay.ms", "log.retention.ms",
    "log.retention.hours", "message.max.bytes", "num.partitions", "replica.lag.time.max.ms",
]  # fmt: skip


@scenario("DescribeConfigs")
def of_a_broker(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(BROKER, "1", BROKER_SOME, synonyms=True))


@scenario("DescribeConfigs")
def of_a_broker_itself(stage: Stage) -> None:
    """What it was started with that no other broker has. But for its ports."""
    asked = described(BROKER, "1", ["advertised.listeners", "broker.id", "node.id"], synonyms=True)
    rows = stage.do("DescribeConfigs", asked, version=stage.version(API))["results"][0]["configs"]
    stage.note("it has", json.loads(re.sub(r"127\.0\.0\.1:\d+", "here", json.dumps(rows))))


@scenario("DescribeConfigs", at=(1, 4))
def of_another_broker(stage: Stage) -> None:
    """Only a broker itself knows."""
    stage.ask("DescribeConfigs", described(BROKER, "2", ["num.partitions"]))


@scenario("DescribeConfigs", at=(1, 4))
def of_all_brokers(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(BROKER, "", ["message.max.bytes"]))


@scenario("DescribeConfigs", at=(4,))
def of_several(stage: Stage) -> None:
    one, two = stage.topic("one"), stage.topic("two")
    rows = [described(TOPIC, name, ["retention.ms"])["resources"][0] for name in (one.name, two.name, stage.name("no"))]
    stage.ask("DescribeConfigs", {"resources": rows})


def altered(kind: int, name: str, *, validate_only: bool = False, **values: str | None) -> dict[str, Plain]:
    row = {"resource_type": kind, "resource_name": name, "configs": settings(**values)}
    return {"resources": [row], "validate_only": validate_only}


def now(stage: Stage, topic: Topic, *keys: str) -> None:
    said = stage.do("DescribeConfigs", described(TOPIC, topic.name, list(keys)))
    rows = said["results"][0]["configs"]
    stage.note("now", sorted([row["name"], row["value"], row["config_source"]] for row in rows))


@scenario("AlterConfigs")
def set_all_anew(stage: Stage) -> None:
    """What is not named falls back to its default."""
    topic = stage.topic(config={"retention.ms": "1000", "segment.bytes": "2000000"})
    stage.ask("AlterConfigs", altered(TOPIC, topic.name, retention_ms="5000"))
    stage.until(lambda: value(stage, topic, "retention.ms") == "5000", "the new setting")
    now(stage, topic, "retention.ms", "segment.bytes")


def value(stage: Stage, topic: Topic, key: str) -> Plain:
    said = stage.do("DescribeConfigs", described(TOPIC, topic.name, [key]))
    return said["results"][0]["configs"][0]["value"]


@scenario("AlterConfigs")
def set_all_only_validated(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("AlterConfigs", altered(TOPIC, topic.name, validate_only=True, retention_ms="5000"))
    now(stage, topic, "retention.ms")


WRONG: dict[str, tuple[dict[str, str | None]]] = {
    "unknown": ({"no_such_setting": "1"},),
    "not_a_number": ({"retention_ms": "soon"},),
    "below_the_least": ({"max_message_bytes": "-5"},),
    "not_one_of_those_allowed": ({"compression_type": "rar"},),
    "null": ({"retention_ms": None},),
    "of_a_broker": ({"num_io_threads": "4"},),
}


@table("AlterConfigs", at=(0, 2), **WRONG)
def set_wrongly(stage: Stage, values: dict[str, str | None]) -> None:
    row = altered(TOPIC, stage.topic().name)["resources"][0] | {"configs": settings(**values)}
    stage.ask("AlterConfigs", {"resources": [row]})


@scenario("AlterConfigs", at=(0, 2))
def set_of_an_unknown_topic(stage: Stage) -> None:
    stage.ask("AlterConfigs", altered(TOPIC, stage.name("missing"), retention_ms="5000"))


@scenario("AlterConfigs", at=(0, 2))
def same_setting_twice(stage: Stage) -> None:
    row = altered(TOPIC, stage.topic().name, retention_ms="5000")["resources"][0]
    stage.ask("AlterConfigs", {"resources": [row | {"configs": row["configs"] * 2}]})


def stepwise(
    kind: int, name: str, *steps: tuple[int, str, str | None], validate_only: bool = False
) -> dict[str, Plain]:
    rows = [{"name": key, "config_operation": operation, "value": text} for operation, key, text in steps]
    resource = {"resource_type": kind, "resource_name": name, "configs": rows}
    return {"resources": [resource], "validate_only": validate_only}


@scenario("IncrementalAlterConfigs")
def one_set_others_kept(stage: Stage) -> None:
    topic = stage.topic(config={"segment.bytes": "2000000"})
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (SET, "retention.ms", "5000")))
    stage.until(lambda: value(stage, topic, "retention.ms") == "5000", "the new setting")
    now(stage, topic, "retention.ms", "segment.bytes")


@scenario("IncrementalAlterConfigs")
def one_deleted(stage: Stage) -> None:
    topic = stage.topic(config={"segment.bytes": "2000000", "retention.ms": "5000"})
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (DELETE, "retention.ms", None)))
    stage.until(lambda: value(stage, topic, "retention.ms") != "5000", "the default")
    now(stage, topic, "retention.ms", "segment.bytes")


@scenario("IncrementalAlterConfigs")
def one_deleted_that_was_not_set(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (DELETE, "retention.ms", None)))


@scenario("IncrementalAlterConfigs")
def list_appended_to_and_subtracted_from(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (APPEND, "cleanup.policy", "compact")))
    stage.until(lambda: value(stage, topic, "cleanup.policy") == "delete,compact", "both")
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (SUBTRACT, "cleanup.policy", "delete")))
    stage.until(lambda: value(stage, topic, "cleanup.policy") == "compact", "one")
    now(stage, topic, "cleanup.policy")


@scenario("IncrementalAlterConfigs")
def list_appended_what_it_has(stage: Stage) -> None:
    topic = stage.topic(config={"cleanup.policy": "compact"})
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (APPEND, "cleanup.policy", "compact")))
    now(stage, topic, "cleanup.policy")


@table(
    "IncrementalAlterConfigs",
    append_to_what_is_no_list=((APPEND, "retention.ms", "1"),),
    unknown=((SET, "no.such.setting", "1"),),
    not_a_number=((SET, "retention.ms", "soon"),),
    null=((SET, "retention.ms", None),),
    operation_that_does_not_exist=((9, "retention.ms", "1"),),
    append_what_is_not_allowed=((APPEND, "cleanup.policy", "shred"),),
    delete_unknown=((DELETE, "no.such.setting", None),),
)
def step_that_cannot_be(stage: Stage, step: tuple[int, str, str | None]) -> None:
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, stage.topic().name, step))


@scenario("IncrementalAlterConfigs")
def steps_only_validated(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (SET, "retention.ms", "5000"), validate_only=True))
    now(stage, topic, "retention.ms")


@scenario("IncrementalAlterConfigs")
def steps_on_an_unknown_topic(stage: Stage) -> None:
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, stage.name("missing"), (SET, "retention.ms", "1")))


@scenario("IncrementalAlterConfigs")
def two_steps_for_one_setting(stage: Stage) -> None:
    steps = ((SET, "retention.ms", "1"), (SET, "retention.ms", "2"))
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, stage.topic().name, *steps))


@scenario("IncrementalAlterConfigs")
def one_wrong_step_undoes_all(stage: Stage) -> None:
    topic = stage.topic()
    steps = ((SET, "retention.ms", "5000"), (SET, "segment.bytes", "small"))
    stage.ask("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, *steps))
    now(stage, topic, "retention.ms")


@table(
    "IncrementalAlterConfigs",
    at=(0, 1),
    read_only=("1", (SET, "num.partitions", "4")),
    not_a_number=("1", (SET, "message.max.bytes", "large")),
    unknown_broker=("9", (SET, "message.max.bytes", "2000000")),
    broker_that_is_no_number=("one", (SET, "message.max.bytes", "2000000")),
)
def step_on_a_broker_that_cannot_be(stage: Stage, broker: str, step: tuple[int, str, str | None]) -> None:
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, broker, step))


@scenario("IncrementalAlterConfigs")
def setting_of_a_broker_that_nobody_knows(stage: Stage) -> None:
    """Genuine Kafka keeps and describes it until it is deleted: `every_setting_of_a_broker` is not to find it."""
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "1", (SET, "no.such.setting", "4")))
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "1", (DELETE, "no.such.setting", None)))

    def gone() -> bool:
        said = stage.do("DescribeConfigs", described(BROKER, "1", ["no.such.setting"]))
        return not said["results"][0]["configs"]

    stage.until(gone, "the end of the setting")


@scenario("IncrementalAlterConfigs", at=(1,))
def setting_of_all_brokers(stage: Stage) -> None:
    """It is the default of topics from then on, and gone when it is deleted."""
    topic = stage.topic()
    key, own = "log.message.timestamp.type", "message.timestamp.type"
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "", (SET, key, "LogAppendTime")))
    try:
        stage.until(lambda: value(stage, topic, own) == "LogAppendTime", "the default")
        now(stage, topic, own)
        stage.ask("DescribeConfigs", described(BROKER, "", [key], synonyms=True))
        stage.ask("DescribeConfigs", described(BROKER, "1", [key], synonyms=True))
    finally:
        stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "", (DELETE, key, None)))
    stage.until(lambda: value(stage, topic, own) == "CreateTime", "Kafka's default")


@scenario("IncrementalAlterConfigs", at=(1,))
def setting_takes_effect(stage: Stage) -> None:
    """The next batch is judged by it."""
    topic = stage.topic()
    large = Batch((b"v" * 3000,), at=stage.base_time)
    stage.ask("Produce", produce(topic, large))
    stage.do("IncrementalAlterConfigs", stepwise(TOPIC, topic.name, (SET, "max.message.bytes", "1000")))
    stage.until(lambda: value(stage, topic, "max.message.bytes") == "1000", "the new setting")
    stage.ask("Produce", produce(topic, large))
    stage.ask("Fetch", fetch(topic))
