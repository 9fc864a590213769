"""Slots, handles and lists. On an interpreted copy: compiled, a slab has no Python surface."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from engine.source_copy import engine_copy


@pytest.fixture
def module() -> Iterator[Any]:
    with engine_copy() as engine:
        yield engine.slab


@pytest.fixture
def slab(module: Any) -> Any:
    return module.Slab()


def test_a_taken_slot_holds_its_deadline_and_item_and_is_found_by_its_handle(slab: Any) -> None:
    slot = slab.take_slot(7, "item")
    assert slab.deadline[slot] == 7
    assert slab.items[slot] == "item"
    assert slab.find(slab.handle(slot)) == slot
    slab._check()


def test_a_released_slot_gives_its_item_back_and_keeps_nothing(slab: Any) -> None:
    item = object()
    slot = slab.take_slot(7, item)
    assert slab.release(slot) is item
    assert not any(kept is item for kept in slab.items)
    assert slab.live_slots() == []
    slab._check()


def test_a_handle_goes_stale_when_its_task_ends_though_the_slot_is_used_again(slab: Any) -> None:
    first = slab.take_slot(1, "first")
    stale = slab.handle(first)
    slab.release(first)
    assert slab.find(stale) == -1
    second = slab.take_slot(2, "second")
    assert second == first, "the newest free slot is used first"
    assert slab.find(stale) == -1
    assert slab.find(slab.handle(second)) == second


def test_no_handle_comes_twice_from_one_slot(slab: Any) -> None:
    handles = set()
    for n in range(10_000):
        slot = slab.take_slot(n, n)
        handles.add(slab.handle(slot))
        slab.release(slot)
    assert len(handles) == 10_000


def test_a_generation_that_runs_out_begins_again_and_stays_within_its_31_bits(module: Any, slab: Any) -> None:
    slot = slab.take_slot(1, "the last of its round")
    generation = module.STRIDE * slot + module.GENERATION
    slab.links[generation] = module._GENERATION_MASK
    last = slab.handle(slot)
    assert 0 < last < 1 << 63
    assert slab.find(last) == slot
    slab.release(slot)
    assert slab.links[generation] == 0, "even, so not live"
    assert slab.find(last) == -1
    assert slab.take_slot(1, "the first of the next") == slot
    assert slab.find(slab.handle(slot)) == slot
    slab._check()


@pytest.mark.parametrize("handle", [0, 1, -1, -(1 << 32), 1 << 32, (1 << 32) | 5, (3 << 32) | 2**31, 1 << 62])
def test_a_handle_that_was_never_given_out_finds_nothing(slab: Any, handle: int) -> None:
    slab.reserve(3)  # the slots 0 to 2, sentinels: never live
    assert slab.find(handle) == -1
    slab.take_slot(5, "item")  # slot 3
    assert slab.find(handle) == -1


def test_it_grows_past_its_first_room_and_loses_nothing(module: Any, slab: Any) -> None:
    count = 5 * module._FIRST_ROOM
    sentinel = slab.reserve(1)
    handles = []
    for n in range(count):
        slot = slab.take_slot(n, f"item {n}")
        slab.push_back(sentinel, slot)
        handles.append(slab.handle(slot))
    slab._check()
    assert [slab.deadline[slot] for slot in slab.members(sentinel)] == list(range(count))
    assert [slab.release(slab.find(handle)) for handle in handles] == [f"item {n}" for n in range(count)]
    assert slab.is_empty(sentinel)
    slab._check()


def test_freed_slots_are_used_again_before_it_grows(module: Any, slab: Any) -> None:
    for _ in range(10):
        slots = [slab.take_slot(n, n) for n in range(module._FIRST_ROOM)]
        for slot in slots:
            slab.release(slot)
        slab._check()
    assert len(slab.items) == module._FIRST_ROOM


def test_sentinels_for_more_than_the_room_there_is_are_neighbours_and_empty_lists(module: Any, slab: Any) -> None:
    slab.take_slot(1, "item")
    first = slab.reserve(10 * module._FIRST_ROOM)
    for sentinel in range(first, first + 10 * module._FIRST_ROOM):
        assert slab.is_empty(sentinel)
        assert slab.members(sentinel) == []
        assert slab.deadline[sentinel] == -1
    assert slab.take_slot(2, "another") == first + 10 * module._FIRST_ROOM
    slab._check()


def test_it_says_so_when_it_would_outgrow_its_slot_numbers(slab: Any) -> None:
    with pytest.raises(OverflowError, match=r"at most 1,073,741,824 pending"):
        slab._grow((1 << 30) + 1)


def test_unlinking_twice_harms_nothing(slab: Any) -> None:
    sentinel = slab.reserve(1)
    slots = [slab.take_slot(n, n) for n in range(3)]
    for slot in slots:
        slab.push_back(sentinel, slot)
    slab.unlink(slots[1])
    slab.unlink(slots[1])
    assert slab.members(sentinel) == [slots[0], slots[2]]
    slab._check()


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_a_whole_list_moves_in_order_and_leaves_an_empty_one(slab: Any, length: int) -> None:
    source, target = slab.reserve(1), slab.reserve(1)
    slots = [slab.take_slot(n, n) for n in range(length)]
    for slot in slots:
        slab.push_back(source, slot)
    slab.move_all(source, target)
    assert slab.members(target) == slots
    assert slab.is_empty(source)
    slab._check()


def test_lists_behave_as_lists_whatever_is_done_to_them(slab: Any) -> None:
    rng = random.Random(5)
    sentinels = [slab.reserve(1) for _ in range(4)]
    lists: dict[int, list[int]] = {sentinel: [] for sentinel in sentinels}
    for step in range(4000):
        sentinel = rng.choice(sentinels)
        members = lists[sentinel]
        match rng.randrange(6):
            case 0 | 1:
                slot = slab.take_slot(step, step)
                slab.push_back(sentinel, slot)
                members.append(slot)
            case 2:
                slot = slab.take_slot(step, step)
                slab.push_front(sentinel, slot)
                members.insert(0, slot)
            case 3 if members:
                slab.release(members.pop(rng.randrange(len(members))))
            case 4 if members:
                slot = members.pop(rng.randrange(len(members)))
                slab.unlink(slot)
                other = rng.choice(sentinels)
                slab.push_back(other, slot)
                lists[other].append(slot)
            case 5:
                empty = next((one for one in sentinels if not lists[one]), None)
                if empty is not None and empty != sentinel and rng.random() < 0.2:
                    slab.move_all(sentinel, empty)
                    lists[empty], lists[sentinel] = members, []
        if step % 50 == 0:
            slab._check()
            for each, expected in lists.items():
                assert slab.members(each) == expected
    assert sorted(slab.live_slots()) == sorted(slot for members in lists.values() for slot in members)
