"""Check that records and effects are in the order in which they were sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History


def order_per_key(topic: str) -> Check:
    """Check that a producer's records of one key are in `topic` in the order in which they were sent.

    Checks acknowledged records within a partition: Kafka promises no order between producers or between partitions,
    whose number may have grown, and a record whose acknowledgement the program never received may be appended late.
    """

    def look(history: History) -> Verdict:
        there = {(one.partition, one.offset): one.item for one in history.stored if one.topic == topic}
        last: dict[tuple[str, bytes | None, int], tuple[int, int]] = {}  # offset, and number of the record
        seen, wrong = 0, []
        for number, one in enumerate(history.sent):
            place = one.result() if one.topic == topic else None
            if place is None or there.get(place, one.item) != one.item:
                continue
            seen += 1
            partition, offset = place
            key = one.producer, one.item.key, partition
            before, earlier = last.get(key, (-1, -1))
            if offset <= before:
                ahead = _value(history.sent[earlier].item.value)
                what = f"{_value(one.item.value)} was sent after {ahead}, and is at {topic}-{partition} offset {offset}"
                wrong.append(f"{what}, before offset {before}")
            last[key] = max((before, earlier), (offset, number))
        return Verdict(seen, f"acknowledged record of a producer in {topic}", tuple(wrong))

    return Check(f"order per key ({topic})", look)


def effects_in_order(
    effects: Callable[[], Iterable[object]],
    inputs: Callable[[], Iterable[object]],
    key: Callable[[object], object] = lambda _: None,
) -> Check:
    """Check that the effects of one key, in a program's own ledger, come in the order of its inputs.

    `key` returns an input's key; by default all have the same. Only the first of repeated effects counts, since a
    program with at-least-once semantics may repeat them. Missing effects are not reported: see `each_effect_once`.
    """

    def look(_: History) -> Verdict:
        order = {one: number for number, one in enumerate(inputs())}
        last: dict[object, object] = {}
        seen: set[object] = set()
        wrong = []
        for one in effects():
            if one in seen or one not in order:
                continue
            seen.add(one)
            before = last.get(key(one))
            if before is not None and order[before] > order[one]:
                wrong.append(f"{one!r} took effect after {before!r}, which is meant to come later")
            else:
                last[key(one)] = one
        return Verdict(len(seen), "effect of an input", tuple(wrong))

    return Check("effects in order", look)


def _value(value: bytes | None) -> str:
    return repr((value or b"")[:40].decode(errors="replace"))
