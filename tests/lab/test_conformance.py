"""Every timer queue of the lab, ours included, keeps its own promise: one suite for all (laws T1, T2, T3, T6, T9)."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from designs.queue_machine import SHAPES, QueueMachine
from lab.rivals import DESIGNS
from seeds import with_slow

# The promises themselves, so that no design passes by promising nothing: (shape, delay) -> how late at most.
PROMISED = [
    ("wheel", {"tick": 10}, 10**9, 9),
    ("delay-queue", {}, 10**9, 0),
    ("indexed-heap", {}, 10**9, 0),
    ("lazy-heap", {}, 10**9, 0),
    ("sorted-list", {}, 10**9, 0),
    ("unsorted-list", {}, 10**9, 0),
    ("ring", {"tick": 10}, 1000, 9),
    ("hashed-wheel", {"tick": 100}, 10**9, 100),
    ("kernel-wheel", {"tick": 1}, 61, 1),
    ("kernel-wheel", {"tick": 1}, 62, 8),
    ("kernel-wheel", {"tick": 1}, 502, 8),
    ("kernel-wheel", {"tick": 1}, 503, 64),
    ("kernel-wheel", {"tick": 10}, 5_030, 640),
]


@pytest.mark.parametrize("name", with_slow(DESIGNS, DESIGNS.keys() - {"wheel", "indexed-heap", "hashed-wheel"}))
def test_it_keeps_its_promise_whatever_is_done_to_it(name: str) -> None:
    run_state_machine_as_test(type("ConformanceMachine", (QueueMachine,), {"name": name}))


@pytest.mark.parametrize(("name", "shape", "delay", "late"), PROMISED)
def test_what_is_promised(name: str, shape: dict[str, int], delay: int, late: int) -> None:
    assert DESIGNS[name].precision(**shape).at_most(delay) == late


def delays(shape: dict[str, int], scale: int, reach: int) -> list[int]:
    tick = shape.get("tick", 1)
    found = {0, 1}
    span = tick
    while span <= min(reach, 10**13):
        for multiple in (1, 2, 7, 8, scale - 1, scale, scale + 1, 63, 64, 65):
            found |= {multiple * span + off for off in (-tick, -1, 0, 1, tick)}
        span *= scale
    return sorted(delay for delay in found if 0 <= delay <= reach)


@pytest.mark.parametrize(("name", "shape", "scale"), [(n, s, k) for n in SHAPES for s, k in SHAPES[n]])
@pytest.mark.parametrize("start", [0, 1, 4_321, 2**33 + 5])
def test_t1_t2_alone_it_comes_in_time_at_every_edge(name: str, shape: dict[str, int], scale: int, start: int) -> None:
    design = DESIGNS[name]
    precision = design.precision(**shape)
    reach = min(precision.reach, 3_000 * shape["tick"]) if precision.polls else precision.reach
    for delay in delays(shape, scale, reach):
        queue = design.make(**shape, start=start)
        queue.add(start + delay, delay)
        came: list[int] = []
        upcoming: int | None = None
        while not came:
            upcoming = queue.next_expiration()
            assert upcoming is not None
            came = queue.advance(upcoming)
        assert came == [delay]
        assert upcoming is not None
        assert 0 <= upcoming - (start + delay) <= precision.at_most(delay)


@pytest.mark.parametrize("name", DESIGNS)
def test_out_of_reach_is_refused_and_not_cut_short(name: str) -> None:
    design = DESIGNS[name]
    queue = design.make()
    beyond = (1 << 62) + 1
    for deadline in (beyond, -beyond):
        with pytest.raises(OverflowError):
            queue.add(deadline, "never")
    with pytest.raises(OverflowError):
        queue.advance(beyond)
    reach = design.precision().reach
    if reach < 1 << 62:
        queue.add(reach, "far")
        with pytest.raises(OverflowError, match="reach"):
            queue.add(2 * reach, "too far")
        assert len(queue) == 1


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("start", [-1, (1 << 62) + 1])
def test_a_start_out_of_range_is_refused(name: str, start: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        DESIGNS[name].make(start=start)


def test_the_lazy_heap_is_built_anew_when_most_of_it_is_stale() -> None:
    queue = DESIGNS["lazy-heap"].make()
    handles = [queue.add(1000 + i, i) for i in range(1000)]
    for handle in handles[1:900]:
        queue.remove(handle)
    assert queue.advance(5) == []  # a turn of the loop: 899 of 1,000 are stale, so it is built anew
    assert len(queue) == 101
    assert queue.advance(10_000) == [0, *range(900, 1000)]
