"""Each check over histories made by hand: what it finds, and what Kafka allows."""

from __future__ import annotations

from typing import Any

import pytest

from abeyant.broker import checks
from abeyant.broker.checks.check import complaint
from abeyant.broker.checks.history import Committed, Handed, History, Item, Produced, Sought, Stored

TEA = Item(b"1", b"tea")


def produced(offset: int = 0, item: Item = TEA, **other: Any) -> Produced:
    given = {
        "at": 1.0, "client": "shop", "process": "", "topic": "orders", "partition": 0, "offset": offset,
        "items": (item,), "acks": -1, "error": "NONE", "producer": (-1, -1), "transactional_id": None,
    }  # fmt: skip
    return Produced(**{**given, **other})


def stored(offset: int = 0, item: Item = TEA) -> Stored:
    return Stored("orders", 0, offset, 0, item)


def handed(offset: int, **other: Any) -> Handed:
    given = {
        "at": 1.0 + offset, "client": "c", "process": "", "group": "work", "assignment": 1, "topic": "orders",
        "partition": 0, "offset": offset, "item": TEA, "committed_only": False,
    }  # fmt: skip
    return Handed(**{**given, **other})


def committed(offset: int, at: float, **other: Any) -> Committed:
    return Committed(
        at, "c", "", "work", 1, "orders", 0, offset, **{"error": "NONE", "transactional_id": None, **other}
    )


def said(check: checks.Check, **history: Any) -> str | None:
    return complaint(check, check(History(**history)))


def test_acknowledged_is_readable() -> None:
    check = checks.acknowledged_is_readable("orders", dead_letters="dead")
    assert said(check, produced=[produced()], stored=[stored()]) is None
    assert "'tea' was acknowledged at orders-0 offset 0" in str(said(check, produced=[produced()]))
    assert "offset 0" in str(said(check, produced=[produced()], stored=[stored(item=Item(b"1", b"milk"))]))
    dead = Stored("dead", 0, 0, 0, TEA)
    assert said(check, produced=[produced()], stored_committed=[dead]) is None
    # Kafka may lose what was acknowledged by the leader alone, and what was answered with an error.
    for allowed in (produced(acks=1), produced(error="REQUEST_TIMED_OUT", offset=-1)):
        assert said(check, produced=[allowed, produced()], stored=[stored()]) is None
    assert "saw no record acknowledged" in str(said(check))


def test_acknowledged_by_enough() -> None:
    check = checks.acknowledged_by_enough("orders")
    assert said(check, produced=[produced(in_sync=(2, 2))]) is None
    assert "offset 0 was acknowledged by 1 of 2 in-sync replicas" in str(
        said(check, produced=[produced(in_sync=(1, 2))])
    )
    for allowed in (
        produced(in_sync=(1, 2), acks=1),
        produced(in_sync=(1, 2), error="NOT_ENOUGH_REPLICAS"),
        produced(),
    ):
        assert said(check, produced=[allowed, produced(in_sync=(3, 2))]) is None
    assert "saw no request acknowledged" in str(said(check, produced=[produced()]))


def test_aborted_is_never_seen() -> None:
    check = checks.aborted_is_never_seen("orders")
    seen = [handed(0, committed_only=True)]
    assert said(check, handed=seen, stored_committed=[stored()]) is None
    assert "which was not committed" in str(said(check, handed=seen, stored=[stored()]))
    assert "saw no" in str(said(check, handed=[handed(0)], stored=[stored()]))


def test_each_effect_once() -> None:
    def of(effects: list[str]) -> str | None:
        return said(checks.each_effect_once(lambda: effects, lambda: ["a", "b"]))

    assert of(["b", "a"]) is None
    assert "'b' took no effect" in str(of(["a"]))
    assert "'a' took effect 2 times" in str(of(["a", "a", "b"]))
    assert "nobody asked" in str(of(["a", "b", "c"]))
    assert "saw no input" in str(said(checks.each_effect_once(list, list)))
    assert said(checks.each_effect_at_least_once(lambda: ["a", "a"], lambda: ["a"])) is None
    assert "took no effect" in str(said(checks.each_effect_at_least_once(list, lambda: ["a"])))


@pytest.mark.parametrize(
    ("offsets", "wrong"),
    [([0, 1, 2], None), ([0, 2], "skipped offset 1"), ([1, 0], "went back to offset 0, where 2 was next"), ([2], None)],
)
def test_consumer_never_skips(offsets: list[int], wrong: str | None) -> None:
    check = checks.consumer_never_skips("orders")
    found = said(check, handed=[handed(one) for one in offsets], stored=[stored(one) for one in range(3)])
    assert found is None if wrong is None else wrong in str(found)


def test_what_a_consumer_may_skip_or_read_again() -> None:
    check = checks.consumer_never_skips("orders")
    everything = [stored(one) for one in range(3)]
    for offset in (2, -1):  # to an offset, or to the end
        sought = [Sought(2.0, "c", "", 1, "orders", 0, offset, after=1)]
        assert said(check, handed=[handed(0), handed(2)], stored=everything, sought=sought) is None
    back = [Sought(2.0, "c", "", 1, "orders", 0, 1, after=2)]
    assert said(check, handed=[handed(0), handed(1), handed(1)], stored=everything, sought=back) is None
    assert "skipped offset 1" in str(
        said(check, handed=[handed(0), handed(1), handed(2)], stored=everything, sought=back)
    )
    assert said(check, handed=[handed(1), handed(0, assignment=2)], stored=everything) is None
    gap = [everything[0], everything[2]]  # a marker, or compacted
    assert said(check, handed=[handed(0), handed(2)], stored=gap) is None
    of_committed = [handed(0, committed_only=True), handed(2, committed_only=True)]
    assert said(check, handed=of_committed, stored=everything, stored_committed=gap) is None


def test_everything_is_committed() -> None:
    check = checks.everything_is_committed("work", "orders")
    end = [stored(0), stored(1)]
    assert said(check, stored_committed=end, offsets={("work", "orders", 0): 2}) is None
    assert "up to 1 of 2" in str(said(check, stored_committed=end, offsets={("work", "orders", 0): 1}))
