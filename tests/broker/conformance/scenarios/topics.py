"""Topics: made, made wider, deleted; what is refused and with which words."""

from __future__ import annotations

from typing import Any

from ..bodies import assigned, create, metadata, settings
from ..messages import ZERO_ID, Plain
from ..scenario import Stage, Topic, scenario, table

UNKNOWN = "00000000-0000-0000-0000-00000000abcd"


def there(stage: Stage, name: str) -> list[Plain]:
    """What is there of a topic: error, partitions, replicas of each."""
    (found,) = stage.metadata(name)["topics"]
    return [found["error_code"], len(found["partitions"]), [len(row["replica_nodes"]) for row in found["partitions"]]]


def without_settings(said: dict[str, Plain]) -> dict[str, Plain]:
    """How many settings a topic has depends on the release; another scenario reads them."""
    topics = [row | ({"configs": "..."} if row.get("configs") else {}) for row in said["topics"]]
    return said | {"topics": topics}


def ask(stage: Stage, body: dict[str, Plain], api: str = "CreateTopics") -> None:
    said = stage.do(api, body, version=stage.version(api))
    stage.note(api, without_settings(said) if "topics" in said else said)


@table(
    "CreateTopics",
    one=(1, 1),
    three_by_three=(3, 3),
)
def created(stage: Stage, partitions: int, replication: int) -> None:
    name = stage.name("made")
    ask(stage, create(name, partitions, replication))
    stage.await_topic(name, partitions)
    stage.note("there", there(stage, name))


@scenario("CreateTopics", at=(4, 5, 7))
def created_with_defaults(stage: Stage) -> None:
    name = stage.name("made")
    ask(stage, create(name, -1, -1))
    stage.await_topic(name, 1)
    stage.note("there", there(stage, name))


@scenario("CreateTopics", at=(2, 3))
def created_with_defaults_before_there_were_any(stage: Stage) -> None:
    ask(stage, create(stage.name("made"), -1, -1))


@table(
    "CreateTopics",
    no_partitions=(0, 1),
    negative_partitions=(-2, 1),
    no_replicas=(1, 0),
    negative_replicas=(1, -2),
    more_replicas_than_brokers=(1, 4),
)
def counts_that_cannot_be(stage: Stage, partitions: int, replication: int) -> None:
    name = stage.name("made")
    ask(stage, create(name, partitions, replication))
    stage.note("there", there(stage, name))


@table(
    "CreateTopics",
    at=(2, 5, 7),
    empty=("",),
    with_a_slash=("a/b",),
    dot=(".",),
    two_dots=("..",),
    of_250_letters=("n" * 250,),
    with_a_space=("a b",),
    not_ascii=("zürich",),
)
def name_that_cannot_be(stage: Stage, name: str) -> None:
    ask(stage, create(name))


@scenario("CreateTopics")
def created_twice(stage: Stage) -> None:
    topic = stage.topic()
    ask(stage, create(topic.name))


@scenario("CreateTopics", at=(2, 7))
def name_that_collides_with_another(stage: Stage) -> None:
    """A dot and an underscore are the same in the names of metrics."""
    stage.topic("a.b")
    ask(stage, create(stage.name("a_b")))


@scenario("CreateTopics")
def twice_in_one_request(stage: Stage) -> None:
    name = stage.name("made")
    row = {"name": name, "num_partitions": 1, "replication_factor": 1}
    ask(stage, {"topics": [row, row], "timeout": 10_000})
    stage.note("there", there(stage, name))


@scenario("CreateTopics")
def one_good_and_one_bad(stage: Stage) -> None:
    good, bad = stage.name("good"), stage.name("bad")
    rows = [{"name": name, "num_partitions": count, "replication_factor": 1} for name, count in ((good, 2), (bad, 0))]
    ask(stage, {"topics": rows, "timeout": 10_000})
    stage.await_topic(good, 2)
    stage.note("there", [there(stage, good), there(stage, bad)])


@scenario("CreateTopics")
def only_validated(stage: Stage) -> None:
    name = stage.name("made")
    ask(stage, create(name, 2, 2, validate_only=True))
    stage.note("there", there(stage, name))


@table("CreateTopics", at=(2, 7), exists=(1, 1), counts=(0, 1))
def only_validated_and_wrong(stage: Stage, partitions: int, replication: int) -> None:
    name = stage.topic().name if partitions else stage.name("made")
    ask(stage, create(name, partitions, replication, validate_only=True))


@table(
    "CreateTopics",
    at=(2, 7),
    leaders_in_turn=([(1, 2), (2, 3), (3, 1)],),
    one_replica=([(3,)],),
)
def assigned_by_hand(stage: Stage, replicas: list[tuple[int, ...]]) -> None:
    name = stage.name("made")
    ask(stage, create(name, -1, -1, assignments=assigned(*replicas)))
    stage.await_topic(name, len(replicas))
    rows = stage.metadata(name)["topics"][0]["partitions"]
    stage.note("replicas", [[row["partition_index"], row["leader_id"], row["replica_nodes"]] for row in rows])


@table(
    "CreateTopics",
    at=(2, 7),
    unknown_broker=([(1, 7)],),
    same_broker_twice=([(1, 1)],),
    no_broker=([()],),
    different_counts=([(1, 2), (3,)],),
    negative_broker=([(-1,)],),
)
def assignment_that_cannot_be(stage: Stage, replicas: list[tuple[int, ...]]) -> None:
    ask(stage, create(stage.name("made"), -1, -1, assignments=assigned(*replicas)))


@table(
    "CreateTopics",
    at=(2, 7),
    partitions_and_assignments=(1, -1, [{"partition_index": 0, "broker_ids": [1]}]),
    replication_and_assignments=(-1, 1, [{"partition_index": 0, "broker_ids": [1]}]),
    index_missing=(-1, -1, [{"partition_index": 1, "broker_ids": [1]}]),
    index_twice=(-1, -1, [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 0, "broker_ids": [2]}]),
)
def assignments_that_contradict(stage: Stage, partitions: int, replication: int, rows: list[Plain]) -> None:
    ask(stage, create(stage.name("made"), partitions, replication, assignments=rows))


@table(
    "CreateTopics",
    at=(2, 7),
    unknown=({"no_such_setting": "1"},),
    not_a_number=({"retention_ms": "soon"},),
    below_the_least=({"retention_ms": "-2"},),
    not_one_of_those_allowed=({"cleanup_policy": "shred"},),
    null=({"retention_ms": None},),
    not_a_boolean=({"preallocate": "maybe"},),
    min_insync_of_nothing=({"min_insync_replicas": "0"},),
    ratio_above_one=({"min_cleanable_dirty_ratio": "1.5"},),
    empty_value=({"cleanup_policy": ""},),
    broker_setting=({"log_retention_ms": "1000"},),
    two_that_contradict=({"min_compaction_lag_ms": "10", "max_compaction_lag_ms": "5"},),
)
def setting_that_cannot_be(stage: Stage, values: dict[str, str | None]) -> None:
    ask(stage, create(stage.name("made"), configs=settings(**values)))


@scenario("CreateTopics", at=(5, 7))
def settings_in_the_answer(stage: Stage) -> None:
    configs = settings(retention_ms="1000", cleanup_policy="compact,delete")
    said = stage.do("CreateTopics", create(stage.name("made"), configs=configs), version=stage.version("CreateTopics"))
    (made,) = said["topics"]
    names = ("retention.ms", "cleanup.policy", "compression.type")
    stage.note("settings", [row for row in made["configs"] if row["name"] in names])


@scenario("CreateTopics", at=(2, 7))
def no_topics(stage: Stage) -> None:
    ask(stage, {"topics": [], "timeout": 1000})


@scenario("CreateTopics", at=(2, 7))
def asked_of_any_broker(stage: Stage) -> None:
    for broker in (1, 2, 3):
        said = stage.do("CreateTopics", create(stage.name(f"made-{broker}")), to=broker)
        stage.note("error", said["topics"][0]["error_code"])


def deletion(*topics: Topic | str) -> dict[str, Plain]:
    names = [topic if isinstance(topic, str) else topic.name for topic in topics]
    return {"topic_names": names, "topics": [{"name": name, "topic_id": ZERO_ID} for name in names], "timeout": 10_000}


@scenario("DeleteTopics")
def deleted(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("DeleteTopics", deletion(topic))
    stage.until(lambda: there(stage, topic.name)[0] != "NONE", "deletion")
    stage.ask("Metadata", metadata(topic))
    stage.ask("DeleteTopics", deletion(topic))


@scenario("DeleteTopics")
def deleted_some_that_are_not_there(stage: Stage) -> None:
    stage.ask("DeleteTopics", deletion(stage.topic(), stage.name("missing")))


@scenario("DeleteTopics")
def deleted_twice_in_one_request(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("DeleteTopics", deletion(topic, topic))


@scenario("DeleteTopics", at=(1, 6))
def deleted_nothing(stage: Stage) -> None:
    stage.ask("DeleteTopics", deletion())


@scenario("DeleteTopics", at=(6,))
def deleted_by_id(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("DeleteTopics", {"topics": [{"name": None, "topic_id": topic.id}], "timeout": 10_000})
    stage.until(lambda: there(stage, topic.name)[0] != "NONE", "deletion")


@scenario("DeleteTopics", at=(6,))
def deleted_by_an_id_that_is_not_there(stage: Stage) -> None:
    stage.ask("DeleteTopics", {"topics": [{"name": None, "topic_id": UNKNOWN}], "timeout": 10_000})


@scenario("DeleteTopics", at=(6,))
def deleted_by_name_and_id_at_once(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("DeleteTopics", {"topics": [{"name": topic.name, "topic_id": topic.id}], "timeout": 10_000})


@scenario("DeleteTopics", at=(6,))
def deleted_by_neither_name_nor_id(stage: Stage) -> None:
    stage.ask("DeleteTopics", {"topics": [{"name": None, "topic_id": ZERO_ID}], "timeout": 10_000})


@scenario("DeleteTopics", at=(6,))
def deleted_by_name_and_again_by_id(stage: Stage) -> None:
    topic = stage.topic()
    rows = [{"name": topic.name, "topic_id": ZERO_ID}, {"name": None, "topic_id": topic.id}]
    stage.ask("DeleteTopics", {"topics": rows, "timeout": 10_000})


@scenario("DeleteTopics", at=(6,))
def made_anew_it_has_another_id(stage: Stage) -> None:
    topic = stage.topic()
    stage.do("DeleteTopics", deletion(topic))
    stage.until(lambda: there(stage, topic.name)[0] != "NONE", "deletion")
    stage.note("another", stage.topic().id != topic.id)


def widen(topic: Topic | str, count: int, *rows: list[int], validate_only: bool = False) -> dict[str, Plain]:
    name = topic if isinstance(topic, str) else topic.name
    assignments = [{"broker_ids": ids} for ids in rows] if rows else None
    row = {"name": name, "count": count, "assignments": assignments}
    return {"topics": [row], "timeout": 10_000, "validate_only": validate_only}


@scenario("CreatePartitions")
def more_partitions(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("CreatePartitions", widen(topic, 3))
    stage.await_topic(topic.name, 3)
    stage.note("there", there(stage, topic.name))


@table("CreatePartitions", as_many=(2,), fewer=(1,), none=(0,), negative=(-3,))
def count_of_partitions_that_cannot_be(stage: Stage, count: int) -> None:
    stage.ask("CreatePartitions", widen(stage.topic(partitions=2), count))


@scenario("CreatePartitions", at=(0, 3))
def more_partitions_assigned_by_hand(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    stage.ask("CreatePartitions", widen(topic, 3, [2, 3], [3, 1]))
    stage.await_topic(topic.name, 3)
    rows = stage.metadata(topic.name)["topics"][0]["partitions"]
    stage.note("replicas", sorted([row["partition_index"], row["replica_nodes"]] for row in rows))


@table(
    "CreatePartitions",
    at=(0, 3),
    too_few=([[2, 3]],),
    too_many=([[2, 3], [3, 1], [1, 2]],),
    other_replication=([[2, 3], [3]],),
    unknown_broker=([[2, 3], [3, 8]],),
    twice_the_same=([[2, 3], [3, 3]],),
    nobody=([[2, 3], []],),
)
def assignment_of_more_partitions_that_cannot_be(stage: Stage, rows: list[list[int]]) -> None:
    stage.ask("CreatePartitions", widen(stage.topic(replicas=(1, 2)), 3, *rows))


@scenario("CreatePartitions")
def more_partitions_only_validated(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("CreatePartitions", widen(topic, 3, validate_only=True))
    stage.note("there", there(stage, topic.name))


@scenario("CreatePartitions")
def more_partitions_of_an_unknown_topic(stage: Stage) -> None:
    stage.ask("CreatePartitions", widen(stage.name("missing"), 3))


@scenario("CreatePartitions", at=(0, 3))
def more_partitions_twice_in_one_request(stage: Stage) -> None:
    topic = stage.topic()
    rows: list[Any] = [widen(topic, count)["topics"][0] for count in (2, 3)]
    stage.ask("CreatePartitions", {"topics": rows, "timeout": 10_000})
