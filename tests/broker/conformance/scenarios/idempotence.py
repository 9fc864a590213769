"""Idempotent producers: InitProducerId, sequences, the window of five, epochs."""

from __future__ import annotations

from typing import Any

from ..bodies import delete_records, fetch, produce
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table


def producer(stage: Stage) -> Batch:
    said = stage.do("InitProducerId", {"transactional_id": None, "transaction_timeout": 60_000})
    return Batch(at=stage.base_time, producer_id=said["producer_id"], producer_epoch=0, sequence=0)


def batches(stage: Stage, topic: Topic, *batches: Batch) -> None:
    for batch in batches:
        stage.ask("Produce", produce(topic, batch))


@scenario("InitProducerId", at=(0, 1, 2, 3, 4, 5))
def new_id(stage: Stage) -> None:
    body = {"transactional_id": None, "transaction_timeout": 60_000}
    stage.ask("InitProducerId", body)
    stage.ask("InitProducerId", body)
    stage.ask("InitProducerId", body, to=2)


@table(
    "InitProducerId",
    at=(3, 4, 5),
    unknown_to_the_broker=({"producer_id": 123_456, "producer_epoch": 3},),
    epoch_without_an_id=({"producer_epoch": 3},),
    id_without_an_epoch=({"producer_id": 4},),
)
def id_given(stage: Stage, more: dict[str, int]) -> None:
    stage.ask("InitProducerId", {"transactional_id": None, "transaction_timeout": 60_000} | more)


@table("InitProducerId", empty_transactional_id=("", 60_000))
def init_with(stage: Stage, name: str, timeout: int) -> None:
    stage.ask("InitProducerId", {"transactional_id": name, "transaction_timeout": timeout})


@scenario("Produce")
def sequences_in_order(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, first, first.but(sequence=1, values=(b"a", b"b")), first.but(sequence=3))
    stage.ask("Fetch", fetch(topic))


@scenario("Produce")
def duplicate_gets_the_first_answer(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, first, first.but(sequence=1), first, first.but(sequence=1))
    stage.ask("Fetch", fetch(topic))


@scenario("Produce", at=(3, 9, 13))
def duplicates_within_the_window_of_five(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, *(first.but(sequence=number) for number in range(6)))
    batches(stage, topic, *(first.but(sequence=number) for number in range(6)))


@scenario("Produce")
def duplicate_with_log_append_time(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic(config={"message.timestamp.type": "LogAppendTime"})
    batches(stage, topic, first, first)


@table(
    "Produce",
    gap=([0, 2],),
    gap_of_many=([0, 1, 100],),
    first_is_not_zero=([5],),
    first_is_not_zero_and_goes_on=([5, 6],),
    back_beyond_the_window=([0, 1, 2, 3, 4, 5, 6, 0],),
    goes_on_after_a_gap_was_refused=([0, 2, 1, 2],),
)
def sequences(stage: Stage, numbers: list[int]) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, *(first.but(sequence=number) for number in numbers))


@scenario("Produce", at=(9,))
def half_a_duplicate(stage: Stage) -> None:
    """A batch that overlaps with one that was appended is no duplicate of it."""
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, first.but(values=(b"a", b"b")), first.but(values=(b"a",)), first.but(values=(b"a", b"b")))


@scenario("Produce", at=(9,))
def sequence_wraps(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    last = 2**31 - 1
    batches(stage, topic, first.but(sequence=last), first.but(sequence=0), first.but(sequence=1))


@scenario("Produce", at=(9,))
def sequence_wraps_within_a_batch(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    last = 2**31 - 1
    batches(stage, topic, first.but(sequence=last, values=(b"a", b"b", b"c")), first.but(sequence=2))
    batches(stage, topic, first.but(sequence=last, values=(b"a", b"b", b"c")))


@table(
    "Produce",
    next_starts_at_zero=([(0, 0), (1, 0), (1, 1)],),
    next_goes_on=([(0, 0), (1, 1)],),
    back_to_an_old_one=([(0, 0), (1, 0), (0, 1)],),
    old_duplicate=([(0, 0), (1, 0), (0, 0)],),
    leap=([(0, 0), (7, 0)],),
    first_is_not_zero=([(4, 0), (4, 1)],),
)
def epochs(stage: Stage, rows: list[tuple[int, int]]) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, *(first.but(producer_epoch=epoch, sequence=number) for epoch, number in rows))


@table(
    "Produce",
    at=(9,),
    negative_epoch=({"producer_epoch": -1},),
    negative_sequence=({"sequence": -1},),
    id_nobody_gave=({"producer_id": 987_654_321},),
    id_of_minus_two=({"producer_id": -2},),
)
def producer_with(stage: Stage, changes: dict[str, Any]) -> None:
    topic = stage.topic()
    batches(stage, topic, producer(stage).but(**changes))


@scenario("Produce", at=(9,))
def two_producers(stage: Stage) -> None:
    one, two, topic = producer(stage), producer(stage), stage.topic()
    batches(stage, topic, one, two, one.but(sequence=1), two.but(sequence=1), two, one)


@scenario("Produce", at=(9,))
def each_partition_counts_for_itself(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic(partitions=2)
    stage.ask("Produce", produce(topic, {0: first.data(), 1: first.data()}))
    stage.ask("Produce", produce(topic, {0: first.but(sequence=1).data(), 1: first.but(sequence=2).data()}))


@scenario("Produce", at=(9,))
def two_idempotent_batches_in_one_request(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    stage.ask("Produce", produce(topic, first.data() + first.but(sequence=1).data()))


@scenario("Produce", at=(9,))
def sequences_go_on_after_records_were_deleted(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, first, first.but(sequence=1))
    stage.do("DeleteRecords", delete_records(topic, -1))
    batches(stage, topic, first.but(sequence=1), first.but(sequence=2), first.but(sequence=9))


@scenario("Produce", at=(9,))
def sequences_go_on_under_another_leader(stage: Stage) -> None:
    first, topic = producer(stage), stage.topic()
    batches(stage, topic, first, first.but(sequence=1))
    body = {"timeout": 10_000, "topics": [
        {"name": topic.name, "partitions": [{"partition_index": 0, "replicas": [2, 3]}]}
    ]}  # fmt: skip
    stage.do("AlterPartitionReassignments", body)
    stage.await_leader(topic.name, 2)
    stage.ask("Produce", produce(topic, first.but(sequence=1)), to=2)
    stage.ask("Produce", produce(topic, first.but(sequence=2)), to=2)
    stage.ask("Produce", produce(topic, first.but(sequence=9)), to=2)


@scenario("DescribeProducers")
def producers_of_a_partition(stage: Stage) -> None:
    one, two, topic = producer(stage), producer(stage), stage.topic()
    batches(stage, topic, one, two, one.but(sequence=1, values=(b"a", b"b")))
    stage.ask("DescribeProducers", {"topics": [{"name": topic.name, "partition_indexes": [0]}]})


@scenario("DescribeProducers")
def producers_of_none(stage: Stage) -> None:
    topic = stage.topic()
    batches(stage, topic, Batch(at=stage.base_time))
    stage.ask("DescribeProducers", {"topics": [{"name": topic.name, "partition_indexes": [0]}]})


@scenario("DescribeProducers")
def producers_where_there_is_nothing(stage: Stage) -> None:
    topic = stage.topic(replicas=(2, 1, 3))
    rows = [
        {"name": topic.name, "partition_indexes": [0, 5]},
        {"name": stage.name("missing"), "partition_indexes": [0]},
    ]
    stage.ask("DescribeProducers", {"topics": rows})
