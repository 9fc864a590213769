"""Produce: what is kept, what is refused, and with which error."""

from __future__ import annotations

from typing import Any

from ..bodies import fetch, list_offsets, produce
from ..messages import ZERO_ID
from ..records import CONTROL, GZIP, LOG_APPEND_TIME, TRANSACTIONAL, ZSTD, Batch, old_message
from ..scenario import Stage, Topic, scenario, table

UNKNOWN = "00000000-0000-0000-0000-00000000abcd"
THREE = (b"one", b"two", b"three")
DAY = 86_400_000


def written(stage: Stage, topic: Topic, batch: Batch | bytes, **config: Any) -> None:
    """Produce at the scenario's version, then read what is kept."""
    stage.ask("Produce", produce(topic, batch, **config))
    stage.ask("Fetch", fetch(topic))


@scenario("Produce", at=(3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13))
def three_records(stage: Stage) -> None:
    written(stage, stage.topic(), Batch(THREE, at=stage.base_time, every=2))


@table("Produce", of_the_leader=(1,), of_all=(-1,))
def acks(stage: Stage, acks: int) -> None:
    topic = stage.topic()
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=acks))
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=acks))


@table("Produce", two=(2,), minus_two=(-2,), seven=(7,))
def acks_that_do_not_exist(stage: Stage, acks: int) -> None:
    topic = stage.topic()
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=acks))
    stage.ask("ListOffsets", list_offsets(topic, -1))


@scenario("Produce")
def acks_of_nobody(stage: Stage) -> None:
    """No answer: the next one on the connection is that to the next request."""
    topic = stage.topic()
    connection = stage.connect()
    connection.send("Produce", stage.version("Produce"), produce(topic, Batch(at=stage.base_time), acks=0))
    connection.expect_no_answer()
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=1), over=connection)


@scenario("Produce")
def acks_of_nobody_and_an_error(stage: Stage) -> None:
    """The only way to tell: the connection is closed."""
    topic = stage.topic(replicas=(2, 3))
    connection = stage.connect()
    connection.send("Produce", stage.version("Produce"), produce(topic, Batch(at=stage.base_time), acks=0))
    connection.expect_no_answer()
    stage.ask("Metadata", {"topics": []}, over=connection)


@scenario("Produce")
def not_the_leader(stage: Stage) -> None:
    topic = stage.topic(replicas=(2, 1, 3))
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))


@scenario("Produce")
def not_even_a_replica(stage: Stage) -> None:
    topic = stage.topic(replicas=(2, 3))
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))


@scenario("Produce")
def topic_that_is_not_there(stage: Stage) -> None:
    stage.ask("Produce", produce(Topic(stage.name("missing"), UNKNOWN), Batch(at=stage.base_time)))


@scenario("Produce", at=(13,))
def topic_id_of_zero(stage: Stage) -> None:
    stage.ask("Produce", produce(Topic("", ZERO_ID), Batch(at=stage.base_time)))


@scenario("Produce", at=(3, 9, 12))
def name_that_no_topic_can_have(stage: Stage) -> None:
    stage.ask("Produce", produce(Topic("a/b", ZERO_ID), Batch(at=stage.base_time)))


@table("Produce", beyond=(5,), negative=(-1,))
def partition_that_is_not_there(stage: Stage, partition: int) -> None:
    stage.ask("Produce", produce(stage.topic(), {partition: Batch(at=stage.base_time).data()}))


@scenario("Produce")
def some_partitions_good_and_some_not(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    good = Batch(at=stage.base_time)
    stage.ask("Produce", produce(topic, {0: good.data(), 1: good.but(crc=1).data(), 7: good.data()}))


@scenario("Produce")
def no_topics(stage: Stage) -> None:
    stage.ask("Produce", {"acks": -1, "timeout": 1000, "topic_data": []})


@scenario("Produce")
def no_records(stage: Stage) -> None:
    stage.ask("Produce", produce(stage.topic(), {0: b""}))


@table(
    "Produce",
    at=(3, 9, 12, 13),
    corrupt_crc=({"crc": 12345},),
    magic_1_in_the_header=({"magic": 1},),
    magic_3=({"magic": 3},),
    count_below_the_records=({"count": 2},),
    count_above_the_records=({"count": 9},),
    count_negative=({"count": -1},),
    last_offset_delta_too_small=({"last_offset_delta": 0},),
    last_offset_delta_too_large=({"last_offset_delta": 12},),
    offset_deltas_with_a_gap=({"offset_deltas": (0, 2, 5)},),
    offset_deltas_that_go_back=({"offset_deltas": (2, 1, 0)},),
    length_too_small=({"length": 10},),
    length_beyond_the_data=({"length": 10_000},),
    length_negative=({"length": -3},),
    control_batch=({"attributes": CONTROL},),
    transactional_without_an_id=({"attributes": TRANSACTIONAL, "producer_id": 7, "producer_epoch": 0, "sequence": 0},),
    payload_that_is_no_record=({"payload": b"\xff" * 20},),
    payload_that_is_not_gzip=({"attributes": GZIP, "payload": b"not gzip at all"},),
    codec_that_does_not_exist=({"attributes": 5},),
    base_offset_of_a_hundred=({"base_offset": 100},),
    leader_epoch_of_nine=({"leader_epoch": 9},),
    sequence_without_a_producer=({"sequence": 4},),
    log_append_time_from_a_client=({"attributes": LOG_APPEND_TIME},),
    max_timestamp_too_small=({"max_timestamp": 0},),
)
def batch_with(stage: Stage, changes: dict[str, Any]) -> None:
    written(stage, stage.topic(), Batch(THREE, at=stage.base_time, every=2).but(**changes))


@table("Produce", at=(3, 9), magic_0=(0,), magic_1=(1,))
def message_of_an_old_format(stage: Stage, magic: int) -> None:
    stage.ask("Produce", produce(stage.topic(), old_message(b"old", magic, stage.base_time)))


@scenario("Produce")
def two_batches_for_one_partition(stage: Stage) -> None:
    batch = Batch(at=stage.base_time)
    written(stage, stage.topic(), batch.data() + batch.data())


@scenario("Produce")
def bytes_after_the_batch(stage: Stage) -> None:
    written(stage, stage.topic(), Batch(at=stage.base_time).data() + b"more")


@scenario("Produce", at=(9, 13))
def nulls_and_keys(stage: Stage) -> None:
    written(stage, stage.topic(), Batch((b"v", None, b"", b"v"), (b"k", b"k", None, b""), at=stage.base_time))


@table("Produce", gzip=(GZIP,), zstd=(ZSTD,))
def compressed(stage: Stage, codec: int) -> None:
    written(stage, stage.topic(), Batch(THREE, attributes=codec, at=stage.base_time, every=1))


@table("Produce", at=(3, 6, 7), before_version_seven=(ZSTD,))
def zstd(stage: Stage, codec: int) -> None:
    stage.ask("Produce", produce(stage.topic(), Batch(THREE, attributes=codec, at=stage.base_time)))


@table(
    "Produce",
    at=(9,),
    nothing_to_gzip=("gzip", 0),
    gzip_to_nothing=("uncompressed", GZIP),
    gzip_to_gzip=("gzip", GZIP),
)
def topic_with_its_own_codec(stage: Stage, wanted: str, codec: int) -> None:
    topic = stage.topic(config={"compression.type": wanted})
    written(stage, topic, Batch(THREE, attributes=codec, at=stage.base_time, every=1))


@scenario("Produce", at=(3, 9, 12))
def too_large(stage: Stage) -> None:
    topic = stage.topic(config={"max.message.bytes": "1000"})
    written(stage, topic, Batch((b"v" * 990,), at=stage.base_time))


@scenario("Produce", at=(9,))
def as_large_as_allowed(stage: Stage) -> None:
    batch = Batch((b"v" * 900,), at=stage.base_time)
    topic = stage.topic(config={"max.message.bytes": str(len(batch.data()))})
    written(stage, topic, batch)
    stage.ask("Produce", produce(topic, batch.but(values=(b"v" * 901,))))


@scenario("Produce", at=(9,))
def batch_beyond_a_segment(stage: Stage) -> None:
    topic = stage.topic(config={"segment.bytes": "1048576", "max.message.bytes": "3000000"})
    stage.ask("Produce", produce(topic, Batch((b"v" * 2_000_000,), at=stage.base_time)))


@scenario("Produce", at=(3, 9, 13))
def log_append_time(stage: Stage) -> None:
    topic = stage.topic(config={"message.timestamp.type": "LogAppendTime"})
    written(stage, topic, Batch(THREE, at=stage.base_time, every=2))


@scenario("Produce", at=(9,))
def log_append_time_compressed(stage: Stage) -> None:
    topic = stage.topic(config={"message.timestamp.type": "LogAppendTime"})
    written(stage, topic, Batch(THREE, at=stage.base_time, every=2, attributes=GZIP))


@table(
    "Produce",
    at=(3, 8, 9, 13),
    none=({"at": -1, "max_timestamp": -1},),
    two_hours_ahead=({"ahead": 3 * 3_600_000},),
    a_year_back=({"ahead": -365 * DAY},),
)
def timestamp(stage: Stage, changes: dict[str, int]) -> None:
    ahead = changes.get("ahead", 0)
    batch = Batch(THREE, at=stage.base_time + ahead)
    if not ahead:
        batch = batch.but(**changes)
    stage.ask("Produce", produce(stage.topic(), batch))


@table(
    "Produce",
    at=(3, 8, 9, 13),
    before=("message.timestamp.before.max.ms", -2 * DAY),
    after=("message.timestamp.after.max.ms", 2 * DAY),
)
def timestamp_out_of_bounds(stage: Stage, setting: str, ahead: int) -> None:
    topic = stage.topic(config={setting: str(DAY)})
    written(stage, topic, Batch(THREE, at=stage.base_time + ahead, every=1))


@scenario("Produce", at=(9,))
def one_timestamp_of_three_out_of_bounds(stage: Stage) -> None:
    topic = stage.topic(config={"message.timestamp.after.max.ms": str(DAY)})
    stage.ask("Produce", produce(topic, Batch(THREE, at=stage.base_time, every=DAY)))


@scenario("Produce", at=(9,))
def compacted_topic_without_a_key(stage: Stage) -> None:
    topic = stage.topic(config={"cleanup.policy": "compact"})
    written(stage, topic, Batch((b"one", b"two"), (b"k", None), at=stage.base_time))


@scenario("Produce", at=(9,))
def compacted_topic_with_keys(stage: Stage) -> None:
    topic = stage.topic(config={"cleanup.policy": "compact"})
    written(stage, topic, Batch((b"one", b"two"), (b"k", b"k"), at=stage.base_time))


@scenario("Produce")
def more_replicas_in_sync_wanted_than_there_are(stage: Stage) -> None:
    """A topic of two replicas never needs three."""
    topic = stage.topic(replicas=(1, 2), config={"min.insync.replicas": "3"})
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))
    stage.ask("ListOffsets", list_offsets(topic, -1))


@scenario("Produce", at=(9, 12, 13))
def internal_topic(stage: Stage) -> None:
    """Clients may not write where coordinators do."""
    stage.do("FindCoordinator", {"key": "g", "coordinator_keys": ["g"]})
    stage.until(lambda: _is_there(stage, "__consumer_offsets"), "__consumer_offsets")
    (row,) = stage.metadata("__consumer_offsets")["topics"]
    leader = row["partitions"][0]["leader_id"]
    topic = Topic("__consumer_offsets", row["topic_id"])
    index = row["partitions"][0]["partition_index"]
    said = stage.do("Produce", produce(topic, {index: Batch(at=stage.base_time).data()}), to=leader)
    stage.note("error", said["responses"][0]["partition_responses"][0]["error_code"])


def _is_there(stage: Stage, name: str) -> bool:
    (row,) = stage.metadata(name)["topics"]
    return row["error_code"] == "NONE" and all(part["leader_id"] > 0 for part in row["partitions"])


@scenario("Produce", at=(9,))
def after_the_topic_is_gone(stage: Stage) -> None:
    topic = stage.topic()
    stage.do("DeleteTopics", {"topic_names": [topic.name], "topics": [{"name": topic.name}], "timeout": 5000})
    stage.until(lambda: not _is_there(stage, topic.name), "deletion")
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))


@scenario("Produce", at=(9,))
def size_of_the_log(stage: Stage) -> None:
    """Offsets count records, not batches."""
    topic = stage.topic()
    for count in (1, 5, 2):
        stage.ask("Produce", produce(topic, Batch((b"v",) * count, at=stage.base_time)))
    stage.ask("Fetch", fetch(topic))
