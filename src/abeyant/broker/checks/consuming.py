"""Check what consumers deliver: in order, without gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Handed, History, Place, Sought


def consumer_never_skips(topic: str) -> Check:
    """Check that within an assignment a consumer of `topic` neither goes back nor skips a record.

    After a seek of the program, the position starts anew. Offsets without a readable record are no gap: transaction
    markers, records of aborted transactions (for a read_committed consumer), and records that compaction or retention
    has removed.
    """

    def look(history: History) -> Verdict:
        readable = _readable(history, topic)
        positions: dict[tuple[str, int, Place], int] = {}  # the position: the least offset to be handed next
        count, wrong = 0, []
        for event in in_order(history, topic):
            key = event.client, event.assignment, (event.topic, event.partition)
            if isinstance(event, Sought):
                positions.pop(key, None)
                if event.offset >= 0:
                    positions[key] = event.offset
                continue
            count += 1
            position = positions.get(key)
            positions[key] = event.offset + 1
            if position is None:
                continue
            offsets = readable[event.committed_only, event.partition]
            skipped = next((offset for offset in range(position, event.offset) if offset in offsets), None)
            location = f"{event.client} at {topic}-{event.partition}"
            if event.offset < position:
                wrong.append(f"{location} went back to offset {event.offset}, where {position} was next")
            elif skipped is not None:
                wrong.append(f"{location} skipped offset {skipped}, and was handed {event.offset}")
        return Verdict(count, f"record of {topic} handed to a consumer", tuple(wrong))

    return Check(f"consumer never skips ({topic})", look)


def _readable(history: History, topic: str) -> dict[tuple[bool, int], set[int]]:
    """Return the offsets that can be read now, by (whether the consumer is read_committed, partition)."""
    offsets: dict[tuple[bool, int], set[int]] = defaultdict(set)
    for committed, records in ((False, history.stored), (True, history.stored_committed)):
        for record in records:
            if record.topic == topic:
                offsets[committed, record.partition].add(record.offset)
    return offsets


def in_order(history: History, topic: str) -> Iterator[Handed | Sought]:
    """Yield the records of a topic handed to consumers, and the consumers' seeks in it, in the order of events."""
    seeks = iter([event for event in history.sought if event.topic == topic])
    seek = next(seeks, None)
    for number, handed in enumerate(history.handed):
        while seek is not None and seek.after <= number:
            yield seek
            seek = next(seeks, None)
        if handed.topic == topic:
            yield handed
