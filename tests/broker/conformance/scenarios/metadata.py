"""Metadata, DescribeCluster and DescribeTopicPartitions: who is there, and who leads what."""

from __future__ import annotations

from ..bodies import metadata
from ..messages import ZERO_ID
from ..scenario import Stage, Topic, scenario, table

UNKNOWN = "00000000-0000-0000-0000-00000000abcd"


@scenario("Metadata", at=(0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 13))
def a_topic(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.ask("Metadata", metadata(topic))


@scenario("Metadata")
def a_topic_that_is_not_there(stage: Stage) -> None:
    stage.ask("Metadata", metadata(stage.name("missing")))


@scenario("Metadata", at=(0, 1, 3))
def auto_creation_by_version(stage: Stage) -> None:
    """Before version 4 nobody could forbid it."""
    name = stage.name("made")
    stage.ask("Metadata", metadata(name))
    stage.await_topic(name, 1)
    (topic,) = stage.metadata(name)["topics"]
    stage.note("afterwards", [topic["error_code"], len(topic["partitions"])])


@scenario("Metadata", at=(4, 9, 13))
def auto_creation_where_it_is_allowed(stage: Stage) -> None:
    name = stage.name("made")
    stage.ask("Metadata", metadata(name, auto_create=True))
    stage.await_topic(name, 1)
    (topic,) = stage.metadata(name)["topics"]
    stage.note("afterwards", [topic["error_code"], len(topic["partitions"])])


@table(
    "Metadata",
    at=(1, 9, 12),
    empty=("",),
    with_a_slash=("a/b",),
    dot=(".",),
    two_dots=("..",),
    of_250_letters=("n" * 250,),
    with_a_space=("a b",),
    not_ascii=("zürich",),
)
def a_name_that_no_topic_can_have(stage: Stage, name: str) -> None:
    stage.ask("Metadata", metadata(name, auto_create=True))


@scenario("Metadata", at=(1, 9, 13))
def no_topics_asked_for(stage: Stage) -> None:
    stage.ask("Metadata", {"topics": []})


@scenario("Metadata", at=(0, 1, 8, 13))
def all_topics(stage: Stage) -> None:
    topic = stage.topic()
    said = stage.do(
        "Metadata", {"topics": None if stage.version("Metadata") else []}, version=stage.version("Metadata")
    )
    stage.note("this one", [row for row in said["topics"] if row["name"] == topic.name])


@scenario("Metadata", at=(1, 9, 12))
def a_topic_twice(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("Metadata", metadata(topic, topic))


@scenario("Metadata", at=(12, 13))
def by_id(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("Metadata", {"topics": [{"name": None, "topic_id": topic.id}]})


@scenario("Metadata", at=(10, 11, 12, 13))
def by_an_id_that_is_not_there(stage: Stage) -> None:
    stage.ask("Metadata", {"topics": [{"name": None, "topic_id": UNKNOWN}]})


@scenario("Metadata", at=(12, 13))
def by_name_and_by_id(stage: Stage) -> None:
    one, two = stage.topic("one"), stage.topic("two")
    rows = [{"name": one.name, "topic_id": ZERO_ID}, {"name": None, "topic_id": two.id}]
    stage.ask("Metadata", {"topics": rows})


@scenario("Metadata", at=(12, 13))
def neither_name_nor_id(stage: Stage) -> None:
    stage.ask("Metadata", {"topics": [{"name": None, "topic_id": ZERO_ID}]})


@scenario("Metadata", at=(8, 9, 10, 12))
def authorized_operations(stage: Stage) -> None:
    topic = stage.topic()
    more = {"include_topic_authorized_operations": True, "include_cluster_authorized_operations": True}
    stage.ask("Metadata", metadata(topic) | more)


@scenario("Metadata", at=(12,))
def every_broker_says_the_same(stage: Stage) -> None:
    topic = stage.topic(partitions=3, replicas=(2, 3))
    for broker in (1, 2, 3):
        stage.ask("Metadata", metadata(topic), to=broker)


@scenario("DescribeCluster")
def the_cluster(stage: Stage) -> None:
    stage.ask("DescribeCluster", {"include_cluster_authorized_operations": False})


@scenario("DescribeCluster")
def the_cluster_and_what_one_may_do(stage: Stage) -> None:
    stage.ask("DescribeCluster", {"include_cluster_authorized_operations": True})


@table("DescribeCluster", at=(1, 2), controllers=(2,), neither=(3,), unknown=(0,))
def endpoint_type(stage: Stage, kind: int) -> None:
    stage.ask("DescribeCluster", {"endpoint_type": kind})


def described(*topics: Topic | str) -> list[dict[str, str]]:
    return [{"name": topic if isinstance(topic, str) else topic.name} for topic in topics]


@scenario("DescribeTopicPartitions")
def partitions_of_a_topic(stage: Stage) -> None:
    stage.ask("DescribeTopicPartitions", {"topics": described(stage.topic(partitions=3))})


@scenario("DescribeTopicPartitions")
def partitions_of_an_unknown_topic(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("DescribeTopicPartitions", {"topics": described(stage.name("missing"), topic)})


@scenario("DescribeTopicPartitions")
def partitions_page_by_page(stage: Stage) -> None:
    one, two = stage.topic("a", partitions=3), stage.topic("b", partitions=2)
    body = {"topics": described(two, one), "response_partition_limit": 2}
    said = stage.ask("DescribeTopicPartitions", body)
    for _ in range(3):
        if said["next_cursor"] is None:
            break
        said = stage.ask("DescribeTopicPartitions", body | {"cursor": said["next_cursor"]})


@scenario("DescribeTopicPartitions")
def cursor_beyond_the_last_topic(stage: Stage) -> None:
    topic = stage.topic("a", partitions=2)
    cursor = {"topic_name": stage.name("b"), "partition_index": 0}
    stage.ask("DescribeTopicPartitions", {"topics": described(topic), "cursor": cursor})


@scenario("DescribeTopicPartitions")
def cursor_with_a_negative_partition(stage: Stage) -> None:
    topic = stage.topic("a", partitions=2)
    cursor = {"topic_name": topic.name, "partition_index": -1}
    stage.ask("DescribeTopicPartitions", {"topics": described(topic), "cursor": cursor})


@table("DescribeTopicPartitions", zero=(0,), negative=(-5,))
def partition_limit(stage: Stage, limit: int) -> None:
    topic = stage.topic("a", partitions=2)
    stage.ask("DescribeTopicPartitions", {"topics": described(topic), "response_partition_limit": limit})
