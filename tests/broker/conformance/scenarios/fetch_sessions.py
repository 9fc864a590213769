"""Incremental fetches: a session remembers what a consumer reads, and answers only what is new."""

from __future__ import annotations

from ..bodies import fetch, part, produce
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table

AT = (7, 12, 13, 18)


def opened(stage: Stage, topic: Topic, *partitions: int) -> int:
    said = stage.ask("Fetch", fetch(topic, *map(part, partitions or (0,)), session_id=0, session_epoch=0))
    session: int = said["session_id"]
    return session


def put(stage: Stage, topic: Topic, partition: int = 0) -> None:
    stage.do("Produce", produce(topic, {partition: Batch(at=stage.base_time).data()}))


def forget(topic: Topic, *partitions: int) -> list[dict[str, Plain]]:
    return [{"topic": topic.name, "topic_id": topic.id, "partitions": list(partitions)}]


@scenario("Fetch", at=AT)
def nothing_new(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    put(stage, topic)
    session = opened(stage, topic, 0, 1)
    stage.ask("Fetch", fetch(topic, part(0, 1), session_id=session, session_epoch=1))
    stage.ask("Fetch", fetch(session_id=session, session_epoch=2))


@scenario("Fetch", at=AT)
def only_what_is_new(stage: Stage) -> None:
    topic = stage.topic(partitions=3)
    session = opened(stage, topic, 0, 1, 2)
    put(stage, topic, 1)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))
    stage.ask("Fetch", fetch(topic, part(1, 1), session_id=session, session_epoch=2))
    put(stage, topic, 2)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=3))


@scenario("Fetch", at=AT)
def partition_added(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    put(stage, topic, 0)
    put(stage, topic, 1)
    session = opened(stage, topic, 0)
    stage.ask("Fetch", fetch(topic, part(1), session_id=session, session_epoch=1))


@scenario("Fetch", at=AT)
def partition_forgotten(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    session = opened(stage, topic, 0, 1)
    body = fetch(session_id=session, session_epoch=1, forgotten_topics_data=forget(topic, 0))
    stage.ask("Fetch", body)
    put(stage, topic, 0)
    put(stage, topic, 1)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=2))


@table(
    "Fetch",
    at=AT,
    same_again=(lambda epoch: epoch,),
    one_too_many=(lambda epoch: epoch + 2,),
)
def epoch_that_is_wrong(stage: Stage, wrong: Plain) -> None:
    topic = stage.topic()
    session = opened(stage, topic)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))
    stage.ask("Fetch", fetch(session_id=session, session_epoch=wrong(1)))


@scenario("Fetch", at=AT)
def session_that_is_not_there(stage: Stage) -> None:
    stage.ask("Fetch", fetch(stage.topic(), session_id=123_456, session_epoch=3))


@scenario("Fetch", at=AT)
def closed(stage: Stage) -> None:
    topic = stage.topic()
    session = opened(stage, topic)
    stage.ask("Fetch", fetch(topic, session_id=session, session_epoch=-1))
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))


@scenario("Fetch", at=AT)
def opened_anew(stage: Stage) -> None:
    """A full fetch with the id of an old session ends that one."""
    topic = stage.topic()
    session = opened(stage, topic)
    stage.ask("Fetch", fetch(topic, session_id=session, session_epoch=0))
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))


@scenario("Fetch", at=AT)
def no_session_wanted(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask("Fetch", fetch(topic, session_id=0, session_epoch=-1))


@scenario("Fetch", at=AT)
def error_stays_until_it_is_mended(stage: Stage) -> None:
    topic = stage.topic()
    session = opened(stage, topic, 0, 7)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))
    put(stage, topic)
    stage.ask("Fetch", fetch(session_id=session, session_epoch=2))


@scenario("Fetch", at=(12, 13, 18))
def session_of_another_broker(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    session = opened(stage, topic)
    said = stage.do("Fetch", fetch(session_id=session, session_epoch=1), to=2, version=stage.version("Fetch"))
    stage.note("error", said["error_code"])


@scenario("Fetch", at=(12, 13, 18))
def topic_deleted_meanwhile(stage: Stage) -> None:
    topic = stage.topic()
    session = opened(stage, topic)
    stage.do("DeleteTopics", {"topics": [{"name": topic.name}], "timeout": 5000})
    stage.until(lambda: stage.metadata(topic.name)["topics"][0]["error_code"] != "NONE", "deletion")
    stage.ask("Fetch", fetch(session_id=session, session_epoch=1))
