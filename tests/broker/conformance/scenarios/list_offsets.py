"""ListOffsets and DeleteRecords: the ends of a log, offsets for times, and a start that moves."""

from __future__ import annotations

from ..bodies import delete_records, fetch, list_offsets, part, produce
from ..records import GZIP, Batch
from ..scenario import Stage, Topic, scenario, table

VERSIONS = tuple(range(1, 12))
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def filled(stage: Stage) -> Topic:
    """Records at T, T+10 and T+20; T+15; T+30."""
    topic = stage.topic()
    stage.do("Produce", produce(topic, Batch((b"a", b"b", b"c"), at=stage.base_time, every=10)))
    stage.do("Produce", produce(topic, Batch((b"d",), at=stage.base_time + 15)))
    stage.do("Produce", produce(topic, Batch((b"e",), at=stage.base_time + 30)))
    return topic


@table(
    "ListOffsets",
    at=VERSIONS,
    latest=(LATEST,),
    earliest=(EARLIEST,),
)
def end(stage: Stage, timestamp: int) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), timestamp))


@table("ListOffsets", at=(6, 7, 9, 11), max_timestamp=(MAX_TIMESTAMP,), unknown=(-7,), far_below=(-100,))
def special(stage: Stage, timestamp: int) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), timestamp))


@scenario("ListOffsets", at=(7, 8, 9, 11))
def earliest_local(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), EARLIEST_LOCAL))


@scenario("ListOffsets", at=(8, 9, 10, 11))
def latest_tiered(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), LATEST_TIERED))


@scenario("ListOffsets", at=(10, 11))
def earliest_pending_upload(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), EARLIEST_PENDING_UPLOAD))


@table("ListOffsets", at=(1, 4, 7, 11), latest=(LATEST,), earliest=(EARLIEST,), time=(1,))
def empty_log(stage: Stage, timestamp: int) -> None:
    stage.ask("ListOffsets", list_offsets(stage.topic(), timestamp))


@scenario("ListOffsets", at=(7, 11))
def max_timestamp_of_an_empty_log(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(stage.topic(), MAX_TIMESTAMP))


@scenario("ListOffsets", at=(7, 11))
def max_timestamp_is_not_the_last(stage: Stage) -> None:
    topic = filled(stage)
    stage.do("Produce", produce(topic, Batch((b"f", b"g"), at=stage.base_time + 50)))
    stage.do("Produce", produce(topic, Batch((b"h",), at=stage.base_time + 5)))
    stage.ask("ListOffsets", list_offsets(topic, MAX_TIMESTAMP))


@table(
    "ListOffsets",
    at=(1, 5, 11),
    before_all=(-5,),
    of_the_first=(0,),
    within_a_batch=(7,),
    of_a_later_record=(20,),
    between_two_batches=(25,),
    of_the_last=(30,),
    after_all=(31,),
)
def time(stage: Stage, after: int) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), stage.base_time + after))


@scenario("ListOffsets", at=(5, 11))
def time_zero(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), 0))


@scenario("ListOffsets", at=(5, 11))
def time_within_a_compressed_batch(stage: Stage) -> None:
    topic = stage.topic()
    batch = Batch((b"a", b"b", b"c"), at=stage.base_time, every=10, attributes=GZIP)
    stage.do("Produce", produce(topic, batch))
    stage.ask("ListOffsets", list_offsets(topic, stage.base_time + 7))


@scenario("ListOffsets", at=(5, 11))
def time_of_deleted_records(stage: Stage) -> None:
    topic = filled(stage)
    stage.do("DeleteRecords", delete_records(topic, 2))
    stage.ask("ListOffsets", list_offsets(topic, stage.base_time))
    stage.ask("ListOffsets", list_offsets(topic, EARLIEST))


@scenario("ListOffsets", at=(5, 11))
def time_with_log_append_time(stage: Stage) -> None:
    topic = stage.topic(config={"message.timestamp.type": "LogAppendTime"})
    stage.do("Produce", produce(topic, Batch((b"a", b"b"), at=stage.base_time)))
    stage.ask("ListOffsets", list_offsets(topic, stage.base_time))
    stage.ask("ListOffsets", list_offsets(topic, MAX_TIMESTAMP))


@table("ListOffsets", at=(2, 5, 11), latest=(LATEST,), time=(1,))
def read_committed(stage: Stage, timestamp: int) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), timestamp, isolation=1))


@table("ListOffsets", at=(4, 7, 11), right=(0,), too_high=(3,), negative=(-8,))
def current_leader_epoch(stage: Stage, epoch: int) -> None:
    stage.ask("ListOffsets", list_offsets(filled(stage), LATEST, epoch=epoch))


@scenario("ListOffsets")
def unknown_topic(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(Topic(stage.name("missing"), ""), LATEST))


@table("ListOffsets", beyond=(7,), negative=(-1,))
def partition_that_is_not_there(stage: Stage, partition: int) -> None:
    stage.ask("ListOffsets", list_offsets(stage.topic(), LATEST, partition))


@scenario("ListOffsets")
def of_a_follower(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(stage.topic(replicas=(2, 1)), LATEST))


@scenario("ListOffsets")
def of_no_replica(stage: Stage) -> None:
    stage.ask("ListOffsets", list_offsets(stage.topic(replicas=(2, 3)), LATEST))


@scenario("ListOffsets", at=(1, 5, 11))
def a_partition_twice(stage: Stage) -> None:
    topic = filled(stage)
    rows = [{"partition_index": 0, "timestamp": LATEST}, {"partition_index": 0, "timestamp": EARLIEST}]
    body = {"replica_id": -1, "topics": [{"name": topic.name, "partitions": rows}], "timeout": 1000}
    stage.ask("ListOffsets", body)


@scenario("ListOffsets", at=(1, 11))
def no_topics(stage: Stage) -> None:
    stage.ask("ListOffsets", {"replica_id": -1, "topics": []})


@scenario("ListOffsets", at=(1, 5, 11))
def as_a_debugging_client(stage: Stage) -> None:
    """Replica -2 may ask anyone."""
    topic = stage.topic(replicas=(2, 1))
    stage.ask("ListOffsets", list_offsets(topic, LATEST) | {"replica_id": -2})


@table(
    "DeleteRecords",
    some=(2,),
    within_a_batch=(1,),
    all_by_minus_one=(-1,),
    all=(5,),
    nothing=(0,),
    beyond_the_end=(6,),
    minus_two=(-2,),
)
def records_deleted(stage: Stage, offset: int) -> None:
    topic = filled(stage)
    stage.ask("DeleteRecords", delete_records(topic, offset))
    stage.ask("ListOffsets", list_offsets(topic, EARLIEST))
    stage.ask("Fetch", fetch(topic, part(0, 3)))


@scenario("DeleteRecords")
def deleted_twice_and_backwards(stage: Stage) -> None:
    topic = filled(stage)
    for offset in (3, 3, 1):
        stage.ask("DeleteRecords", delete_records(topic, offset))


@scenario("DeleteRecords")
def produced_after_all_was_deleted(stage: Stage) -> None:
    topic = filled(stage)
    stage.ask("DeleteRecords", delete_records(topic, -1))
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))


@scenario("DeleteRecords")
def deleted_from_an_unknown_topic(stage: Stage) -> None:
    stage.ask("DeleteRecords", delete_records(Topic(stage.name("missing"), ""), 1))


@scenario("DeleteRecords")
def deleted_from_an_unknown_partition(stage: Stage) -> None:
    stage.ask("DeleteRecords", delete_records(stage.topic(), 0, 4))


@scenario("DeleteRecords")
def deleted_by_a_follower(stage: Stage) -> None:
    stage.ask("DeleteRecords", delete_records(stage.topic(replicas=(2, 1)), 0))


@scenario("DeleteRecords")
def deleted_from_a_compacted_topic(stage: Stage) -> None:
    topic = stage.topic(config={"cleanup.policy": "compact"})
    stage.do("Produce", produce(topic, Batch((b"v",), (b"k",), at=stage.base_time)))
    stage.ask("DeleteRecords", delete_records(topic, 1))


@scenario("DeleteRecords", at=(0, 2))
def deleted_from_nothing(stage: Stage) -> None:
    stage.ask("DeleteRecords", {"topics": [], "timeout": 1000})
