"""Followers that wait get an append at once, and everything is then as messages would have left it.

Two clusters do the same. In one a gate, which holds nothing, makes every fetch of a follower a message.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant import aio
from abeyant.broker import Cluster
from abeyant.broker.delayed.produce import PendingAck, wait_for_acks
from abeyant.broker.errors import ApiError
from abeyant.broker.log import LogError
from abeyant.broker.log.batch import make_batch
from abeyant.broker.log.records import Record, encode
from abeyant.broker.replica.session import Session

TOPIC, PARTITIONS, BROKERS = "orders", 2, 3
SETTINGS = {"min.insync.replicas": 2, "replica.lag.time.max.ms": 2000}

Step = tuple[str, int, float]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["one", "all"]), st.integers(0, PARTITIONS - 1), st.just(0.0)),
        st.tuples(st.sampled_from(["pause", "resume", "stop", "start"]), st.integers(1, BROKERS), st.just(0.0)),
        st.tuples(st.just("advance"), st.just(0), st.sampled_from([0.1, 0.5, 0.7, 3.0])),
        st.tuples(st.sampled_from(["delete"]), st.integers(0, PARTITIONS - 1), st.just(0.0)),
    ),
    max_size=25,
)


def batch(number: int) -> bytes:
    record = encode([Record(0, number, b"key", b"%d" % number)], 0, 0)
    return make_batch(record, record_count=1, base_timestamp=0, max_timestamp=0).data


class Run:
    """One of the clusters."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.results: list[object] = []
        kafka.create_topic(TOPIC, partitions=PARTITIONS, config={"retention.ms": -1})

    def take(self, number: int, step: Step) -> None:
        kind, which, seconds = step
        if kind == "advance":
            self.kafka.clock.advance(seconds)
        elif kind in ("pause", "resume", "stop", "start"):
            stopped = self.kafka.brokers[which].stopped
            if stopped is (kind == "start"):
                getattr(self.kafka, kind)(which)
        else:
            self.kafka._on_loop(self._at_leader, number, kind, which)

    def _at_leader(self, number: int, kind: str, index: int) -> None:
        leader = self.kafka.brokers.get(self.kafka.controller.topics[TOPIC].partitions[index].leader)
        if leader is not None:
            leader.run(self._change, leader, number, kind, index)
            self.kafka.network.settle()

    def _change(self, leader: Any, number: int, kind: str, index: int) -> None:
        partition = leader.partitions[TOPIC, index]
        try:
            if kind == "delete":
                self.results.append((number, partition.delete_records(-1)))
                return
            appended = partition.append(batch(number), all_in_sync=kind == "all")
        except (ApiError, LogError) as error:
            self.results.append((number, str(error)))
            return
        self.results.append((number, appended))
        if kind == "all":
            ack = PendingAck(partition, appended.last_offset + 1)
            now = self.kafka.clock.now
            wait_for_acks(leader, [ack], 1.0, "test", now(), lambda: self.results.append((number, ack.error, now())))

    def state(self) -> object:
        return self.kafka._on_loop(self._state)

    def _state(self) -> object:
        self.kafka.network.settle()
        replicas = {
            (number, partition.index): (
                partition.leads, partition.high_watermark, partition.log.start_offset, partition.log.end_offset,
                partition.log.read(partition.log.start_offset, 1 << 40, 1 << 40, min_one=True),
                [
                    (remote.broker, remote.end, remote.start, remote.sent_start, remote.caught_up_at,
                     remote.session is not None and remote.session.fetched_at)
                    for remote in partition.remotes.values()
                ],
            )
            for number, broker in self.kafka.brokers.items()
            if not broker.stopped
            for partition in broker.partitions.values()
        }  # fmt: skip
        states = [state._replace(topic_id=None) for state in self.kafka.controller.topics[TOPIC].partitions]  # type: ignore[arg-type]
        return replicas, states, sorted(self.kafka.waiting()), self.results, self.kafka.clock.now()


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_an_append_at_once_leaves_what_messages_leave(steps: list[Step]) -> None:
    with ExitStack() as open_clusters:
        runs = [
            Run(open_clusters.enter_context(Cluster(brokers=BROKERS, clock="held", settings=SETTINGS)))
            for _ in range(2)
        ]
        runs[1].kafka._gate = lambda _: False
        for number, step in enumerate(steps):
            for run in runs:
                run.take(number, step)
            assert runs[0].state() == runs[1].state(), step


@pytest.mark.parametrize("clock", ["held", "real"])
def test_followers_that_wait_need_no_message(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fetches: list[int] = []
    fetch = Session.fetch

    def note(session: Session, request: Any) -> None:
        fetches.append(session.follower)
        fetch(session, request)

    with Cluster(brokers=BROKERS, clock=clock) as kafka:
        run = Run(kafka)
        run.take(0, ("all", 0, 0.0))
        monkeypatch.setattr(Session, "fetch", note)
        kafka._on_loop(fetches.clear)
        for number in range(1, 50):
            run.take(number, ("all", 0, 0.0))
        assert len(fetches) <= 10  # some half a second may be over, and then a follower fetches again
        leader, *followers = (kafka.brokers[number].partitions[TOPIC, 0] for number in (1, 2, 3))
        assert {leader.high_watermark, *(one.high_watermark for one in followers)} == {50}
        assert [outcome for outcome in run.results if "none" in str(outcome)]


def test_a_follower_fetches_again_half_a_second_after_the_last_append(monkeypatch: pytest.MonkeyPatch) -> None:
    fetches: list[float] = []
    fetch = Session.fetch

    async def main() -> None:
        async with Cluster(brokers=2) as kafka:

            def note(session: Session, request: Any) -> None:
                if session.follower == 2:
                    fetches.append(kafka.clock.now())
                fetch(session, request)

            run = Run(kafka)
            await asyncio.sleep(0.2)
            monkeypatch.setattr(Session, "fetch", note)
            run.take(0, ("one", 0, 0.0))
            await asyncio.sleep(0.4)
            run.take(1, ("one", 0, 0.0))
            last = kafka.clock.now()
            (waiting,) = kafka.waiting("Fetch", client_id="broker-2-fetcher-0")
            assert (waiting.since, waiting.deadline) == (last, last + 0.5)
            assert fetches == []
            await asyncio.sleep(0.6)
            assert [round(at - last, 2) for at in fetches] == [0.5]

    aio.run_virtual(main())
