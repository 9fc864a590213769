"""What waits: acknowledgements of all, long polls, deletions; each until it may end or its time is up.

Broker 3 stands still in these, as under SIGSTOP. It leads nothing and is not the active controller.
"""

from __future__ import annotations

from ..bodies import delete_records, fetch, list_offsets, part, produce
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table
from ..settings import LAG_SECONDS


def caught_up(stage: Stage, topic: Topic, batch: Batch | None = None) -> None:
    """All three replicas have something, and stay in sync for a while though one stands still from now on."""
    said = stage.do("Produce", produce(topic, batch or Batch(at=stage.base_time)))
    error = said["responses"][0]["partition_responses"][0]["error_code"]
    if error != "NONE":
        raise RuntimeError(error)


@scenario("Produce")
def acks_of_all_time_out(stage: Stage) -> None:
    """K2: what was appended stays."""
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=800))
        pending.waits(0.4)
        stage.brokers.hasten(0.41)
        pending.answer()
        stage.ask("ListOffsets", list_offsets(topic, -1))
    stage.until(lambda: high_watermark(stage, topic) == 2, "the copy on broker 3")
    stage.ask("ListOffsets", list_offsets(topic, -1))


def high_watermark(stage: Stage, topic: Topic) -> int:
    said = stage.do("Fetch", fetch(topic))
    found: int = said["responses"][0]["partitions"][0]["high_watermark"]
    return found


@scenario("Produce")
def acks_of_all_wait_until_the_follower_goes_on(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=15_000))
        pending.waits(0.3)
    pending.answer()


@scenario("Produce", at=(9,))
def acks_of_the_leader_do_not_wait(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=1))
        stage.note("high watermark", high_watermark(stage, topic))


@scenario("Produce", at=(9,))
def consumers_do_not_see_what_is_not_everywhere(stage: Stage) -> None:
    """K4."""
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        stage.do("Produce", produce(topic, Batch(at=stage.base_time), acks=1))
        stage.ask("Fetch", fetch(topic, part(0, 0)))
        stage.ask("Fetch", fetch(topic, part(0, 1)))
        stage.ask("Fetch", fetch(topic, part(0, 2)))
        stage.ask("Fetch", fetch(topic, part(0, 3)))
        stage.ask("ListOffsets", list_offsets(topic, -1))


@scenario("Produce", at=(9,))
def time_out_of_nothing(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=0))
        stage.brokers.await_read(1)
        stage.brokers.hasten(0.01)
        pending.answer()


@scenario("Produce", at=(9,))
def negative_time_out(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=-5))
        stage.brokers.await_read(1)
        stage.brokers.hasten(0.01)
        pending.answer()


@scenario("Produce", at=(9, 13))
def one_partition_of_two_times_out(stage: Stage) -> None:
    """Each partition has its own answer; an error in one does not hasten the other."""
    both, alone = stage.topic("both"), stage.topic("alone", replicas=(1, 2))
    caught_up(stage, both)
    caught_up(stage, alone)
    with stage.paused(3):
        batch = Batch(at=stage.base_time).data()
        body = produce(both, {0: batch, 5: batch}, timeout=600)
        body["topic_data"] += produce(alone, {0: batch})["topic_data"]
        pending = stage.later("Produce", body)
        pending.waits(0.3)
        stage.brokers.hasten(0.31)
        pending.answer()


@scenario("Produce", at=(9,))
def duplicate_waits_like_the_first(stage: Stage) -> None:
    topic = stage.topic()
    said = stage.do("InitProducerId", {"transactional_id": None, "transaction_timeout": 60_000})
    batch = Batch(at=stage.base_time, producer_id=said["producer_id"], producer_epoch=0, sequence=0)
    caught_up(stage, topic, batch)
    with stage.paused(3):
        following = batch.but(sequence=1)
        first = stage.later("Produce", produce(topic, following, timeout=15_000))
        first.waits()
        second = stage.later("Produce", produce(topic, following, timeout=600))
        second.waits(0.3)
        stage.brokers.hasten(0.31)
        second.answer()
        first.waits()
    first.answer()
    stage.ask("Produce", produce(topic, following))


@scenario("Produce", at=(9, 13))
def follower_leaves_and_the_produce_succeeds(stage: Stage) -> None:
    """After replica.lag.time.max.ms two of three are in sync, and that is enough."""
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=18_000))
        pending.waits(0.3)
        stage.brokers.hasten(LAG_SECONDS * 2)
        pending.answer()
        stage.until(lambda: in_sync(stage, topic) == [1, 2], "two in sync")
        stage.note("in sync", in_sync(stage, topic))
    stage.until(lambda: in_sync(stage, topic) == [1, 2, 3], "three in sync")


def in_sync(stage: Stage, topic: Topic) -> list[int]:
    return sorted(stage.metadata(topic.name)["topics"][0]["partitions"][0]["isr_nodes"])


@scenario("Produce", at=(9, 13))
def follower_leaves_and_too_few_are_left(stage: Stage) -> None:
    """The high watermark stands still then: what waits times out, and what comes later is refused."""
    topic = stage.topic(config={"min.insync.replicas": "3"})
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Produce", produce(topic, Batch(at=stage.base_time), timeout=int(LAG_SECONDS * 2000)))
        pending.waits(0.3)
        stage.brokers.hasten(LAG_SECONDS * 2)
        pending.answer()
        stage.until(lambda: in_sync(stage, topic) == [1, 2], "two in sync")
        stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))
        stage.ask("Produce", produce(topic, Batch(at=stage.base_time), acks=1))
        stage.note("high watermark", high_watermark(stage, topic))
        stage.ask("ListOffsets", list_offsets(topic, -1))
    stage.until(lambda: in_sync(stage, topic) == [1, 2, 3], "three in sync")
    stage.ask("Produce", produce(topic, Batch(at=stage.base_time)))


@scenario("Fetch", at=(4, 12, 18))
def long_poll_ends_at_max_wait(stage: Stage) -> None:
    pending = stage.later("Fetch", fetch(stage.topic(), min_bytes=1, max_wait=600))
    pending.waits(0.3)
    stage.brokers.hasten(0.31)
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_ends_with_a_record(stage: Stage) -> None:
    topic = stage.topic()
    pending = stage.later("Fetch", fetch(topic, min_bytes=1, max_wait=15_000))
    pending.waits()
    stage.do("Produce", produce(topic, Batch(at=stage.base_time)))
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_waits_for_the_last_byte(stage: Stage) -> None:
    """K3."""
    topic = stage.topic()
    size = len(Batch((b"v" * 100,)).data())
    pending = stage.later("Fetch", fetch(topic, min_bytes=3 * size, max_wait=15_000))
    for _ in range(2):
        stage.do("Produce", produce(topic, Batch((b"v" * 100,), at=stage.base_time)))
        pending.waits()
    stage.do("Produce", produce(topic, Batch((b"v" * 100,), at=stage.base_time)))
    pending.answer()


@scenario("Fetch", at=(4, 18))
def long_poll_ends_with_what_there_is(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    pending = stage.later("Fetch", fetch(topic, min_bytes=100_000, max_wait=600))
    pending.waits(0.3)
    stage.brokers.hasten(0.31)
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_counts_all_partitions(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    size = len(Batch((b"v" * 100,)).data())
    pending = stage.later("Fetch", fetch(topic, part(0), part(1), min_bytes=2 * size, max_wait=15_000))
    for index in (0, 1):
        pending.waits()
        stage.do("Produce", produce(topic, {index: Batch((b"v" * 100,), at=stage.base_time).data()}))
    pending.answer()


@scenario("Fetch", at=(4, 18))
def long_poll_counts_no_more_than_it_would_read(stage: Stage) -> None:
    """A partition counts for what its own maximum allows."""
    topic = stage.topic(partitions=2)
    pending = stage.later("Fetch", fetch(topic, part(0, partition_max_bytes=50), min_bytes=200, max_wait=2000))
    pending.waits()
    stage.do("Produce", produce(topic, Batch((b"v" * 1000,), at=stage.base_time)))
    pending.waits(0.3)
    stage.brokers.hasten(1.71)
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_waits_for_the_high_watermark(stage: Stage) -> None:
    """What is appended but not everywhere does not count."""
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("Fetch", fetch(topic, part(0, 1), min_bytes=1, max_wait=15_000))
        pending.waits()
        stage.do("Produce", produce(topic, Batch(at=stage.base_time), acks=1))
        pending.waits(0.2)
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_ends_when_the_topic_is_deleted(stage: Stage) -> None:
    topic = stage.topic()
    pending = stage.later("Fetch", fetch(topic, min_bytes=1, max_wait=15_000))
    pending.waits()
    stage.do("DeleteTopics", {"topics": [{"name": topic.name}], "timeout": 5000})
    pending.answer()


@scenario("Fetch", at=(4, 12, 18))
def long_poll_ends_when_the_leader_moves(stage: Stage) -> None:
    topic = stage.topic(replicas=(1, 2))
    pending = stage.later("Fetch", fetch(topic, min_bytes=1, max_wait=15_000))
    pending.waits()
    row: dict[str, Plain] = {"partition_index": 0, "replicas": [2]}
    stage.do("AlterPartitionReassignments", {"topics": [{"name": topic.name, "partitions": [row]}]})
    # Who leads then is told, or not yet, as it happens.
    stage.note("error", pending.receive()["responses"][0]["partitions"][0]["error_code"])


@scenario("Fetch", at=(7, 12, 18))
def long_poll_in_a_session(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    said = stage.do("Fetch", fetch(topic, part(0), part(1), session_epoch=0), version=stage.version("Fetch"))
    body = fetch(session_id=said["session_id"], session_epoch=1, min_bytes=1, max_wait=15_000)
    pending = stage.later("Fetch", body)
    pending.waits()
    stage.do("Produce", produce(topic, {1: Batch(at=stage.base_time).data()}))
    pending.answer()


@scenario("Fetch", at=(12,))
def records_deleted_under_a_long_poll(stage: Stage) -> None:
    """A log start that moves is nothing to end for."""
    topic = stage.topic()
    caught_up(stage, topic)
    pending = stage.later("Fetch", fetch(topic, part(0, 1), min_bytes=1, max_wait=2500))
    pending.waits()
    stage.do("DeleteRecords", delete_records(topic, 1))
    pending.waits(0.4)
    stage.brokers.hasten(2.11)
    pending.answer()


@scenario("DeleteRecords")
def deletion_times_out(stage: Stage) -> None:
    """K6."""
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("DeleteRecords", delete_records(topic, 1, timeout=800))
        pending.waits(0.4)
        stage.brokers.hasten(0.41)
        pending.answer()
        stage.ask("ListOffsets", list_offsets(topic, -2))


@scenario("DeleteRecords")
def deletion_waits_until_the_follower_goes_on(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        pending = stage.later("DeleteRecords", delete_records(topic, 1, timeout=15_000))
        pending.waits(0.3)
    pending.answer()


@scenario("DeleteRecords", at=(2,))
def deletion_of_what_is_not_everywhere(stage: Stage) -> None:
    topic = stage.topic()
    caught_up(stage, topic)
    with stage.paused(3):
        stage.do("Produce", produce(topic, Batch(at=stage.base_time), acks=1))
        stage.ask("DeleteRecords", delete_records(topic, 2))


@table("Metadata", at=(12,), of_a_paused_one=(3,))
def metadata_though_a_broker_stands_still(stage: Stage, broker: int) -> None:
    topic = stage.topic()
    with stage.paused(broker):
        (found,) = stage.metadata(topic.name)["topics"]
        stage.note("in sync", sorted(found["partitions"][0]["isr_nodes"]))


@scenario("Produce", at=(9,))
def a_connection_waits_for_its_own_answers(stage: Stage) -> None:
    """K10: what comes after a request that waits is answered after it."""
    topic = stage.topic()
    connection = stage.connect()
    connection.send("Fetch", 12, fetch(topic, min_bytes=1, max_wait=15_000))
    connection.send("Metadata", 12, {"topics": []})
    stage.note("no answer", connection.is_waiting(0.2))
    stage.do("Produce", produce(topic, Batch(at=stage.base_time)))
    stage.note("first", "responses" in connection.receive())
    stage.note("second", "brokers" in connection.receive())
