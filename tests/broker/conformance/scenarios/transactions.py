"""Transactions: the coordinator's answers, records that are verified, markers, and what readers see of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..bodies import Body, delete_records, fetch, list_offsets, part, produce
from ..records import TRANSACTIONAL, Batch
from ..scenario import Stage, Topic, scenario, table

STATE_TOPIC = "__transaction_state"
COMMITTED = 1
MINUTE = 60_000
UNKNOWN_ID = 123_456


class Till(NamedTuple):
    """A transactional id, and the producer that has it."""

    name: str
    producer_id: int
    epoch: int

    def but(self, **changes: Any) -> Till:
        return self._replace(**changes)

    def batch(self, stage: Stage, sequence: int = 0, *values: bytes) -> Batch:
        return Batch(
            values or (b"value",), at=stage.base_time, attributes=TRANSACTIONAL, producer_id=self.producer_id,
            producer_epoch=self.epoch, sequence=sequence,
        )  # fmt: skip

    @property
    def row(self) -> Body:
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}


def coordinated(stage: Stage) -> None:
    """Have broker 1 coordinate: all transactional ids are in one partition here."""
    stage.until(lambda: _coordinator(stage) >= 0, "a coordinator")
    if _coordinator(stage) != 1:
        row = {"partition_index": 0, "replicas": [1, 2, 3]}
        topics = [{"name": STATE_TOPIC, "partitions": [row]}]
        stage.do("AlterPartitionReassignments", {"timeout": 10_000, "topics": topics})
        partitions = [{"topic": STATE_TOPIC, "partitions": [0]}]
        stage.do("ElectLeaders", {"election_type": 0, "topic_partitions": partitions, "timeout": 10_000})
        stage.until(lambda: _coordinator(stage) == 1, "broker 1 as coordinator")
    # Brokers name a coordinator before it has read its state: begin again until it answers.
    begin(stage, init(stage.name("probe")))


def _coordinator(stage: Stage) -> int:
    said = stage.do("FindCoordinator", {"key_type": 1, "coordinator_keys": ["any"]})
    found: int = said["coordinators"][0]["node_id"]
    return found


def init(name: str | None, timeout: int = MINUTE, **more: Any) -> Body:
    return {"transactional_id": name, "transaction_timeout": timeout} | more


def till(stage: Stage, name: str = "till", timeout: int = MINUTE) -> Till:
    """A producer that has just begun, with a transactional id that no other scenario has."""
    coordinated(stage)
    full = stage.name(name)
    said = begin(stage, init(full, timeout))
    stage.knows("producer", said["producer_id"])
    return Till(full, said["producer_id"], said["producer_epoch"])


def begin(stage: Stage, body: Body) -> dict[str, Any]:
    """InitProducerId, once the coordinator is ready."""
    said: dict[str, Any] = {}

    def begun() -> bool:
        said.update(stage.do("InitProducerId", body))
        return bool(said["error_code"] == "NONE")

    stage.until(begun, "a producer id")
    return said


def add(one: Till, topic: Topic | str, *partitions: int) -> Body:
    """As clients ask for it, up to version 3."""
    name = topic if isinstance(topic, str) else topic.name
    return {
        "v3_and_below_transactional_id": one.name, "v3_and_below_producer_id": one.producer_id,
        "v3_and_below_producer_epoch": one.epoch,
        "v3_and_below_topics": [{"name": name, "partitions": list(partitions or (0,))}],
    }  # fmt: skip


def added(one: Till, topic: Topic, *partitions: int, verify_only: bool = False) -> Body:
    """One transaction of a request of a broker's, from version 4 on."""
    topics = [{"name": topic.name, "partitions": list(partitions or (0,))}]
    return one.row | {"verify_only": verify_only, "topics": topics}


def end(one: Till, commits: bool) -> Body:
    return one.row | {"committed": commits}


def marker(one: Till, topic: Topic | str, commits: bool, *partitions: int, **more: Any) -> Body:
    name = topic if isinstance(topic, str) else topic.name
    row = {
        "producer_id": one.producer_id, "producer_epoch": one.epoch, "transaction_result": commits,
        "coordinator_epoch": 0, "topics": [{"name": name, "partition_indexes": list(partitions or (0,))}],
    }  # fmt: skip
    return {"markers": [row | more]}


def write(stage: Stage, one: Till, topic: Topic, *values: bytes, sequence: int = 0, partition: int = 0) -> None:
    """Produce in a transaction, with the partition added by the broker."""
    data = one.batch(stage, sequence, *values).data()
    said = stage.do("Produce", produce(topic, {partition: data}, transactional_id=one.name))
    (row,) = said["responses"][0]["partition_responses"]
    if row["error_code"] != "NONE":
        raise RuntimeError(f"not produced: {row}")


def finish(stage: Stage, one: Till, commits: bool, version: int = 4) -> None:
    """End a transaction, under the same epoch unless the version is 5, and wait until it is over."""
    said = stage.do("EndTxn", end(one, commits), version=version)
    if said["error_code"] != "NONE":
        raise RuntimeError(f"not ended: {said}")
    await_state(stage, one, "CompleteCommit" if commits else "CompleteAbort")


def await_state(stage: Stage, one: Till, state: str) -> None:
    def reached() -> bool:
        said = stage.do("DescribeTransactions", {"transactional_ids": [one.name]})
        return bool(said["transaction_states"][0]["transaction_state"] == state)

    stage.until(reached, f"{one.name} in {state}")


def read(topic: Topic, offset: int = 0, **more: Any) -> Body:
    """A fetch of what is committed."""
    return fetch(topic, part(0, offset), isolation_level=COMMITTED, **more)


# -- a producer begins


@scenario("InitProducerId")
def first_and_next_of_an_id(stage: Stage) -> None:
    coordinated(stage)
    name = stage.name("till")
    for _ in range(3):
        stage.ask("InitProducerId", init(name))


@table(
    "InitProducerId",
    none=(0,),
    negative=(-1,),
    longest=(900_000,),
    too_long=(900_001,),
)
def time_out_of(stage: Stage, timeout: int) -> None:
    coordinated(stage)
    stage.ask("InitProducerId", init(stage.name("till"), timeout))


@scenario("InitProducerId", at=(5,))
def not_the_coordinator(stage: Stage) -> None:
    coordinated(stage)
    stage.ask("InitProducerId", init(stage.name("till")), to=2)


@table(
    "InitProducerId",
    at=(3, 4, 5),
    goes_on=([(0, 0)],),
    goes_on_twice=([(0, 0), (0, 1)],),
    asks_again=([(0, 0), (0, 0)],),
    asks_again_too_late=([(0, 0), (0, 1), (0, 0)],),
    epoch_to_come=([(0, 7)],),
    other_producer_id=([(1, 0)],),
)
def as_the_producer(stage: Stage, rows: list[tuple[int, int]]) -> None:
    """KIP-360: a producer names its id, here as a difference from its own, and its epoch."""
    one = till(stage)
    for more, epoch in rows:
        stage.ask("InitProducerId", init(one.name, producer_id=one.producer_id + more, producer_epoch=epoch))


@scenario("InitProducerId", at=(3, 4, 5))
def unknown_id_as_the_producer(stage: Stage) -> None:
    coordinated(stage)
    stage.ask("InitProducerId", init(stage.name("till"), producer_id=UNKNOWN_ID, producer_epoch=3))


@scenario("InitProducerId")
def begins_anew_while_a_transaction_is_open(stage: Stage) -> None:
    """It is aborted, and the producer that had it open is fenced."""
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    stage.ask("InitProducerId", init(one.name))
    await_state(stage, one, "CompleteAbort")
    stage.ask("InitProducerId", init(one.name))
    stage.ask("EndTxn", end(one, True), version=4)
    stage.ask("EndTxn", end(one, True), version=5)
    stage.ask("Produce", produce(topic, one.batch(stage, 1), transactional_id=one.name))
    stage.ask("Fetch", read(topic))


# -- partitions join


@table(
    "AddPartitionsToTxn",
    at=(0, 1, 2, 3),
    known=({}, 0),
    older_epoch=({"epoch": -1}, 0),
    newer_epoch=({"epoch": 1}, 0),
    other_producer_id=({"producer_id": UNKNOWN_ID}, 0),
    nobodys_id=({"name": "nobody"}, 0),
    id_without_a_name=({"name": ""}, 0),
    partition_that_is_missing=({}, 9),
)
def partition_joins(stage: Stage, changes: dict[str, Any], partition: int) -> None:
    one, topic = till(stage), stage.topic(partitions=2)
    stage.ask("AddPartitionsToTxn", add(one.but(**changes), topic, 0, partition or 1))
    described(stage, one)


@scenario("AddPartitionsToTxn", at=(3,))
def partition_joins_twice(stage: Stage) -> None:
    one, topic = till(stage), stage.topic(partitions=2)
    for partitions in ((0,), (0,), (0, 1), (1,)):
        stage.ask("AddPartitionsToTxn", add(one, topic, *partitions))
    described(stage, one)


@scenario("AddPartitionsToTxn", at=(3,))
def partition_of_a_topic_that_is_missing(stage: Stage) -> None:
    one = till(stage)
    stage.ask("AddPartitionsToTxn", add(one, stage.name("missing"), 0))


@table(
    "AddPartitionsToTxn",
    at=(4, 5),
    verified_and_in_it=(True, (0,), {}),
    verified_and_not_in_it=(True, (1,), {}),
    verified_in_part=(True, (0, 1), {}),
    verified_for_an_older_epoch=(True, (0,), {"epoch": -1}),
    verified_for_another_producer_id=(True, (0,), {"producer_id": UNKNOWN_ID}),
    verified_for_nobodys_id=(True, (0,), {"name": "nobody"}),
    added=(False, (0, 1), {}),
    added_for_an_older_epoch=(False, (0, 1), {"epoch": -1}),
    added_and_missing=(False, (0, 9), {}),
)
def brokers_ask(stage: Stage, verify_only: bool, partitions: tuple[int, ...], changes: dict[str, Any]) -> None:
    one, topic = till(stage), stage.topic(partitions=2)
    stage.do("AddPartitionsToTxn", add(one, topic, 0), version=3)
    asked = added(one.but(**changes), topic, *partitions, verify_only=verify_only)
    stage.ask("AddPartitionsToTxn", {"transactions": [asked]})


@scenario("AddPartitionsToTxn", at=(4, 5))
def brokers_ask_for_several(stage: Stage) -> None:
    one, other, topic = till(stage), till(stage, "other"), stage.topic()
    asked = [added(one, topic), added(other.but(epoch=5), topic), added(other, topic, verify_only=True)]
    stage.ask("AddPartitionsToTxn", {"transactions": asked[:2]})
    stage.ask("AddPartitionsToTxn", {"transactions": asked[2:]})


@table(
    "AddOffsetsToTxn",
    known=({},),
    older_epoch=({"epoch": -1},),
    other_producer_id=({"producer_id": UNKNOWN_ID},),
    nobodys_id=({"name": "nobody"},),
    id_without_a_name=({"name": ""},),
)
def offsets_join(stage: Stage, changes: dict[str, Any]) -> None:
    one = till(stage)
    stage.ask("AddOffsetsToTxn", one.but(**changes).row | {"group_id": "readers"})
    described(stage, one)


# -- the end


@table("EndTxn", at=(0, 2, 4, 5), commit=(True,), abort=(False,))
def ends(stage: Stage, commits: bool) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic, b"a", b"b")
    stage.ask("EndTxn", end(one, commits))
    await_state(stage, one, "CompleteCommit" if commits else "CompleteAbort")
    described(stage, one)
    stage.ask("Fetch", read(topic))
    stage.ask("Fetch", fetch(topic))


@table("EndTxn", at=(4, 5), commit=(True,), abort=(False,))
def ends_before_anything_was_added(stage: Stage, commits: bool) -> None:
    one = till(stage)
    said = stage.ask("EndTxn", end(one, commits))
    if said["error_code"] == "NONE":
        await_state(stage, one, "CompleteAbort")
    described(stage, one)


@table(
    "EndTxn",
    at=(4, 5),
    commit_and_commit=(True, True),
    commit_and_abort=(True, False),
    abort_and_commit=(False, True),
    abort_and_abort=(False, False),
)
def ends_twice(stage: Stage, first: bool, second: bool) -> None:
    """Once as a request that is sent again, once as a new one, with the epoch that the first one gave."""
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    said = stage.ask("EndTxn", end(one, first))
    await_state(stage, one, "CompleteCommit" if first else "CompleteAbort")
    stage.ask("EndTxn", end(one, second))
    if stage.version("EndTxn") == 5:
        stage.ask("EndTxn", end(one.but(epoch=said["producer_epoch"]), second))


@table(
    "EndTxn",
    at=(1, 2, 4, 5),
    older_epoch=({"epoch": -1},),
    newer_epoch=({"epoch": 1},),
    other_producer_id=({"producer_id": UNKNOWN_ID},),
    nobodys_id=({"name": "nobody"},),
    id_without_a_name=({"name": ""},),
)
def ends_what_is_not_its_own(stage: Stage, changes: dict[str, Any]) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    stage.ask("EndTxn", end(one.but(**changes), True))
    described(stage, one)


@scenario("EndTxn", at=(4, 5))
def one_after_another(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    for number in range(3):
        write(stage, one, topic, b"%d" % number, sequence=0 if stage.version("EndTxn") == 5 else number)
        said = stage.ask("EndTxn", end(one, number != 1))
        await_state(stage, one, "CompleteAbort" if number == 1 else "CompleteCommit")
        if stage.version("EndTxn") == 5:
            one = one.but(epoch=said["producer_epoch"])
    stage.ask("Fetch", read(topic))
    stage.ask("DescribeProducers", {"topics": [{"name": topic.name, "partition_indexes": [0]}]})


@scenario("InitProducerId", at=(5,))
def begins_anew_after_transactions_of_either_protocol(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    finish(stage, one, True)
    stage.ask("InitProducerId", init(one.name))
    other = till(stage, "other")
    write(stage, other, topic)
    finish(stage, other, True, version=5)
    stage.ask("InitProducerId", init(other.name))
    third = till(stage, "third")
    write(stage, third, topic)
    finish(stage, third, False, version=5)
    stage.ask("InitProducerId", init(third.name, producer_id=third.producer_id, producer_epoch=third.epoch + 1))


@scenario("EndTxn", at=(4, 5))
def time_is_over(stage: Stage) -> None:
    """The coordinator aborts it, and fences its producer."""
    one, topic = till(stage, timeout=500), stage.topic()
    write(stage, one, topic)
    stage.brokers.hasten(3.0)
    await_state(stage, one, "CompleteAbort")
    described(stage, one)
    stage.ask("EndTxn", end(one, True))
    stage.ask("Produce", produce(topic, one.batch(stage, 1), transactional_id=one.name))
    stage.ask("InitProducerId", init(one.name, producer_id=one.producer_id, producer_epoch=one.epoch))
    stage.ask("Fetch", read(topic))


# -- records


@scenario("Produce", at=(3, 9, 10, 11, 12, 13))
def partition_was_not_added(stage: Stage) -> None:
    """Up to version 11 that is an error, from 12 on the broker adds it."""
    one, topic = till(stage), stage.topic()
    stage.ask("Produce", produce(topic, one.batch(stage), transactional_id=one.name))
    described(stage, one)


@scenario("Produce", at=(3, 11, 12, 13))
def partition_was_added(stage: Stage) -> None:
    one, topic = till(stage), stage.topic(partitions=2)
    stage.do("AddPartitionsToTxn", add(one, topic, 0), version=3)
    stage.ask("Produce", produce(topic, one.batch(stage), transactional_id=one.name))
    stage.ask("Produce", produce(topic, one.batch(stage, 1), transactional_id=one.name))
    stage.ask("Produce", produce(topic, {1: one.batch(stage).data()}, transactional_id=one.name))


@table(
    "Produce",
    at=(3, 11, 13),
    older_epoch=({"epoch": -1},),
    newer_epoch=({"epoch": 1},),
    other_producer_id=({"producer_id": UNKNOWN_ID},),
    nobodys_id=({"name": "nobody"},),
    id_without_a_name=({"name": ""},),
)
def producer_that_is_not_its_own(stage: Stage, changes: dict[str, Any]) -> None:
    one, topic = till(stage), stage.topic()
    stage.do("AddPartitionsToTxn", add(one, topic, 0), version=3)
    other = one.but(**changes)
    stage.ask("Produce", produce(topic, other.batch(stage), transactional_id=other.name))


@table("Produce", at=(3, 11, 13), first=(5, 0), gap=(0, 2), back=(1, 0))
def sequence_in_a_transaction(stage: Stage, first: int, second: int) -> None:
    one, topic = till(stage), stage.topic()
    stage.do("AddPartitionsToTxn", add(one, topic, 0), version=3)
    stage.ask("Produce", produce(topic, one.batch(stage, first), transactional_id=one.name))
    stage.ask("Produce", produce(topic, one.batch(stage, second), transactional_id=one.name))


@scenario("Produce", at=(3, 11, 13))
def record_outside_of_the_transaction_that_is_open(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    outside = one.batch(stage, 1).but(attributes=0)
    stage.ask("Produce", produce(topic, outside, transactional_id=one.name))
    stage.ask("Produce", produce(topic, outside))


@scenario("Produce", at=(3, 11, 13))
def two_producers_in_one_request(stage: Stage) -> None:
    one, other, topic = till(stage), till(stage, "other"), stage.topic(partitions=2)
    records = {0: one.batch(stage).data(), 1: other.batch(stage).data()}
    stage.ask("Produce", produce(topic, records, transactional_id=one.name))


@table("Produce", at=(11, 13), old_epoch=(0,), new_epoch=(1,))
def records_after_the_end(stage: Stage, more: int) -> None:
    """What comes late does not get into the next transaction, where the epoch grows with each."""
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    finish(stage, one, True, version=5)
    late = one.but(epoch=one.epoch + more)
    stage.ask("Produce", produce(topic, late.batch(stage, 0 if more else 1), transactional_id=one.name))


@scenario("Produce", at=(11, 13))
def records_after_the_end_of_the_old_protocol(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    finish(stage, one, True)
    stage.ask("Produce", produce(topic, one.batch(stage, 1), transactional_id=one.name))


@scenario("Produce", at=(13,))
def duplicate_in_a_transaction(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    for sequence in (0, 0, 1, 0):
        stage.ask("Produce", produce(topic, one.batch(stage, sequence), transactional_id=one.name))


# -- what readers see


def two_producers(stage: Stage) -> tuple[Till, Till, Topic]:
    """Records of two transactions and of none, mixed."""
    one, other, topic = till(stage), till(stage, "other"), stage.topic()
    stage.do("Produce", produce(topic, Batch((b"first",), at=stage.base_time)))
    write(stage, one, topic, b"a", b"b")
    write(stage, other, topic, b"c")
    write(stage, one, topic, b"d", sequence=2)
    stage.do("Produce", produce(topic, Batch((b"last",), at=stage.base_time)))
    return one, other, topic


@scenario("Fetch")
def nothing_of_what_is_open(stage: Stage) -> None:
    _, _, topic = two_producers(stage)
    for offset in (0, 1, 3, 6):
        stage.ask("Fetch", read(topic, offset))
    stage.ask("Fetch", fetch(topic))


@table(
    "Fetch",
    commits=([("one", True)],),
    aborts=([("one", False)],),
    both_commit=([("one", True), ("other", True)],),
    both_abort=([("one", False), ("other", False)],),
    the_later_aborts_first=([("other", False), ("one", True)],),
    the_later_commits_first=([("other", True), ("one", False)],),
)
def once_it_has_ended(stage: Stage, ends: list[tuple[str, bool]]) -> None:
    one, other, topic = two_producers(stage)
    for name, commits in ends:
        finish(stage, one if name == "one" else other, commits)
    for offset in (0, 2, 4, 6, 7):
        stage.ask("Fetch", read(topic, offset))


@scenario("Fetch")
def many_that_were_aborted(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    for number in range(4):
        write(stage, one, topic, b"%d" % number, sequence=number)
        finish(stage, one, False)
    for offset in range(9):
        stage.ask("Fetch", read(topic, offset))


@table("ListOffsets", open=(None,), committed=(True,), aborted=(False,))
def offsets_of(stage: Stage, commits: bool | None) -> None:
    one, other, topic = two_producers(stage)
    if commits is not None:
        finish(stage, one, commits)
        stage.brokers.hasten(0.1)  # that one marker is the last
        finish(stage, other, commits)
    for timestamp in _timestamps(stage):
        for isolation in (0, COMMITTED):
            stage.ask("ListOffsets", list_offsets(topic, timestamp, isolation=isolation))


def _timestamps(stage: Stage) -> Iterator[int]:
    yield from (-1, -2, stage.base_time)
    if stage.version("ListOffsets") >= 7:
        yield -3


@scenario("Fetch", at=(4, 12, 18))
def a_fetch_waits_for_the_last_stable_offset(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    waiting = stage.later("Fetch", read(topic, max_wait=30_000, min_bytes=1))
    waiting.waits()
    write(stage, one, topic, b"more", sequence=1)
    waiting.waits()
    finish(stage, one, True)
    waiting.answer()


@scenario("Fetch", at=(4, 12, 18))
def records_of_an_aborted_transaction_were_deleted(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    for number in range(2):
        write(stage, one, topic, b"%d" % number, sequence=number)
        finish(stage, one, False)
    stage.do("DeleteRecords", delete_records(topic, 2))
    stage.ask("Fetch", read(topic, 2))
    stage.ask("Fetch", read(topic))


@scenario("DescribeProducers")
def producers_of_a_transaction(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    body = {"topics": [{"name": topic.name, "partition_indexes": [0]}]}
    write(stage, one, topic, b"a", b"b")
    stage.ask("DescribeProducers", body)
    finish(stage, one, True)
    stage.ask("DescribeProducers", body)


# -- markers, as coordinators and tools write them


@table(
    "WriteTxnMarkers",
    at=(1, 2),
    commit=({}, True),
    abort=({}, False),
    of_an_older_epoch=({"epoch": -1}, False),
    of_the_next_epoch=({"epoch": 1}, False),
    of_nobody=({"producer_id": UNKNOWN_ID}, True),
)
def marker_is_written(stage: Stage, changes: dict[str, Any], commits: bool) -> None:
    till(stage)  # so that there is an older epoch
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    stage.ask("WriteTxnMarkers", marker(one.but(**changes), topic, commits))
    stage.ask("Fetch", read(topic))
    stage.ask("DescribeProducers", {"topics": [{"name": topic.name, "partition_indexes": [0]}]})


@table(
    "WriteTxnMarkers",
    at=(2,),
    of_the_same_epoch=([0],),
    of_the_next_epoch=([1],),
    of_the_next_epoch_twice=([1, 1],),
    of_an_older_epoch=([-1],),
    back=([1, 0],),
)
def marker_where_epochs_grow(stage: Stage, epochs: list[int]) -> None:
    """KIP-1228."""
    till(stage)  # so that there is an older epoch
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    for more in epochs:
        stage.ask("WriteTxnMarkers", marker(one.but(epoch=one.epoch + more), topic, True, transaction_version=2))
    stage.ask("Fetch", read(topic))


@table("WriteTxnMarkers", at=(1, 2), newer_first=([5, 4],), same=([5, 5],), older_first=([4, 5],))
def marker_of_coordinators(stage: Stage, coordinators: list[int]) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    for epoch in coordinators:
        stage.ask("WriteTxnMarkers", marker(one, topic, True, coordinator_epoch=epoch))


@scenario("WriteTxnMarkers")
def marker_where_there_is_nothing(stage: Stage) -> None:
    one, topic = till(stage), stage.topic(replicas=(2, 1, 3))
    stage.ask("WriteTxnMarkers", marker(one, topic, True, 0, 5))
    stage.ask("WriteTxnMarkers", marker(one, stage.name("missing"), True))
    stage.ask("WriteTxnMarkers", {"markers": []})


@scenario("Produce", at=(13,))
def records_after_a_marker_by_hand(stage: Stage) -> None:
    one, topic = till(stage), stage.topic()
    write(stage, one, topic)
    stage.do("WriteTxnMarkers", marker(one, topic, False))
    stage.ask("Produce", produce(topic, one.batch(stage, 1), transactional_id=one.name))
    stage.ask("Fetch", read(topic))


# -- how transactional ids stand


def described(stage: Stage, *tills: Till) -> None:
    """The order of partitions has no meaning."""
    said = stage.do("DescribeTransactions", {"transactional_ids": [one.name for one in tills]})
    for state in said["transaction_states"]:
        for topic in state["topics"]:
            topic["partitions"].sort()
    stage.note("DescribeTransactions", said)


@scenario("DescribeTransactions")
def states(stage: Stage) -> None:
    fresh, open_one, ended, topic = till(stage), till(stage, "open"), till(stage, "ended"), stage.topic(partitions=3)
    stage.do("AddPartitionsToTxn", add(open_one, topic, 2, 0), version=3)
    write(stage, ended, topic)
    finish(stage, ended, True)
    described(stage, fresh, open_one, ended)


@table("DescribeTransactions", nobodys=(["nobody"],), without_a_name=([""],), none=([],), twice=(["nobody"] * 2,))
def states_of(stage: Stage, names: list[str]) -> None:
    coordinated(stage)
    stage.ask("DescribeTransactions", {"transactional_ids": names})


@scenario("DescribeTransactions")
def states_at_another_broker(stage: Stage) -> None:
    one = till(stage)
    stage.ask("DescribeTransactions", {"transactional_ids": [one.name]}, to=2)


@table(
    "ListTransactions",
    at=(0, 1, 2),
    all=({},),
    by_state=({"state_filters": ["Ongoing"]},),
    by_several_states=({"state_filters": ["Ongoing", "Empty"]},),
    by_a_state_that_is_none=({"state_filters": ["Asleep"]},),
    by_a_state_and_one_that_is_none=({"state_filters": ["Asleep", "Empty"]},),
    by_duration=({"duration_filter": 3_600_000},),
    by_no_duration=({"duration_filter": 0},),
)
def listed(stage: Stage, filters: Body) -> None:
    fresh, open_one, topic = till(stage), till(stage, "open"), stage.topic()
    stage.do("AddPartitionsToTxn", add(open_one, topic), version=3)
    stage.brokers.hasten(1.0)
    ids = [fresh.producer_id, open_one.producer_id]
    stage.ask("ListTransactions", {"state_filters": [], "producer_id_filters": ids} | filters)


@table("ListTransactions", at=(2,), whole=("{}till",), part=("till",), any_end=("{}t.*",), wrong=("[",), empty=("",))
def listed_by_pattern(stage: Stage, pattern: str) -> None:
    one = till(stage)
    body = {"state_filters": [], "producer_id_filters": [one.producer_id]}
    stage.ask("ListTransactions", body | {"transactional_id_pattern": pattern.format(one.name.removesuffix("till"))})
