"""Every purgatory of the lab, ours included, gives an operation the outcome that brute force gives it (P1, O1-O3)."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant import DelayedOperation
from abeyant.pipeline.purging.kafka import KafkaPurgatory
from abeyant.pipeline.purging.virtual import VirtualClock, VirtualReaper
from lab.purgatories import DESIGNS, Room
from seeds import share

MS = 1_000_000  # ns
STEP = 10  # ms: everything happens at multiples of it
END = 100 * STEP
KEYS = ("a", "b", "c", "d")


class Trace(NamedTuple):
    """Operations (start, time-out, {key: required}, all of them or any) and progress (at, key, by how much), in ms."""

    operations: list[tuple[int, int, dict[str, int], bool]]
    events: list[tuple[int, str, int]]


class Waiting(DelayedOperation):
    def __init__(self, timeout: int, watches: dict[str, int], every: bool, progress: dict[str, int]) -> None:
        super().__init__(timeout / 1000)
        self.watches, self.every, self.progress = watches, every, progress
        self.calls: list[str] = []

    def try_complete(self) -> bool:
        reached = [self.progress[key] >= required for key, required in self.watches.items()]
        return (all if self.every else any)(reached) and self.force_complete()

    def on_complete(self) -> None:
        self.calls.append("complete")

    def on_expiration(self) -> None:
        self.calls.append("expire")


_times = st.integers(0, 40).map(lambda step: step * STEP)
_watches = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 8), min_size=1)
traces = st.builds(
    Trace,
    st.lists(st.tuples(_times, st.integers(0, 20).map(lambda n: n * STEP), _watches, st.booleans()), max_size=30),
    st.lists(st.tuples(_times, st.sampled_from(KEYS), st.integers(1, 3)), max_size=40),
)


def brute_force(trace: Trace) -> list[tuple[str, int]]:
    """The outcome of each operation and when it ends, from the definition alone."""
    outcomes = []
    for start, timeout, watches, every in trace.operations:
        for at in range(start, start + timeout + 1, STEP):
            progress = {key: sum(by for when, k, by in trace.events if k == key and when <= at) for key in KEYS}
            if (all if every else any)(progress[key] >= required for key, required in watches.items()):
                outcomes.append(("completed", at))
                break
        else:
            outcomes.append(("expired", start + timeout))
    return outcomes


def play(trace: Trace, room: Room) -> list[Waiting]:
    """Run the trace; at one instant progress comes before starts, and starts before expiries (O3)."""
    expected = brute_force(trace)
    progress = dict.fromkeys(KEYS, 0)
    started: list[Waiting | None] = [None] * len(trace.operations)
    for now in range(0, END, STEP):
        room.advance_to(now * MS + MS // 2 - 1)  # what expires at this instant is not due yet
        for at, key, by in trace.events:
            if at == now:
                progress[key] += by
                room.purgatory.check_and_complete(key)
        room.advance_to(now * MS + MS // 2)
        for number, (start, timeout, watches, every) in enumerate(trace.operations):
            if start == now:
                operation = started[number] = Waiting(timeout, watches, every, progress)
                done = room.purgatory.try_complete_else_watch(operation, list(watches))
                assert done == (expected[number] == ("completed", now))
        room.advance_to(now * MS + 3 * MS // 2)
        for waiting, (outcome, at) in zip(started, expected, strict=True):
            if waiting is not None:
                assert waiting.outcome == (outcome if at <= now else None)
    return [operation for operation in started if operation is not None]


@pytest.mark.parametrize("name", DESIGNS)
@given(trace=traces, purge_interval=st.sampled_from([0, 1, 5, 1000]))
@settings(max_examples=share(60))
def test_p1_o1_o2_o3_outcomes_are_those_of_brute_force(name: str, trace: Trace, purge_interval: int) -> None:
    room = DESIGNS[name].virtual(purge_interval)
    operations = play(trace, room)
    for operation in operations:
        assert operation.calls == (["complete"] if operation.outcome == "completed" else ["complete", "expire"])
    if name == "ours":
        assert room.purgatory.watched == 0, "P4"
        assert room.purgatory.delayed == 0
    room.close()


def pile_up(name: str, purge_interval: int, operations: int = 100) -> Room:
    """Operations that wait on a key of their own and on a slow one that never fires, and complete at once."""
    room = DESIGNS[name].virtual(purge_interval)
    progress = dict.fromkeys([*KEYS, "slow"], 0)
    for number in range(operations):
        room.purgatory.try_complete_else_watch(
            Waiting(60_000, {"a": number + 1, "slow": 1}, False, progress), ["a", "slow"]
        )
        progress["a"] = number + 1
        room.purgatory.check_and_complete("a")
    return room


def test_p4_ours_forgets_at_once_and_kafkas_only_at_a_purge() -> None:
    assert pile_up("ours", 1000).purgatory.watched == 0
    kafka = pile_up("kafka", 1000).purgatory
    assert kafka.watched == 100
    assert kafka.delayed == 0, "the completed have left the timer"
    old = pile_up("old", 1000).purgatory
    assert old.watched == 100
    assert old.delayed == 100, "the completed are still in the delay queue"


@pytest.mark.parametrize("name", ["kafka", "old"])
def test_a_purge_comes_at_the_purge_interval(name: str) -> None:
    below, at = pile_up(name, 101), pile_up(name, 99)
    for room, purges in ((below, 0), (at, 1)):
        room.advance_to(201 * MS)  # the reaper looks every 200 ms
        assert (room.work()[0] > 0) == bool(purges)
        assert room.purgatory.watched == (0 if purges else 100)
    assert at.work()[1] >= 100, "it looked at them all"


@given(trace=traces, gap=st.integers(0, 3_000), purge_interval=st.sampled_from([0, 1, 5, 1000]))
def test_polls_that_are_left_out_would_have_found_nothing(trace: Trace, gap: int, purge_interval: int) -> None:
    counts = []
    for each_poll in (False, True):
        clock = VirtualClock()
        kafka = KafkaPurgatory(clock, purge_interval)
        reaper = VirtualReaper(kafka, clock, each_poll=each_poll)
        progress = dict.fromkeys(KEYS, 0)
        for start, timeout, watches, every in sorted(trace.operations, key=lambda operation: operation[0]):
            reaper.advance_to(start * gap * MS)
            progress[KEYS[start % 4]] += 1
            kafka.check_and_complete(KEYS[start % 4])
            kafka.try_complete_else_watch(Waiting(timeout * gap, watches, every, progress), list(watches))
        reaper.advance_to(clock() + 1_000 * MS)
        counts.append((*kafka.counts, kafka.watched, kafka.delayed))
    assert counts[0] == counts[1]


def test_kafkas_estimate_is_reset_to_what_is_pending() -> None:
    room = pile_up("kafka", 99)
    room.advance_to(201 * MS)
    room.advance_to(5_000 * MS)
    assert room.work()[0] == 1, "no purge without new operations"


@pytest.mark.parametrize("name", DESIGNS)
def test_p1_every_operation_ends_once_with_real_threads(name: str) -> None:
    room = DESIGNS[name].real(50)
    progress = dict.fromkeys(KEYS, 0)
    threads, each = 4, 300
    submitted: list[list[Waiting]] = [[] for _ in range(threads)]

    def submit(mine: list[Waiting]) -> None:
        for number in range(each):
            key = KEYS[number % 3]
            timeout = 20 if number % 5 == 0 else 20_000
            operation = Waiting(timeout, {key: 10**9 if timeout == 20 else 1, "d": 10**9}, False, progress)
            mine.append(operation)
            room.purgatory.try_complete_else_watch(operation, [key, "d"])
            if number % 7 == 0:
                progress[key] += 1
                room.purgatory.check_and_complete(key)

    workers = [threading.Thread(target=submit, args=(mine,)) for mine in submitted]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for key in KEYS:
        progress[key] += 1
        room.purgatory.check_and_complete(key)
    operations = [operation for mine in submitted for operation in mine]
    patience = time.monotonic() + 20
    while any(operation.outcome is None for operation in operations):
        assert time.monotonic() < patience, f"{sum(o.outcome is None for o in operations)} never ended"
        time.sleep(0.005)
    time.sleep(0.01)
    for operation in operations:
        assert operation.calls == (["complete"] if operation.outcome == "completed" else ["complete", "expire"])
    assert sum(operation.outcome == "expired" for operation in operations) == threads * each // 5
    room.close()


@pytest.mark.parametrize("name", DESIGNS)
def test_the_reaper_is_in_time_for_a_deadline_earlier_than_those_before(name: str) -> None:
    room = DESIGNS[name].real(1000)
    progress = dict.fromkeys(KEYS, 0)
    room.purgatory.try_complete_else_watch(Waiting(60_000, {"a": 1}, True, progress), ["a"])
    time.sleep(0.02)  # the reaper sleeps now
    began = time.monotonic()
    soon = Waiting(10, {"a": 1}, True, progress)
    room.purgatory.try_complete_else_watch(soon, ["a"])
    while soon.outcome is None:
        assert time.monotonic() < began + 20
        time.sleep(0.001)
    assert time.monotonic() - began >= 0.01, "T1"
    room.close()
