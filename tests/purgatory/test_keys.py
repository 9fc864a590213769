"""Keys and their lists: any hashable, whatever its `__hash__` and `__eq__` do; none is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from abeyant.engine import is_compiled
from abeyant.purgatory import Purgatory, PurgatoryError
from abeyant.timer import ManualTimer
from purgatory.waits import Wait, assert_lists_free


class Partition(NamedTuple):
    topic: str
    number: int


class Key:
    """Hashes as it is told, and does something of its own when it is hashed or compared."""

    def __init__(self, name: str, hashed: int = 1, meddle: Callable[[], object] | None = None) -> None:
        self.name = name
        self.hashed = hashed
        self.meddle = meddle

    def __hash__(self) -> int:
        if self.meddle is not None:
            self.meddle()
        return self.hashed

    def __eq__(self, other: object) -> bool:
        if self.meddle is not None:
            self.meddle()
        return isinstance(other, Key) and other.name == self.name


@pytest.mark.parametrize("key", ["k", 7, None, ("t", 1), Partition("t", 1), frozenset({1}), -1, -2, 2**80, 1.5])
def test_any_hashable_is_a_key(purgatory: Purgatory[Wait], key: object) -> None:
    wait = Wait()
    purgatory.try_complete_else_watch(wait, [key, "another"])
    wait.ready = True
    assert purgatory.check_and_complete(key) == 1


def test_equal_keys_are_one_key(purgatory: Purgatory[Wait]) -> None:
    wait = Wait()
    purgatory.try_complete_else_watch(wait, [1, 1.0, True, Partition("t", 1), ("t", 1)])
    assert (purgatory.watched, purgatory.watched_keys) == (2, 2)
    wait.ready = True
    assert purgatory.check_and_complete(("t", 1)) == 1


def test_the_same_key_given_twice_is_watched_once(purgatory: Purgatory[Wait]) -> None:
    """Kafka watches it twice."""
    wait = Wait()
    purgatory.try_complete_else_watch(wait, ["k", "k", "j", "k"])
    assert purgatory.watched == 2
    purgatory.check_and_complete("k")
    assert wait.calls == ["try"] * 3


def test_keys_from_a_generator(purgatory: Purgatory[Wait]) -> None:
    purgatory.try_complete_else_watch(Wait(), (Partition("t", number) for number in range(200)))
    assert purgatory.watched == purgatory.watched_keys == 200
    purgatory._check()


@pytest.mark.parametrize("ready", [True, False])
def test_no_key_is_an_error_whether_or_not_it_would_complete(purgatory: Purgatory[Wait], ready: bool) -> None:
    wait = Wait(ready=ready)
    with pytest.raises(ValueError, match="at least one key"):
        purgatory.try_complete_else_watch(wait, [])
    assert wait.calls == []
    purgatory.try_complete_else_watch(wait, ["k"])  # nothing had happened to it


@pytest.mark.parametrize("key", ["orders-0", b"orders-0", 7, None])
def test_one_key_is_not_many(purgatory: Purgatory[Wait], key: object) -> None:
    with pytest.raises(TypeError, match="keys must be a collection of keys: pass") as refusal:
        purgatory.try_complete_else_watch(Wait(), key)  # type: ignore[arg-type]
    assert f"pass [{key!r}] for this one" in str(refusal.value)


def test_what_an_iterable_of_keys_raises_is_its_own(purgatory: Purgatory[Wait]) -> None:
    with pytest.raises(TypeError, match="'int' object is not callable"):
        purgatory.try_complete_else_watch(Wait(), (key() for key in (1, 2)))  # type: ignore[operator]


def test_an_unhashable_key_and_what_is_no_operation(purgatory: Purgatory[Wait]) -> None:
    wait = Wait()
    with pytest.raises(TypeError, match="unhashable"):
        purgatory.try_complete_else_watch(wait, ["a", ["b"]])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="unhashable"):
        purgatory.check_and_complete([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a DelayedOperation"):
        purgatory.try_complete_else_watch("op", ["k"])  # type: ignore[arg-type]
    assert wait.calls == []
    assert purgatory.watched == 0


def test_no_key_stays_behind_its_operations_p4(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    for number in range(1000):
        wait = Wait(1)
        purgatory.try_complete_else_watch(wait, [("session", number), "all"])
        if number % 3 == 0:
            wait.force_complete()
        elif number % 3 == 1:
            purgatory.cancel_for_key(("session", number))
    assert purgatory.watched_keys == 334
    timer.advance(1)
    assert purgatory.watched_keys == purgatory.watched == 0


def test_keys_with_one_hash_keep_their_lists_apart(purgatory: Purgatory[Wait]) -> None:
    waits = {name: [Wait(name=name) for _ in range(3)] for name in "abcde"}
    for position in range(3):
        for name, mine in waits.items():
            purgatory.try_complete_else_watch(mine[position], [Key(name)])
    assert purgatory.watched_keys == 5
    for name in "caebd":  # from the middle, from both ends, the last
        for wait in waits[name]:
            wait.ready = True
        assert purgatory.check_and_complete(Key(name)) == 3
        assert purgatory.check_and_complete(Key(name)) == 0
        purgatory._check()
    assert purgatory.watched_keys == 0


def test_keys_are_hashed_and_compared_with_no_lock_held_p5(purgatory: Purgatory[Wait]) -> None:
    def meddle() -> None:
        if not inside:
            inside.append(True)
            assert_lists_free(purgatory)
            purgatory.check_and_complete("other")
            purgatory.try_complete_else_watch(Wait(), ["other"])
            inside.clear()

    inside: list[bool] = []
    keys = [Key("a", meddle=meddle), Key("b", meddle=meddle), Key("a", meddle=meddle)]
    waits = [Wait(), Wait()]
    for wait in waits:
        purgatory.try_complete_else_watch(wait, keys)
        wait.ready = True
    assert purgatory.check_and_complete(Key("b", meddle=meddle)) == 2
    assert purgatory.cancel_for_key(Key("b", meddle=meddle)) == []


@pytest.mark.parametrize("change", ["come", "go", "go and come"])
def test_a_list_that_comes_or_goes_while_its_key_is_compared_p2(purgatory: Purgatory[Wait], change: str) -> None:
    """Between finding a key's list and joining it, the list may empty, or appear: the watch must not be lost."""

    def meddle() -> None:
        while changes:
            changes.pop()()

    first, second, joined = Wait(), Wait(), Wait()
    steps: dict[str, list[Callable[[], object]]] = {
        "come": [lambda: purgatory.try_complete_else_watch(second, [Key("k")])],
        "go": [first.force_complete],
        "go and come": [lambda: purgatory.try_complete_else_watch(second, [Key("k")]), first.force_complete],
    }
    changes: list[Callable[[], object]] = []
    purgatory.try_complete_else_watch(first, [Key("other" if change == "come" else "k", meddle=meddle)])

    def begin(wait: Wait) -> None:
        if len(wait.calls) == 1:
            changes.extend(steps[change])

    joined.on_try = begin
    assert not purgatory.try_complete_else_watch(joined, [Key("k")])
    assert changes == []
    purgatory._check()
    joined.ready = second.ready = True
    assert purgatory.check_and_complete(Key("k")) == (1 if change == "go" else 2)
    assert joined.is_completed


@pytest.mark.parametrize("how", ["cancelled", "completed"])
def test_an_operation_that_ends_while_its_keys_are_compared_is_not_watched_p4(
    timer: ManualTimer, purgatory: Purgatory[Wait], how: str
) -> None:
    def end() -> None:
        if wait.calls and wait.outcome is None:
            assert purgatory.cancel(wait) if how == "cancelled" else wait.force_complete()

    resident, wait = Wait(), Wait()
    purgatory.try_complete_else_watch(resident, [Key("k", meddle=end)])
    assert purgatory.try_complete_else_watch(wait, [1, 2, Key("k"), 3]) is (how == "completed")
    assert wait.outcome == how
    assert purgatory.watched == purgatory.delayed == len(timer) == 1


def test_a_comparison_that_raises_leaves_nothing_watched(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    class Broken(Key):
        __hash__ = Key.__hash__

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("cannot compare")

    resident, wait = Wait(), Wait()
    purgatory.try_complete_else_watch(resident, [Key("k")])
    with pytest.raises(RuntimeError, match="cannot compare"):
        purgatory.try_complete_else_watch(wait, [*range(100), Broken("k")])
    assert purgatory.watched == purgatory.delayed == len(timer) == 1
    with pytest.raises(RuntimeError, match="cannot compare"):
        purgatory.check_and_complete(Broken("k"))
    assert resident.force_complete()


def test_a_key_whose_hash_changes_is_still_left_p4(purgatory: Purgatory[Wait]) -> None:
    key = Key("k")
    wait = Wait()
    purgatory.try_complete_else_watch(wait, [key])
    key.hashed = 2
    assert wait.force_complete()
    assert purgatory.watched_keys == 0


@pytest.mark.skipif(is_compiled(), reason="compiled, there is no gap for a finaliser")
def test_the_lock_tells_a_finaliser_off_instead_of_hanging(purgatory: Purgatory[Wait]) -> None:
    """A finaliser or signal handler may run in the middle of a change to the lists, on the very thread."""
    wait = Wait()
    purgatory.try_complete_else_watch(wait, ["k"])
    with purgatory._directory._lock:
        for call in (purgatory.stats, wait.force_complete, lambda: purgatory.check_and_complete("k")):
            with pytest.raises(PurgatoryError, match="a finaliser or a signal handler"):
                call()
    assert wait.force_complete()


def test_many_keys_are_found_whatever_their_hashes(timer: ManualTimer, purgatory: Purgatory[Wait]) -> None:
    """Hashes that differ by one, or in high bits only, or are negative; through many sizes of the table."""
    keys: list[object] = [number << 32 for number in range(1, 700)]
    keys += range(-300, 700)
    keys += [number * 1024 for number in range(1, 700)]
    keys += [float(number) + 0.5 for number in range(300)]
    waits = {key: Wait(name=str(key)) for key in keys}
    for count, (key, wait) in enumerate(waits.items(), 1):
        purgatory.try_complete_else_watch(wait, [key])
        assert purgatory.watched_keys == count
    purgatory._check()
    for key, wait in list(waits.items())[::2]:
        wait.ready = True
        assert purgatory.check_and_complete(key) == 1
    purgatory._check()
    assert purgatory.watched_keys == len(waits) - len(list(waits)[::2])
    timer.advance(10)


def test_a_key_given_again_while_others_join_it_is_watched_once(purgatory: Purgatory[Wait]) -> None:
    """Between the two, while another key is compared, others join the first."""

    def meddle() -> None:
        if wait.calls == ["try"] and not others:
            others.extend(Wait() for _ in range(3))
            for other in others:
                purgatory.try_complete_else_watch(other, ["k"])

    others: list[Wait] = []
    resident, wait = Wait(), Wait()
    purgatory.try_complete_else_watch(resident, [Key("m", meddle=meddle)])
    purgatory.try_complete_else_watch(wait, ["k", Key("m"), "k"])
    assert len(others) == 3
    assert purgatory.watched == 1 + 3 + 2
    purgatory._check()
    purgatory.check_and_complete("k")
    assert wait.calls == ["try"] * 3


def test_a_key_is_let_go_of_with_its_last_operation_and_outside_the_lock(purgatory: Purgatory[Wait]) -> None:
    class Mourned(Key):
        __hash__ = Key.__hash__

        def __del__(self) -> None:
            gone.append(purgatory.watched)
            purgatory.check_and_complete("other")

    gone: list[int] = []
    for keys in (1, 3):
        wait = Wait()
        purgatory.try_complete_else_watch(wait, [Mourned(str(number)) for number in range(keys)])
        assert gone == []
        assert wait.force_complete()
        assert gone == [0] * keys
        gone.clear()
