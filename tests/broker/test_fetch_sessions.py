"""Incremental fetches: what is told, what is left out, and whose session it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.log.batches import batch
from broker.wire import WireClient

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
