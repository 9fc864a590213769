"""Fetch: what a consumer is given, how much of it, and what it is told of errors."""

from __future__ import annotations

import struct

from ..bodies import delete_records, fetch, metadata, part, produce
from ..messages import ZERO_ID
from ..records import GZIP, Batch
from ..scenario import Stage, Topic, scenario, table

UNKNOWN = "00000000-0000-0000-0000-00000000abcd"
VERSIONS = tuple(range(4, 19))


def filled(stage: Stage, batches: int = 3, size: int = 5, partitions: int = 1) -> Topic:
    """Batches of one record each on every partition."""
    topic = stage.topic(partitions=partitions)
    for number in range(batches):
        batch = Batch((bytes([97 + number]) * size,), at=stage.base_time + number)
        stage.do("Produce", produce(topic, dict.fromkeys(range(partitions), batch.data())))
    return topic


@scenario("Fetch", at=VERSIONS)
def from_the_beginning(stage: Stage) -> None:
    stage.ask("Fetch", fetch(filled(stage, 2)))


@table("Fetch", middle=(1,), end=(3,), beyond=(4,), far_beyond=(1000,), negative=(-1,))
def offset(stage: Stage, offset: int) -> None:
    stage.ask("Fetch", fetch(filled(stage), part(0, offset)))


@scenario("Fetch")
def offset_within_a_batch(stage: Stage) -> None:
    """Whole batches come, from the one that holds the offset."""
    topic = stage.topic()
    stage.do("Produce", produce(topic, Batch((b"a", b"b", b"c"), at=stage.base_time)))
    stage.do("Produce", produce(topic, Batch((b"d", b"e"), at=stage.base_time, attributes=GZIP)))
    stage.ask("Fetch", fetch(topic, part(0, 1)))
    stage.ask("Fetch", fetch(topic, part(0, 4)))


@scenario("Fetch")
def empty_partition(stage: Stage) -> None:
    stage.ask("Fetch", fetch(stage.topic()))


@scenario("Fetch")
def below_the_log_start(stage: Stage) -> None:
    topic = filled(stage)
    stage.do("DeleteRecords", delete_records(topic, 2))
    stage.ask("Fetch", fetch(topic, part(0, 1)))
    stage.ask("Fetch", fetch(topic, part(0, 2)))


@table(
    "Fetch",
    at=(4, 12, 18),
    partition_max_of_nothing=(0, 1 << 20),
    partition_max_of_one_byte=(1, 1 << 20),
    partition_max_of_one_batch_and_a_half=(120, 1 << 20),
    max_of_nothing=(1 << 20, 0),
    max_of_one_byte=(1 << 20, 1),
    max_of_one_batch_and_a_half=(1 << 20, 120),
    both_negative=(-1, -1),
)
def bytes_at_most(stage: Stage, of_the_partition: int, of_all: int) -> None:
    """The first batch of the first partition that has any may exceed."""
    topic = filled(stage)
    stage.ask("Fetch", fetch(topic, part(partition_max_bytes=of_the_partition), max_bytes=of_all))


@table("Fetch", at=(4, 12, 18), of_one_batch=(80,), of_two=(160,), of_all=(1000,))
def bytes_over_two_partitions(stage: Stage, most: int) -> None:
    topic = filled(stage, 2, partitions=2)
    stage.ask("Fetch", fetch(topic, part(0), part(1), max_bytes=most))


@scenario("Fetch", at=(4, 18))
def one_batch_that_exceeds_comes_from_one_partition_only(stage: Stage) -> None:
    topic = filled(stage, 1, 2000, partitions=2)
    stage.ask("Fetch", fetch(topic, part(0, partition_max_bytes=100), part(1, partition_max_bytes=100)))


@scenario("Fetch", at=(4, 18))
def first_partition_is_empty(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.do("Produce", produce(topic, {1: Batch((b"v" * 500,), at=stage.base_time).data()}))
    stage.ask("Fetch", fetch(topic, part(0, partition_max_bytes=10), part(1, partition_max_bytes=10)))


@scenario("Fetch")
def unknown_topic(stage: Stage) -> None:
    stage.ask("Fetch", fetch(Topic(stage.name("missing"), UNKNOWN)))


@scenario("Fetch", at=(13, 15, 18))
def topic_id_of_zero(stage: Stage) -> None:
    stage.ask("Fetch", fetch(Topic("", ZERO_ID)))


@table("Fetch", beyond=(7,), negative=(-1,))
def partition_that_is_not_there(stage: Stage, partition: int) -> None:
    stage.ask("Fetch", fetch(filled(stage, 1), part(partition)))


@scenario("Fetch")
def from_a_follower(stage: Stage) -> None:
    """A consumer may read there."""
    topic = stage.topic(replicas=(2, 1))
    stage.do("Produce", produce(topic, Batch(at=stage.base_time)), to=2)
    stage.until(lambda: stage.do("Fetch", fetch(topic))["responses"][0]["partitions"][0]["high_watermark"] == 1, "copy")
    stage.ask("Fetch", fetch(topic))


@scenario("Fetch")
def from_no_replica(stage: Stage) -> None:
    stage.ask("Fetch", fetch(stage.topic(replicas=(2, 3))))


@scenario("Fetch")
def good_and_bad_partitions_together(stage: Stage) -> None:
    topic = filled(stage, 1, partitions=2)
    stage.ask("Fetch", fetch(topic, part(0), part(1, 50), part(9)))


@scenario("Fetch")
def error_does_not_wait(stage: Stage) -> None:
    topic = filled(stage, 1)
    stage.ask("Fetch", fetch(topic, part(0, 50), max_wait=15_000, min_bytes=10_000))


@table("Fetch", at=(4, 9, 12, 18), read_uncommitted=(0,), read_committed=(1,), unknown=(7,))
def isolation(stage: Stage, level: int) -> None:
    stage.ask("Fetch", fetch(filled(stage, 1), isolation_level=level))


@table("Fetch", at=(9, 12, 18), right=(0,), too_high=(5,), none=(-1,), negative=(-7,))
def current_leader_epoch(stage: Stage, epoch: int) -> None:
    stage.ask("Fetch", fetch(filled(stage, 1), part(current_leader_epoch=epoch)))


@table(
    "Fetch",
    at=(12, 15, 18),
    same=(0, 1),
    same_at_the_end=(0, 2),
    beyond_the_end=(0, 9),
    later_than_any=(4, 1),
    none=(-1, 1),
)
def last_fetched_epoch(stage: Stage, epoch: int, offset: int) -> None:
    stage.ask("Fetch", fetch(filled(stage, 2), part(0, offset, last_fetched_epoch=epoch)))


@scenario("Fetch", at=(4, 18))
def no_topics(stage: Stage) -> None:
    stage.ask("Fetch", fetch())


@scenario("Fetch", at=(4, 12, 18))
def a_partition_twice(stage: Stage) -> None:
    stage.ask("Fetch", fetch(filled(stage, 1), part(0), part(0)))


@scenario("Fetch", at=(4, 18))
def nothing_to_wait_for(stage: Stage) -> None:
    """min.bytes of one, nothing there, max.wait of nothing."""
    stage.ask("Fetch", fetch(stage.topic(), min_bytes=1, max_wait=0))


@table("Fetch", at=(4, 18), of_minus_one=(-1,), of_a_day_but_enough_is_there=(86_400_000,))
def max_wait(stage: Stage, wait: int) -> None:
    stage.ask("Fetch", fetch(filled(stage, 1), max_wait=wait, min_bytes=1))


@scenario("Fetch", at=(11, 12, 18))
def rack_of_a_consumer(stage: Stage) -> None:
    """Without a replica selector every consumer reads from the leader."""
    stage.ask("Fetch", fetch(filled(stage, 1), rack_id="a rack"))


@scenario("Fetch", at=(12, 18))
def as_a_follower_that_is_none(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    stage.ask("Fetch", fetch(topic) | {"replica_id": 3, "replica_state": {"replica_id": 3, "replica_epoch": -1}})


@scenario("Fetch", at=(4, 12))
def topic_that_was_made_anew(stage: Stage) -> None:
    topic = filled(stage, 1)
    stage.do("DeleteTopics", {"topics": [{"name": topic.name}], "timeout": 5000})
    stage.until(lambda: stage.metadata(topic.name)["topics"][0]["error_code"] != "NONE", "deletion")
    again = stage.topic()
    stage.ask("Fetch", fetch(again))
    stage.note("another id", again.id != topic.id)


@scenario("Fetch", at=(13, 18))
def by_an_id_from_before(stage: Stage) -> None:
    topic = filled(stage, 1)
    stage.do("DeleteTopics", {"topics": [{"name": topic.name}], "timeout": 5000})
    stage.until(lambda: stage.metadata(topic.name)["topics"][0]["error_code"] != "NONE", "deletion")
    stage.topic()
    stage.ask("Fetch", fetch(topic))


@scenario("Fetch", at=(12,))
def size_of_an_empty_answer(stage: Stage) -> None:
    """Empty records are written as such, not as null."""
    topic = stage.topic()
    connection = stage.connect()
    connection.ask("Metadata", 12, metadata(topic))
    connection.send("Fetch", 12, fetch(topic))
    data = connection.receive_frame()
    stage.note("the records' length and what follows", list(data[-8:]))
    stage.note("correlation id", struct.unpack(">i", data[:4]))
