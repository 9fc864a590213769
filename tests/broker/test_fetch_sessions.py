"""Incremental fetches: what is told, what is left out, and whose session it is."""

from __future__ import annotations

import random
import select
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.log.batches import batch
from broker.wire import WireClient
from waiting import wait_until

FETCH, PRODUCE = 1, (0, 9)


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(clock="held", settings={"max.incremental.fetch.session.cache.slots": 2}) as cluster:
        cluster.create_topic("orders", partitions=3)
        yield cluster


class Reader(WireClient):
    """Fetches by name, without waiting."""

    def fetch(
        self, session: int, epoch: int, offsets: dict[int, int] | None = None, forget: list[int] | None = None
    ) -> Any:
        partitions = [
            {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1000}
            for index, offset in (offsets or {}).items()
        ]
        return self.ask(
            FETCH, 12, session_id=session, session_epoch=epoch, max_wait=timedelta(0), min_bytes=1, max_bytes=10_000,
            topics=[{"topic": "orders", "partitions": partitions}] if partitions else [],
            forgotten_topics_data=[{"topic": "orders", "partitions": forget}] if forget else [],
        )  # fmt: skip

    def produce(self, partition: int) -> None:
        data = {"index": partition, "records": batch().data}
        self.ask(*PRODUCE, acks=1, timeout=timedelta(0), topic_data=[{"name": "orders", "partition_data": [data]}])


def told(response: Any) -> dict[int, int]:
    """By partition, how many bytes of records."""
    assert response.error_code is ErrorCode.none
    return {
        partition.partition_index: len(partition.records)
        for topic in response.responses
        for partition in topic.partitions
    }


def test_only_what_is_new_is_told(kafka: Cluster) -> None:
    size = batch().size
    with Reader(kafka.bootstrap) as reader:
        first = reader.fetch(0, 0, {0: 0, 1: 0, 2: 0})
        assert told(first) == {0: 0, 1: 0, 2: 0}, "a full fetch is answered in full"
        session = first.session_id
        assert session != 0
        assert told(reader.fetch(session, 1)) == {}
        reader.produce(1)
        assert told(reader.fetch(session, 2)) == {1: size}
        assert told(reader.fetch(session, 3)) == {1: size}, "it still asks from the same offset"
        assert told(reader.fetch(session, 4, {1: 1})) == {}
        assert told(reader.fetch(session, 5, forget=[2])) == {}
        reader.produce(2)
        assert told(reader.fetch(session, 6)) == {}
        ended = reader.fetch(session, 7, forget=[0, 1])
        assert (ended.session_id, told(ended)) == (0, {})
        assert reader.fetch(session, 8).error_code is ErrorCode.fetch_session_id_not_found


def test_an_error_is_told_until_it_is_over(kafka: Cluster) -> None:
    with Reader(kafka.bootstrap) as reader:
        session = reader.fetch(0, 0, {0: 0, 1: 9}).session_id
        for epoch in (1, 2):
            (topic,) = reader.fetch(session, epoch).responses
            assert [partition.error_code for partition in topic.partitions] == [ErrorCode.offset_out_of_range]
        assert told(reader.fetch(session, 3, {1: 0})) == {1: 0}, "its marks have not been told since"
        assert told(reader.fetch(session, 4)) == {}


def test_the_fetch_that_was_to_come_and_no_other(kafka: Cluster) -> None:
    with Reader(kafka.bootstrap) as reader:
        session = reader.fetch(0, 0, {0: 0}).session_id
        assert reader.fetch(session, 2).error_code is ErrorCode.invalid_fetch_session_epoch
        assert told(reader.fetch(session, 1)) == {}
        by_id = reader.ask(
            FETCH, 13, session_id=session, session_epoch=2, max_wait=timedelta(0), min_bytes=1, max_bytes=10
        )
        assert by_id.error_code is ErrorCode.fetch_session_topic_id_error
        assert told(reader.fetch(session, -1, {0: 0})) == {0: 0}, "which ends it"
        assert reader.fetch(session, 2).error_code is ErrorCode.fetch_session_id_not_found


def test_there_are_so_many_sessions_and_no_more(kafka: Cluster) -> None:
    with Reader(kafka.bootstrap) as reader:
        first, second = (reader.fetch(0, 0, {0: 0}).session_id for _ in range(2))
        assert reader.fetch(0, 0, {0: 0}).session_id == 0
        kafka.clock.advance(100.0)
        assert told(reader.fetch(first, 1)) == {}
        kafka.clock.advance(100.0)
        assert reader.fetch(0, 0, {0: 0}).session_id not in (0, first, second)
        assert reader.fetch(second, 1).error_code is ErrorCode.fetch_session_id_not_found
        assert told(reader.fetch(first, 2)) == {}


class Played:
    """A session that waits, in a cluster whose request log (with `general`) takes fetches the general way."""

    def __init__(self, folder: Path, *, general: bool) -> None:
        log = folder / "log" if general else None
        self.kafka = Cluster(clock="held", request_log=log, settings={"transaction.state.log.num.partitions": 1})

    def __enter__(self) -> Self:
        self.kafka.open()
        self.kafka.create_topic("orders", partitions=4)
        self.reader = Reader(self.kafka.bootstrap)
        self.session = self.epoch = 0
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.socket.close()
        self.kafka.close()

    def begin(self, rows: list[dict[str, int]], **values: Any) -> None:
        topics = [{"topic": "orders", "partitions": rows}] if rows else []
        self.number = self.reader.send(
            FETCH, 12, session_id=self.session, session_epoch=self.epoch, max_wait=timedelta(seconds=5),
            topics=topics, **values,
        )  # fmt: skip
        # It waits, or is answered.
        here = [self.reader.socket]
        wait_until(lambda: self.kafka.waiting("Fetch", client_id="wire") or select.select(here, [], [], 0)[0])

    def end(self) -> list[Any]:
        """What came: in the order of the response, as the turns of partitions are part of it."""
        found = self.reader.receive(FETCH, 12, self.number)
        assert found.error_code is ErrorCode.none
        began, self.session = not self.session, found.session_id
        assert self.session
        self.epoch = 1 if began else self.epoch + 1
        return [
            (one.partition_index, one.error_code, one.high_watermark, one.last_stable_offset, one.log_start_offset,
             one.aborted_transactions, len(one.records))
            for topic in found.responses for one in topic.partitions
        ]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_a_session_that_waits_is_answered_as_in_the_general_way(tmp_path: Path, seed: int) -> None:
    """However many partitions grow meanwhile, by transactions too, begin later, or are read with limits."""
    chance = random.Random(seed)
    partitions = range(chance.choice((1, 2, 4)))
    with Played(tmp_path, general=False) as short, Played(tmp_path, general=True) as general:
        both = (short, general)
        offsets = dict.fromkeys(partitions, 0)
        told = dict(offsets)
        for _ in range(25):
            rows = [
                {"partition": index, "fetch_offset": offset, "partition_max_bytes": chance.choice((100, 1000))}
                for index, offset in offsets.items()
                if not short.session or told[index] != offset or chance.random() < 0.1
            ]
            told = dict(offsets)
            limits = {
                "min_bytes": chance.choice((1, 1, 200, 100_000)), "max_bytes": chance.choice((150, 10_000)),
                "isolation_level": int(seed % 2),
            }  # fmt: skip
            grown = chance.choices(partitions, k=chance.choice((0, 1, 1, 1, 2)))
            for played in both:
                played.begin(rows, **limits)
            for index in grown:
                for played in both:
                    played.kafka.seed("orders", [b"x" * 30], index)
            if chance.random() < 0.1:
                index = chance.choice(partitions)
                for played in both:
                    end = len(played.kafka.records("orders", index))
                    with Reader(played.kafka.bootstrap) as admin:
                        delete = [{"partition_index": index, "offset": end}]
                        admin.ask(21, 2, topics=[{"name": "orders", "partitions": delete}], timeout=timedelta(0))
            for played in both:
                played.kafka.clock.advance(5)
            found = short.end()
            assert found == general.end()
            for index, error, mark, _, start, _, size in found:
                if error is ErrorCode.offset_out_of_range:
                    offsets[index] = max(start, 0)
                elif size and chance.random() < 0.8:
                    offsets[index] = mark
