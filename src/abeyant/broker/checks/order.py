"""Check that records are in the order in which they were sent, and effects in the order of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History


def order_per_key(topic: str) -> Check:
    """Check that a producer's records of one key are in `topic` in the order in which they were sent.

    Only acknowledged records in the same partition are compared. Kafka promises no order between producers or between
    partitions (a topic may get more of them), and may append a record late if its acknowledgement was lost.
    """

    def look(history: History) -> Verdict:
        stored_items = {
            (record.partition, record.offset): record.item for record in history.stored if record.topic == topic
        }
        last: dict[tuple[str, bytes | None, int], tuple[int, int]] = {}  # offset, and number of the record
        count, wrong = 0, []
        for number, record in enumerate(history.sent):
            place = record.result() if record.topic == topic else None
            if place is None or stored_items.get(place, record.item) != record.item:
                continue
            count += 1
            partition, offset = place
            key = record.producer, record.item.key, partition
            previous, previous_number = last.get(key, (-1, -1))
            if offset <= previous:
                ahead = _value(history.sent[previous_number].item.value)
                message = (
                    f"{_value(record.item.value)} was sent after {ahead}, and is at {topic}-{partition} offset {offset}"
                )
                wrong.append(f"{message}, before offset {previous}")
            last[key] = max((previous, previous_number), (offset, number))
        return Verdict(count, f"acknowledged record of a producer in {topic}", tuple(wrong))

    return Check(f"order per key ({topic})", look)


def effects_in_order(
    effects: Callable[[], Iterable[object]],
    inputs: Callable[[], Iterable[object]],
    key: Callable[[object], object] = lambda _: None,
) -> Check:
    """Check that the effects with the same key come in the order of the inputs with that key.

    `effects` and `inputs` are as in `each_effect_once`. `key` returns an input's key; by default all inputs have the
    same. If an effect is repeated, only the first one counts, since a program with at-least-once semantics may repeat
    effects. Missing effects are not reported.
    """

    def look(_: History) -> Verdict:
        order = {entry: number for number, entry in enumerate(inputs())}
        last: dict[object, object] = {}
        seen: set[object] = set()
        wrong = []
        for effect in effects():
            if effect in seen or effect not in order:
                continue
            seen.add(effect)
            previous = last.get(key(effect))
            if previous is not None and order[previous] > order[effect]:
                wrong.append(f"{effect!r} took effect after {previous!r}, which is meant to come later")
            else:
                last[key(effect)] = effect
        return Verdict(len(seen), "effect of an input", tuple(wrong))

    return Check("effects in order", look)


def _value(value: bytes | None) -> str:
    return repr((value or b"")[:40].decode(errors="replace"))
