"""What coordinators share: state in a topic, told once it is replicated, and read by the next leader (K1, K7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import Cluster
from abeyant.broker.coordinator import shard as shards
from abeyant.broker.coordinator.coordinator import Coordinator
from abeyant.broker.coordinator.shard import Shard
from abeyant.broker.coordinator.topics import OFFSETS, TRANSACTIONS, ensure_topic, java_hash, partition_for
from abeyant.broker.errors import ApiError
from abeyant.broker.log import Batch
from abeyant.broker.log.records import Record
from abeyant.broker.wire.schema import ErrorCode
from broker.wire import WireClient

KEY = "a group"
FIND_COORDINATOR = 10


class Table(Shard):
    """The last value of each key."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rows: dict[bytes, bytes] = {}
        self.transactions: list[tuple[int, int, bool]] = []
        self.life = "new"

    def replay(self, record: Record, batch: Batch) -> None:
        assert record.key is not None
        if record.value is None:
            self.rows.pop(record.key, None)
        else:
            self.rows[record.key] = bytes(reversed(record.value.decode("ascii").encode()))

    def end_transaction(self, producer_id: int, offset: int, *, commits: bool) -> None:
        self.transactions.append((producer_id, offset, commits))

    def begin(self) -> None:
        self.life = "begun"

    def end(self) -> None:
        self.life = "ended"


class Tables:
    """A coordinator of tables in every broker."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.coordinators: dict[int, Coordinator[Table]] = {}
        kafka._on_loop(self._begin)

    def _begin(self) -> None:
        for number in self.kafka.brokers:
            self.adopt(number)
        self.partitions = len(ensure_topic(self.kafka.controller, self.kafka.settings, TRANSACTIONS).partitions)
        self.kafka.network.settle()

    def adopt(self, number: int) -> None:
        broker = self.kafka.brokers[number]
        self.coordinators[number] = broker.coordinators[TRANSACTIONS.name] = Coordinator(broker, TRANSACTIONS, Table)
        for partition in broker.partitions.values():
            broker._update_coordinator(partition)

    @property
    def leader(self) -> int:
        """Who coordinates KEY."""
        found = self.kafka.leader(TRANSACTIONS.name, partition_for(KEY, self.partitions))
        assert found is not None
        return found

    def shard(self, broker: int) -> Table | ErrorCode:
        """The shard of KEY at a broker, or why there is none."""

        def ask() -> Table | ErrorCode:
            try:
                return self.coordinators[broker].shard(KEY)
            except ApiError as error:
                return error.code

        return self.kafka._on_loop(ask)

    def write(self, broker: int, *entries: tuple[bytes, bytes | None], **more: Any) -> list[ErrorCode]:
        """Write, and return the list that what comes of it is put into."""
        shard = self.shard(broker)
        assert isinstance(shard, Table)
        told: list[ErrorCode] = []

        def write() -> None:
            shard.write(list(entries), told.append, timeout=5.0, **more)
            self.kafka.network.settle()

        self.kafka._on_loop(write)
        return told

    def rows(self, broker: int) -> dict[bytes, bytes]:
        shard = self.shard(broker)
        assert isinstance(shard, Table)
        return shard.rows


@contextmanager
def tables(brokers: int = 3, **more: Any) -> Iterator[Tables]:
    with Cluster(brokers, clock="held", **more) as kafka:
        yield Tables(kafka)


def test_keys_go_where_java_sends_them() -> None:
    assert [java_hash(text) for text in ("", "group", "polygenelubricants", "a𝄞")] == [
        0, 98629247, 0, (97 * 31**2 + 0xD834 * 31 + 0xDD1E) % 2**31,
    ]  # fmt: skip
    assert partition_for("group", 50) == 47


def test_k1_what_is_written_is_told_once_every_in_sync_replica_has_it() -> None:
    with tables() as table:
        leader = table.leader
        follower = leader % 3 + 1
        with table.kafka.paused(follower):
            told = table.write(leader, (b"key", b"value"))
            assert table.rows(leader) == {b"key": b"eulav"}  # known here, and not told yet
            assert told == []
            (waiting,) = table.kafka.waiting("Produce")
            assert waiting.keys == ((TRANSACTIONS.name, partition_for(KEY, table.partitions)),)
        assert told == [ErrorCode.none]


def test_a_write_that_takes_too_long_is_told_so_and_stays() -> None:
    with tables() as table:
        leader = table.leader
        with table.kafka.paused(leader % 3 + 1):
            told = table.write(leader, (b"key", b"value"))
            table.kafka.clock.advance(4.9)
            assert told == []
            table.kafka.clock.advance(0.11)
            assert told == [ErrorCode.coordinator_not_available]
        assert table.rows(leader) == {b"key": b"eulav"}
        assert [record.key for record in table.kafka.records(TRANSACTIONS.name)] == [b"key"]


def test_with_too_few_replicas_nothing_is_written() -> None:
    with tables() as table:
        leader = table.leader
        table.kafka.stop(leader % 3 + 1)
        table.kafka.stop((leader + 1) % 3 + 1)
        assert table.write(leader, (b"key", b"value")) == [ErrorCode.coordinator_not_available]
        assert table.rows(leader) == {}


def test_a_coordinator_that_moves_is_read_by_the_next_leader() -> None:
    with tables() as table:
        first = table.leader
        old = table.shard(first)
        assert isinstance(old, Table)
        assert old.life == "begun"
        assert table.write(first, (b"one", b"1"), (b"two", b"2")) == [ErrorCode.none]
        assert table.write(first, (b"one", None), (b"three", b"3")) == [ErrorCode.none]
        with table.kafka.paused(first):  # until the others do not believe in it any more
            table.kafka.clock.advance(10.0)
            second = table.leader
            assert second != first
            assert table.rows(second) == {b"two": b"2", b"three": b"3"}
            assert isinstance(table.shard(first), Table)  # it has not heard
        assert table.shard(first) is ErrorCode.not_coordinator
        assert old.life == "ended"
        third = ({1, 2, 3} - {first, second}).pop()
        assert table.shard(third) is ErrorCode.not_coordinator


def test_who_waits_when_the_coordinator_moves_is_told_to_look_for_another() -> None:
    with tables() as table:
        first = table.leader
        with table.kafka.paused(first % 3 + 1):
            told = table.write(first, (b"key", b"value"))
            table.kafka._on_loop(
                lambda: table.kafka.controller.unregister(first)  # as if its heartbeats had been lost
            )
            table.kafka._on_loop(table.kafka.brokers[first].apply_state, *moved(table))
            table.kafka._on_loop(table.kafka.network.settle)
        assert told == [ErrorCode.not_coordinator]


def moved(table: Tables) -> tuple[Any, Any]:
    topic = table.kafka.controller.topics[TRANSACTIONS.name]
    return topic.partitions[partition_for(KEY, table.partitions)], topic


def test_while_a_long_log_is_read_clients_are_told_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with tables(brokers=1) as table:
        for number in range(4):
            table.write(1, (b"%d" % number, b"x"))
        monkeypatch.setattr(shards, "_AT_ONCE", 1)

        def read_again() -> list[object]:
            coordinator = table.coordinators[1]
            partition = coordinator.shards.pop(partition_for(KEY, table.partitions)).partition
            coordinator.update(partition)
            table.kafka.network.settle()
            return [table.shard(1), len(coordinator.loaded())]

        assert table.kafka._on_loop(read_again) == [ErrorCode.coordinator_load_in_progress, table.partitions - 1]
        while (shard := table.shard(1)) is ErrorCode.coordinator_load_in_progress:
            pass  # a turn of the loop each
        assert isinstance(shard, Table)
        assert len(shard.rows) == 4
        assert shard.life == "begun"


def test_records_that_nobody_can_read_are_left_out(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with tables(brokers=1, data=tmp_path) as table:
        table.write(1, (b"good", b"1"))
        table.write(1, (b"bad", b"\xff"), replayed=False)
        table.write(1, (b"better", b"2"), producer=(7, 0))
    with tables(brokers=1, data=tmp_path) as table:
        assert table.rows(1) == {b"good": b"1", b"better": b"2"}
    assert "skipped unreadable record at offset 1" in caplog.text


@pytest.mark.parametrize("kind", [0, 1])
def test_find_coordinator_names_the_leader_and_makes_the_topic(kind: int) -> None:
    with Cluster(3) as kafka, WireClient(kafka.bootstrap) as client:
        topic = (OFFSETS, TRANSACTIONS)[kind]
        assert topic.name not in kafka.topics()
        keys = [f"group-{number}" for number in range(20)]
        said = client.ask(FIND_COORDINATOR, 6, key_type=kind, coordinator_keys=keys).coordinators
        assert {(one.error_code, one.host) for one in said} == {(ErrorCode.none, "127.0.0.1")}
        assert [(one.key, one.node_id) for one in said] == [
            (key, kafka.leader(topic.name, partition_for(key, 50))) for key in keys
        ]
        assert {one.port for one in said} == {broker.port for broker in kafka.brokers.values()}
        made = kafka.controller.topics[topic.name]
        assert made.internal
        assert made.settings["cleanup.policy"] == ("compact",)
        assert made.settings["min.insync.replicas"] == 1 + kind
        assert {len(state.replicas) for state in made.partitions} == {3}
