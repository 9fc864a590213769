"""K1, K2 and K4 by a property test: random produces, pauses, stops, starts and time, beside a plain list.

The requests are handled by the brokers' own code, in the loop's thread; only the socket is left out, so that every
step is over when it returns.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kio.schema.errors import ErrorCode

from abeyance.broker import Cluster
from abeyance.broker.log import split
from abeyance.broker.requests import produce
from abeyance.broker.wire.schema import Message
from broker.log.batches import batch

BROKERS = (1, 2, 3)
TIMEOUT = 5.0  # seconds, of every produce


class Produce:
    """A produce of one batch, and its answer. In place of a `Call`: what a handler asks of one."""

    def __init__(self, machine: NothingIsLost, broker: Any, value: bytes, acks: int) -> None:
        self.broker = broker
        self.version = 9
        self.client_id = "model"
        self.connection = self
        self.since = broker.now()
        self.value = value
        data = Message(index=0, records=batch([value]).data)
        topic = Message(name="orders", topic_id=None, partition_data=[data])
        self.request = Message(transactional_id=None, acks=acks, timeout=timedelta(seconds=TIMEOUT), topic_data=[topic])
        self.answers: list[tuple[ErrorCode, int]] = []
        self._machine = machine

    def answer(self, response: Any) -> None:
        (partition,) = response.responses[0].partition_responses
        self.answers.append((partition.error_code, partition.base_offset))
        if partition.error_code is ErrorCode.none and self.request.acks == -1:
            self._machine.acknowledged[partition.base_offset] = self.value
            self._machine.check_in_sync_have(partition.base_offset, self.value)
        elif partition.error_code is ErrorCode.request_timed_out:
            assert self.broker.now() >= self.since + TIMEOUT, "never before its time"

    def close(self) -> None:
        """As a connection."""


class NothingIsLost(RuleBasedStateMachine):
    """Three brokers with one partition, and what was acknowledged."""

    def __init__(self) -> None:
        super().__init__()
        self.kafka = Cluster(brokers=3, clock="held").open()
        self.kafka.create_topic("orders", config={"min.insync.replicas": 2, "retention.ms": -1})
        self.acknowledged: dict[int, bytes] = {}
        self.produces: list[Produce] = []

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            self.kafka.close()

    # -- what happens

    @rule(acks=st.sampled_from([-1, -1, 1]))
    def produce(self, acks: int) -> None:
        broker = self.kafka.brokers.get(self.state.leader)
        if broker is None or broker.paused or broker.stopped:
            return
        made = Produce(self, broker, b"value %d" % len(self.produces), acks)
        self.produces.append(made)
        self.kafka.on_loop(produce.handle, made)
        self.kafka.on_loop(self.kafka.network.settle)

    @rule(broker=st.sampled_from(BROKERS))
    def pause(self, broker: int) -> None:
        if not self.kafka.brokers[broker].stopped:
            self.kafka.pause(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def resume(self, broker: int) -> None:
        self.kafka.resume(broker)

    @precondition(lambda self: len(self.state.isr) > 1)
    @rule(broker=st.sampled_from(BROKERS))
    def stop(self, broker: int) -> None:
        """What a broker has in memory is lost with it; the last one in sync stays."""
        one = self.kafka.brokers[broker]
        if not one.stopped and not one.paused:
            self.kafka.stop(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def start(self, broker: int) -> None:
        if self.kafka.brokers[broker].stopped:
            self.kafka.start(broker)

    @rule(seconds=st.sampled_from([0.1, 0.6, 4.9, 10.0, 31.0]))
    def pass_time(self, seconds: float) -> None:
        self.kafka.clock.advance(seconds)

    # -- what always holds

    @property
    def state(self) -> Any:
        return self.kafka.controller.topics["orders"].partitions[0]

    def log(self, broker: int) -> Any:
        return self.kafka.brokers[broker].partitions["orders", 0].log

    def check_in_sync_have(self, offset: int, value: bytes) -> None:
        for broker in self.state.isr:
            assert not self.kafka.brokers[broker].stopped
            assert self.log(broker).read(offset, 1, offset + 1, min_one=True)[61:] == batch([value]).data[61:]

    @invariant()
    def k1_all_in_sync_have_what_was_acknowledged(self) -> None:
        for offset, value in self.acknowledged.items():
            self.check_in_sync_have(offset, value)

    @invariant()
    def k2_none_is_answered_twice_or_late(self) -> None:
        for made in self.produces:
            assert len(made.answers) <= 1
            if not made.answers and not (made.broker.paused or made.broker.stopped):
                assert made.broker.now() <= made.since + TIMEOUT + 0.001

    @invariant()
    def k4_the_high_watermark_is_below_every_end(self) -> None:
        leader = self.kafka.brokers.get(self.state.leader)
        if leader is None or leader.paused or leader.stopped:
            return
        partition = leader.partitions["orders", 0]
        assert partition.leads
        assert partition.state == self.state
        for broker in self.state.isr:
            assert partition.high_watermark <= self.log(broker).end_offset
        partition.log.check()

    def come_to_rest(self) -> None:
        """With everybody back, everybody has the same."""
        for broker in BROKERS:
            self.resume(broker)
            self.start(broker)
        self.kafka.clock.advance(60.0)
        assert sorted(self.state.isr) == list(BROKERS)
        for made in self.produces:
            assert made.answers or made.broker.stopped
        ends = [self.log(broker).end_offset for broker in BROKERS]
        logs = [self.log(broker).read(0, 1 << 30, ends[0], min_one=True) for broker in BROKERS]
        assert logs == [logs[0]] * 3
        assert [one.base_offset for one in split(logs[0])] == list(range(ends[0]))
        self.k1_all_in_sync_have_what_was_acknowledged()
        assert {self.kafka.brokers[broker].partitions["orders", 0].high_watermark for broker in BROKERS} == {ends[0]}


TestNothingIsLost = NothingIsLost.TestCase
TestNothingIsLost.settings = settings(max_examples=40, stateful_step_count=30)
