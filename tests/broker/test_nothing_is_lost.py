"""Nothing acknowledged is lost (K1, K2, K4): producers, pauses, stops, starts, elections beside a plain model.

Requests come over real connections; the clock is held, so every time-out happens when a step lets time pass. The model
knows what was sent, when, and what was answered; it knows nothing of epochs, in-sync sets or high watermarks.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.errors import ApiError
from abeyant.broker.log import split
from abeyant.broker.log.validation import records_of
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.ports import Broker
from broker.log.batches import batch
from broker.log.invariants import check_log
from broker.wire import WireClient
from seeds import share

BROKERS = (1, 2, 3)
TIMEOUT = 2.0  # seconds that a produce waits
TICK = 0.002
_PATIENCE = 30.0
_EVERYTHING = 1 << 40


@dataclass
class Sent:
    """One produce."""

    value: bytes
    broker: Broker  # one life of it
    at: float
    acks: int
    answers: list[tuple[float, ErrorCode, int]] = field(default_factory=list)  # when, error, offset


class NothingLost(RuleBasedStateMachine):
    """Three brokers and one partition."""

    keeps_data: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.sent: dict[bytes, Sent] = {}
        self.acknowledged: dict[int, bytes] = {}
        self.connections: list[WireClient] = []
        self.faults: list[str] = []  # noticed in the loop's thread
        self.kafka: Cluster | None = None

    @initialize(min_in_sync=st.sampled_from([1, 2]))
    def begin(self, min_in_sync: int) -> None:
        data = self.folder if self.keeps_data else None
        self.kafka = Cluster(
            brokers=3,
            clock="held",
            data=data,
            settings={"min.insync.replicas": min_in_sync, "replica.lag.time.max.ms": 5000},
        ).open()
        self.kafka.create_topic("orders", replicas=3, config={"retention.ms": -1})  # the records are old
        self.kafka._observer = self  # type: ignore[assignment]  # the machine sees every response

    @property
    def cluster(self) -> Cluster:
        assert self.kafka is not None
        return self.kafka

    def state(self) -> PartitionState:
        return self.cluster.controller.topics["orders"].partitions[0]

    def replica(self, broker: int) -> Partition | None:
        found = self.cluster.brokers[broker]
        return None if found.stopped else found.partitions.get(("orders", 0))

    def running(self) -> list[Broker]:
        return [broker for broker in self.cluster.brokers.values() if not broker.stopped]

    # In the loop's thread

    def log_response(self, call: Any, response: Any) -> None:
        """Check each response when it is sent (K2)."""
        if call.api.name != "Produce":
            return
        sent = self.sent[call.request.topic_data[0].partition_data[0].records]
        (result,) = response.responses[0].partition_responses
        now = self.cluster.clock.now()
        sent.answers.append((now, result.error_code, result.base_offset))
        state, offset = self.state(), result.base_offset
        if result.error_code is ErrorCode.none and sent.acks == 1:
            return  # the leader alone has it, and nothing is promised
        if result.error_code is ErrorCode.none:
            self.acknowledged[offset] = sent.value
            leader = call.broker.partitions["orders", 0]
            if leader.high_watermark <= offset:
                self.faults.append(f"{sent} was answered before the high watermark, {leader.high_watermark}, was there")
            for broker in leader.state.isr:
                replica = self.replica(broker)
                if replica is not None and value_at(replica, offset) != sent.value:
                    self.faults.append(f"{sent} was answered while broker {broker}, in sync {state.isr}, had it not")
        elif result.error_code is ErrorCode.request_timed_out and nanoseconds(now) < nanoseconds(sent.at + TIMEOUT):
            self.faults.append(f"{sent} timed out too early, at {now}")

    def log_replica_fetch(self, *_: object) -> None:
        """Ignore followers' fetches."""

    def log_isr_change(self, *_: object) -> None:
        """Ignore changes of the in-sync set."""

    def close(self) -> None:
        """The cluster ends."""

    # Steps

    @rule(acks=st.sampled_from([-1, -1, 1]))
    def produce(self, acks: int) -> None:
        """To whoever leads, if it is not paused: then nobody could tell when it has come."""
        cluster = self.cluster
        leader = cluster.leader("orders")
        if leader is None or cluster.brokers[leader].paused or cluster.brokers[leader].stopped:
            return
        value = b"%d" % len(self.sent)
        data = batch([value]).data
        client = WireClient(f"127.0.0.1:{cluster.brokers[leader].port}")
        self.connections.append(client)
        arrived = threading.Event()

        def gate(call: Any) -> bool:
            if isinstance(call, Call):  # and no follower's fetch
                self.sent[data] = Sent(value, call.broker, cluster.clock.now(), acks)
                arrived.set()
            return False

        cluster._gate = gate
        partition = {"index": 0, "records": data}
        client.send(
            0,
            9,
            acks=acks,
            timeout=timedelta(seconds=TIMEOUT),
            topic_data=[{"name": "orders", "partition_data": [partition]}],
        )
        assert arrived.wait(_PATIENCE)
        cluster._on_loop(cluster.network.settle)
        cluster._gate = None

    @rule(broker=st.sampled_from(BROKERS))
    def pause(self, broker: int) -> None:
        if not self.cluster.brokers[broker].stopped:
            self.cluster.pause(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def resume(self, broker: int) -> None:
        self.cluster.resume(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def stop(self, broker: int) -> None:
        """In memory only while another in-sync replica is left: more than that nobody promises."""
        if self.cluster.brokers[broker].stopped:
            return
        others = [one for one in self.state().isr if one != broker and not self.cluster.brokers[one].stopped]
        if self.keeps_data or others:
            self.cluster.stop(broker)

    @rule(broker=st.sampled_from(BROKERS))
    def start(self, broker: int) -> None:
        if self.cluster.brokers[broker].stopped:
            self.cluster.start(broker)

    @rule(seconds=st.sampled_from([0.01, 0.6, TIMEOUT, 6.0, 30.0]))
    def advance(self, seconds: float) -> None:
        self.cluster.clock.advance(seconds)

    @rule()
    def elect_preferred(self) -> None:
        def elect() -> None:
            try:
                self.cluster.controller.leaders.elect_preferred(self.state())
            except ApiError:
                return
            self.cluster.network.settle()

        self.cluster._on_loop(elect)

    @precondition(lambda self: any(one.paused or one.stopped for one in self.cluster.brokers.values()))
    @rule()
    def all_well_again(self) -> None:
        """Whatever has happened: with every broker back, all are in sync and have the same."""
        for number, broker in self.cluster.brokers.items():
            if broker.stopped:
                self.cluster.start(number)
            self.cluster.resume(number)
        self.cluster.clock.advance(1.0)
        self.cluster.clock.advance(1.0)
        assert self.state().isr == BROKERS
        contents = {tuple(content(replica)) for number in BROKERS if (replica := self.replica(number)) is not None}
        assert len(contents) == 1
        assert {replica.high_watermark for replica in map(self.replica, BROKERS) if replica is not None} == {
            len(*contents)
        }

    # What always holds

    @invariant()
    def laws(self) -> None:
        if self.kafka is not None:
            self.cluster._on_loop(self.check)

    def check(self) -> None:
        assert not self.faults, self.faults
        now = self.cluster.clock.now()
        for sent in self.sent.values():
            assert len(sent.answers) <= 1, f"K2: answered more than once: {sent}"
            if not sent.answers and not sent.broker.paused and not sent.broker.stopped:
                assert now <= sent.at + TIMEOUT + TICK, f"K2: not answered in time: {sent}, now {now}"
        for broker in self.running():
            replica = broker.partitions.get(("orders", 0))
            if replica is not None:
                check_log(replica.log)
        state = self.state()
        leader = self.replica(state.leader) if state.leader > 0 else None
        if leader is None or not leader.leads:
            return
        assert leader.state == state or leader.broker.paused
        there = content(leader)
        for offset, value in self.acknowledged.items():
            assert offset < len(there), f"K1: the leader has {len(there)} records, and {offset} was acknowledged"
            assert there[offset] == value, f"K1: at {offset} is {there[offset]!r} and not {value!r}"
        refused = {
            one.value
            for one in self.sent.values()
            if one.answers and one.answers[0][1] is ErrorCode.not_enough_replicas
        }
        assert not refused & set(there), "K2: a produce that was refused was appended"
        for number in state.isr:  # and not as the leader has it, which has not heard who has left while it is paused
            replica = self.replica(number)
            if replica is None or number == state.leader:
                continue
            mark = leader.high_watermark
            assert content(replica)[:mark] == there[:mark], f"K4: broker {number} differs below {mark}"
            if not replica.broker.paused:
                assert content(replica) == there[: replica.log.end_offset], (
                    f"broker {number} is no prefix of its leader"
                )
        for number in state.isr:
            replica = self.replica(number)
            if replica is not None:
                for offset, value in self.acknowledged.items():
                    assert value_at(replica, offset) == value, f"K1: broker {number}, in sync, has not {value!r}"
        visible = [one.value for one in self.cluster._records("orders", 0, False, False)]
        assert visible == there[: leader.high_watermark], "K4: consumers see something else"

    def teardown(self) -> None:
        for client in self.connections:
            client.socket.close()
        if self.kafka is not None:
            self.kafka._observer = None
            self.kafka.close()
        shutil.rmtree(self.folder)


def content(replica: Partition) -> list[bytes | None]:
    """The values of all records of a replica, by offset."""
    data = replica.log.read(0, _EVERYTHING, replica.log.end_offset, min_one=False)
    return [record.value for one in split(data) for record in records_of(one)]


def nanoseconds(seconds: float) -> int:
    """The clock's own units: as floats, 62.02 + 2.0 is more than 64.02."""
    return round(seconds * 1e9)


def value_at(replica: Partition, offset: int) -> bytes | None:
    """The value at an offset; None where the log ends before."""
    there = content(replica)
    return there[offset] if offset < len(there) else None


class InMemory(NothingLost):
    keeps_data = False


class OnDisk(NothingLost):
    keeps_data = True


TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=share(60), stateful_step_count=25, phases=[Phase.generate])
TestOnDisk = pytest.mark.slow(OnDisk.TestCase)
TestOnDisk.settings = settings(max_examples=share(60), stateful_step_count=25, phases=[Phase.generate])
