"""The state machine of a transactional id, by itself: what follows what, and with which epoch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from abeyant.broker.errors import ApiError
from abeyant.broker.transactions.record import id_of, key_bytes, read_status, value_bytes
from abeyant.broker.transactions.transaction import NO_EPOCH, Producer, State, Status, Transaction
from abeyant.broker.wire.schema import ErrorCode

KEY = ("orders", 0)
LAST = 32_766


def transaction(epoch: int = 0, state: State = State.EMPTY, **more: Any) -> Transaction:
    return Transaction("till", Status(1, epoch, 60_000, state, **more))


def refused(error: ErrorCode) -> Any:
    return pytest.raises(ApiError, match=repr(error)[1:-1].partition(":")[0])


def test_a_change_that_is_pending_lets_no_other_through() -> None:
    one = transaction()
    one.add(Producer(1, 0), [KEY], 0, 5)
    with refused(ErrorCode.concurrent_transactions):
        one.add(Producer(1, 0), [KEY], 0, 5)
    with refused(ErrorCode.concurrent_transactions):
        one.initialize(1000, None, -1, 6)
    assert one.fence(-1, 6) is None
    one.discard()
    assert one.now.state is State.EMPTY
    one.add(Producer(1, 0), [KEY], 0, 7)
    one.apply()
    expected = Status(1, 0, 60_000, State.ONGOING, frozenset({KEY}), updated_ms=7, started_ms=7, previous_id=1)
    assert one.now == expected


def test_a_producer_without_epochs_gets_another_id_at_the_end_of_its_transaction() -> None:
    one = transaction(LAST)
    one.add(Producer(1, LAST), [KEY], 2, 5)
    one.apply()
    ending = one.end(Producer(1, LAST), commits=True, version=2, new_id=9, now_ms=6)
    assert ending is not None
    assert (ending.producer_id, ending.epoch, ending.next_id) == (1, LAST + 1, 9)  # as which the markers are written
    one.apply()
    over = one.complete(7)
    one.apply()
    assert (over.producer_id, over.epoch, over.previous_id, over.next_id) == (9, 0, 1, -1)
    assert one.end(Producer(1, LAST), commits=True, version=2, new_id=-1, now_ms=8) is None  # sent again
    again = one.initialize(1000, Producer(1, LAST), -1, 9)  # it has not seen its new id, and goes on after an error
    assert again is not None
    assert (again.producer_id, again.epoch) == (9, 0)


def test_an_end_that_is_sent_again_after_the_next_transaction_has_begun_is_of_an_id_that_is_not_known() -> None:
    one = transaction(LAST, State.ONGOING, partitions=frozenset({KEY}))
    one.end(Producer(1, LAST), commits=True, version=2, new_id=9, now_ms=6)
    one.apply()
    one.complete(7)
    one.apply()
    one.add(Producer(9, 0), [KEY], 2, 8)
    one.apply()
    with refused(ErrorCode.invalid_producer_id_mapping):
        one.end(Producer(1, LAST), commits=True, version=2, new_id=-1, now_ms=9)


def test_a_producer_without_epochs_gets_another_id_when_it_begins() -> None:
    one = transaction(LAST)
    fresh = one.initialize(1000, None, 9, 5)
    assert fresh is not None
    assert (fresh.producer_id, fresh.epoch, fresh.previous_id) == (9, 0, 1)


def test_fencing_a_producer_without_epochs_gives_the_id_another_producer_id() -> None:
    """Whoever fences it begins with epoch 1: 0 was that of the abort's end (apache/kafka 21506)."""
    one = transaction(LAST)
    one.add(Producer(1, LAST), [KEY], 2, 5)
    one.apply()
    fenced = one.fence(9, 6)
    assert fenced is not None
    assert (fenced.epoch, fenced.state, fenced.next_id) == (LAST + 1, State.PREPARE_ABORT, 9)
    one.apply()
    one.complete(7)
    one.apply()
    fresh = one.initialize(1000, None, -1, 8)
    assert fresh is not None
    assert (fresh.producer_id, fresh.epoch) == (9, 1)


class Life(RuleBasedStateMachine):
    """One transactional id, its producer, a zombie, and time that runs out, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.one = transaction(NO_EPOCH)
        self.ids = iter(range(100, 100_000))
        self.producer: Producer | None = None  # as it was last told
        self.fenced: list[Producer] = []
        self.pending: Producer | None = None
        self.now_ms = 0

    def tried(self, action: Any) -> Any:
        self.now_ms += 1
        try:
            return action()
        except ApiError:
            return None

    @rule(names_itself=st.booleans())
    def initialize(self, names_itself: bool) -> None:
        expected = self.producer if names_itself else None
        status = self.tried(lambda: self.one.initialize(1000, expected, next(self.ids), self.now_ms))
        if status is not None:
            self.pending = Producer(status.producer_id, status.epoch)

    @rule(version=st.sampled_from([0, 2]))
    def add(self, version: int) -> None:
        producer = self.producer
        if producer is not None:
            self.tried(lambda: self.one.add(producer, [KEY], version, self.now_ms))

    @rule(commits=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, commits: bool, version: int) -> None:
        producer = self.producer
        if producer is None:
            return
        status = self.tried(
            lambda: self.one.end(producer, commits=commits, version=version, new_id=next(self.ids), now_ms=self.now_ms)
        )
        if status is not None:
            new = status.next_id != -1
            self.pending = Producer(status.next_id, 0) if new else Producer(status.producer_id, status.epoch)

    @rule()
    def fence(self) -> None:
        self.one.fence(next(self.ids), self.now_ms)

    @precondition(lambda self: self.one.pending is not None)
    @rule(written=st.booleans())
    def settle(self, written: bool) -> None:
        told, self.pending = self.pending, None
        if not written:
            self.one.discard()
            return
        self.one.apply()
        if told is not None:
            if self.producer is not None and told != self.producer:
                self.fenced.append(self.producer)
            self.producer = told

    @precondition(lambda self: self.one.pending is None and self.one.now.state.shown.startswith("Prepare"))
    @rule()
    def complete(self) -> None:
        self.one.complete(self.now_ms)

    @invariant()
    def holds(self) -> None:
        now = self.one.now
        ending = now.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)
        assert NO_EPOCH <= now.epoch <= LAST + 1, now
        assert now.partitions or now.state is not State.ONGOING, now
        assert not now.partitions or now.state is State.ONGOING or ending, now
        assert now.next_id == -1 or (ending and now.bumps), now
        if self.one.now.state in (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            for zombie in self.fenced:
                with pytest.raises(ApiError):
                    self.one.verify(zombie, [KEY])
        assert read_status(value_bytes(self.one.now)) == self.one.now._replace(last_epoch=NO_EPOCH)


TestLife = Life.TestCase


@given(st.text(max_size=20))
def test_a_key_is_read_as_it_was_written(name: str) -> None:
    assert id_of(key_bytes(name)) == name


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            "0001000000000000000100000000ea600000000001a205546c90ffffffffffffffff0100080000000000000001",
            Status(1, 0, 60_000, State.EMPTY, updated_ms=1795385748624, previous_id=1),
        ),
        (
            "0001000000000000000200010000ea600202107832343032317830782d746f706963020000000000000001a20554776b"
            "000001a205547693020008000000000000000202020002",
            Status(
                2, 1, 60_000, State.PREPARE_COMMIT, frozenset({("x24021x0x-topic", 0)}), 1795385751403, 1795385751187,
                version=2, previous_id=2,
            ),
        ),
        (
            "0001000000000000000300000000ea600102107832343032317830782d746f70696303000000000000000200000001a2"
            "05547957000001a2055479570100080000000000000003",
            Status(
                3, 0, 60_000, State.ONGOING, frozenset({("x24021x0x-topic", 0), ("x24021x0x-topic", 2)}),
                1795385751895, 1795385751895, previous_id=3,
            ),
        ),
    ],
    ids=["empty", "being committed", "open"],
)  # fmt: skip
def test_what_kafka_wrote_down_is_read_and_written_the_same(value: str, expected: Status) -> None:
    """Bytes of `__transaction_state` of Apache Kafka 4.3.1."""
    data = bytes.fromhex(value)
    assert read_status(data) == expected
    assert value_bytes(expected) == data
