"""Peers are the user's: their hash and comparison may be odd, slow, raise or come back, and run under no lock (P5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from abeyant import IdleDetector, ManualTimer, TimerClosedError
from purgatory.waits import in_thread


class Same:
    """All of one hash; equal by name. `hook` runs inside each comparison."""

    hook: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, name: object) -> None:
        self.name = name

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        hook, Same.hook = Same.hook, staticmethod(lambda: None)
        hook()
        return isinstance(other, Same) and self.name == other.name


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer()


@pytest.fixture
def told() -> list[object]:
    return []


@pytest.fixture
def idle(timer: ManualTimer, told: list[object]) -> IdleDetector:
    return IdleDetector(30, told.append, timer)


def test_equal_peers_are_one_and_others_with_the_same_hash_are_not(
    timer: ManualTimer, idle: IdleDetector, told: list[object]
) -> None:
    for number in range(50):
        idle.seen(Same(number))
    assert len(idle) == 50
    timer.advance(20)
    for number in range(0, 50, 2):
        idle.seen(Same(number))
    assert all(idle.forget(Same(number)) for number in range(0, 50, 5))
    assert len(idle) == 40
    idle._check()
    timer.advance(10)
    assert [peer.name for peer in told if isinstance(peer, Same)] == [n for n in range(1, 50, 2) if n % 5]


@pytest.mark.parametrize("peer", [None, -1, -2, 0, "", (), float("nan"), 2**70, True, b"x", ("10.0.0.1", 5)])
def test_anything_hashable_is_a_peer(peer: object, timer: ManualTimer, idle: IdleDetector, told: list[object]) -> None:
    assert peer not in idle
    assert not idle.forget(peer)
    idle.seen(peer)
    idle.seen(peer)
    assert peer in idle
    assert len(idle) == 1
    timer.advance(30)
    assert told == [peer] or told[0] is peer
    assert peer not in idle


def test_equal_numbers_are_one_peer_as_in_a_dict(idle: IdleDetector) -> None:
    idle.seen(1)
    idle.seen(1.0)
    assert True in idle
    assert len(idle) == 1


@pytest.mark.parametrize("call", ["seen", "forget", "idle_for", "__contains__"])
def test_what_has_no_hash_is_refused(call: str, idle: IdleDetector) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        getattr(idle, call)([])


@pytest.mark.parametrize("call", ["seen", "forget", "idle_for", "__contains__"])
def test_a_comparison_that_raises_reaches_the_caller_and_changes_nothing(call: str, idle: IdleDetector) -> None:
    def hook() -> None:
        raise LookupError

    idle.seen(Same(1))
    Same.hook = staticmethod(hook)
    with pytest.raises(LookupError):
        getattr(idle, call)(Same(1))
    assert len(idle) == 1
    idle._check()
    assert Same(1) in idle


@pytest.mark.parametrize("call", ["seen", "forget", "idle_for", "__contains__"])
def test_p5_another_thread_can_use_it_while_peers_are_compared(call: str, idle: IdleDetector) -> None:
    idle.seen(Same(1))
    Same.hook = staticmethod(lambda: in_thread(lambda: idle.seen("other")))
    getattr(idle, call)(Same(1))
    assert "other" in idle
    idle._check()


ODD_TURNS: dict[str, list[tuple[str, int]]] = {
    "forgets it": [("forget", 1)],
    "forgets it, and sees it again": [("forget", 1), ("seen", 1)],
    "forgets it, and sees the wanted one": [("forget", 1), ("seen", 2)],
    "sees the wanted one": [("seen", 2)],
    "sees the wanted one, and forgets it": [("seen", 2), ("forget", 2)],
    "lets it grow": [("seen", number) for number in range(1000, 2000)],
}


@pytest.mark.parametrize("turn", ODD_TURNS.values(), ids=ODD_TURNS)
@pytest.mark.parametrize("call", ["forget", "__contains__", "seen"])
def test_what_happens_within_a_comparison_is_taken_into_account(
    call: str, turn: list[tuple[str, int]], idle: IdleDetector
) -> None:
    """`Same(2)` is looked up, met with `Same(1)`, and while they are compared the world changes."""
    names = {1}

    def hook() -> None:
        for what, name in turn:
            getattr(idle, what)(Same(name) if name < 10 else name)
            (names.add if what == "seen" else names.discard)(name)

    idle.seen(Same(1))
    Same.hook = staticmethod(hook)
    found = getattr(idle, call)(Same(2))
    assert found is {"seen": None}.get(call, 2 in names)
    if call == "seen":
        names.add(2)
    elif call == "forget":
        names.discard(2)
    idle._check()
    watched = [peer.name if isinstance(peer, Same) else peer for peer in idle.close()]
    assert len(watched) == len(names)
    assert set(watched) == names


@pytest.mark.parametrize("call", ["seen", "forget", "idle_for", "__contains__"])
def test_it_may_be_closed_within_a_comparison(call: str, idle: IdleDetector) -> None:
    idle.seen(Same(1))
    Same.hook = staticmethod(idle.close)
    if call == "seen":
        with pytest.raises(TimerClosedError):
            idle.seen(Same(1))
    else:
        assert not getattr(idle, call)(Same(1))
    assert len(idle) == 0


def test_t1_a_call_that_read_the_clock_before_another_did_does_not_turn_time_back(
    timer: ManualTimer, idle: IdleDetector, told: list[object]
) -> None:
    def meanwhile() -> None:
        timer.advance(20)
        idle.seen(Same(1))

    idle.seen(Same(1))
    Same.hook = staticmethod(meanwhile)
    idle.seen(Same(1))
    timer.advance(29)
    assert told == []
    timer.advance(1)
    assert len(told) == 1
