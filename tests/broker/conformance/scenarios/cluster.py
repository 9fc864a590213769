"""DescribeLogDirs and FindCoordinator: where logs are, and who coordinates."""

from __future__ import annotations

from ..bodies import produce
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table


def logs(stage: Stage, topics: list[dict[str, Plain]] | None, topic: Topic, to: int = 1) -> None:
    said = stage.do("DescribeLogDirs", {"topics": topics}, to=to, version=stage.version("DescribeLogDirs"))
    for row in said["results"]:
        row["topics"] = [one for one in row["topics"] if one["name"] == topic.name]
    stage.note("DescribeLogDirs", said)


@scenario("DescribeLogDirs")
def log_of_a_topic(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.do("Produce", produce(topic, Batch(at=stage.base_time)))
    logs(stage, [{"topic": topic.name, "partitions": [0, 1]}], topic)


@scenario("DescribeLogDirs")
def logs_of_all_topics(stage: Stage) -> None:
    topic = stage.topic()
    logs(stage, None, topic)


@scenario("DescribeLogDirs")
def log_that_is_not_there(stage: Stage) -> None:
    topic = Topic(stage.name("missing"), "")
    logs(stage, [{"topic": topic.name, "partitions": [0]}], topic)


@scenario("DescribeLogDirs", at=(1, 5))
def log_on_another_broker(stage: Stage) -> None:
    topic = stage.topic(replicas=(2,))
    logs(stage, [{"topic": topic.name, "partitions": [0]}], topic)


def coordinator(kind: int, *keys: str) -> dict[str, Plain]:
    return {"key": keys[0] if keys else "", "key_type": kind, "coordinator_keys": list(keys)}


def who(stage: Stage, said: dict[str, Plain]) -> list[Plain]:
    """Errors, and whether a broker is named."""
    rows = said.get("coordinators", [said])
    return [[row["error_code"], row.get("error_message"), row["node_id"] in (1, 2, 3), row["port"] > 0] for row in rows]


@scenario("FindCoordinator", at=(0, 1, 2, 3, 4, 5, 6))
def of_a_group(stage: Stage) -> None:
    body = coordinator(0, "group")
    first = stage.do("FindCoordinator", body)["coordinators"][0]
    stage.until(lambda: stage.do("FindCoordinator", body)["coordinators"][0]["error_code"] == "NONE", str(first))
    stage.note("coordinator", who(stage, stage.do("FindCoordinator", body, version=stage.version("FindCoordinator"))))


@scenario("FindCoordinator", at=(4, 6))
def of_several_groups(stage: Stage) -> None:
    body = coordinator(0, "one", "two", "three")
    stage.until(lambda: stage.do("FindCoordinator", body)["coordinators"][0]["error_code"] == "NONE", "coordinator")
    said = stage.do("FindCoordinator", body, version=stage.version("FindCoordinator"))
    stage.note("coordinators", [sorted(row["key"] for row in said["coordinators"]), who(stage, said)])


@scenario("FindCoordinator", at=(4, 6))
def of_no_group(stage: Stage) -> None:
    stage.ask("FindCoordinator", coordinator(0))


@scenario("FindCoordinator", at=(0, 3, 6))
def of_a_group_without_a_name(stage: Stage) -> None:
    stage.note("coordinator", who(stage, stage.do("FindCoordinator", coordinator(0, ""))))


@table("FindCoordinator", at=(1, 4, 6), unknown=(7,), negative=(-1,))
def of_a_kind_that_does_not_exist(stage: Stage, kind: int) -> None:
    body = coordinator(kind, "key")
    stage.note("coordinator", who(stage, stage.do("FindCoordinator", body, version=stage.version("FindCoordinator"))))
