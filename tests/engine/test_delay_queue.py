"""The delay queue of buckets against `heapq`. On an interpreted copy: compiled, it has no Python surface."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.source_copy import engine_copy


@pytest.fixture(scope="module")
def delay_queue_class() -> Iterator[Any]:
    with engine_copy() as engine:
        yield engine.delay_queue.DelayQueue


@given(entries=st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**30)), unique=True))
def test_buckets_come_out_by_expiration_and_then_by_number(
    delay_queue_class: Any, entries: list[tuple[int, int]]
) -> None:
    queue = delay_queue_class()
    for expiration, bucket in entries:
        queue.push(expiration, bucket)
    queue._check()
    assert sorted(queue.entries()) == sorted(entries)
    out = []
    while len(queue):
        expiration = queue.first_expiration()
        assert queue.first_bucket() == min(queue.entries())[1]
        out.append((expiration, queue.pop()))
    assert out == sorted(entries)


@pytest.mark.parametrize("expirations", [3, 50, 10**15])
def test_it_agrees_with_heapq_while_entries_come_and_go(delay_queue_class: Any, expirations: int) -> None:
    rng = random.Random(expirations)
    queue = delay_queue_class()
    heap: list[tuple[int, int]] = []
    for bucket in range(6000):  # far past the first room of 64
        if heap and rng.random() < 0.45:
            assert (queue.first_expiration(), queue.first_bucket()) == heap[0]
            assert queue.pop() == heapq.heappop(heap)[1]
        else:
            entry = (rng.randrange(expirations), bucket)
            queue.push(*entry)
            heapq.heappush(heap, entry)
        assert len(queue) == len(heap)
        if bucket % 200 == 0:
            queue._check()
    assert sorted(queue.entries()) == sorted(heap)
    while heap:
        assert queue.pop() == heapq.heappop(heap)[1]
    assert len(queue) == 0


def test_emptied_it_can_be_filled_again(delay_queue_class: Any) -> None:
    queue = delay_queue_class()
    for _ in range(3):
        for expiration in (5, 1, 3):
            queue.push(expiration, expiration + 100)
        assert [queue.pop() for _ in range(3)] == [101, 103, 105]
        assert queue.entries() == []
