"""Check what consumers deliver: in order, without gaps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Handed, History, Place, Sought


def consumer_never_skips(topic: str) -> Check:
    """Check that within an assignment a consumer of `topic` neither goes back nor skips a record.

    After a seek of the program, the position starts anew. Offsets without a readable record are not a gap: those of
    markers, of aborted transactions for a read_committed consumer, and of records that compaction or retention has
    removed.
    """

    def look(history: History) -> Verdict:
        readable = _readable(history, topic)
        at: dict[tuple[str, int, Place], int] = {}  # the position: the least offset to be handed next
        seen, wrong = 0, []
        for one in in_order(history, topic):
            key = one.client, one.assignment, (one.topic, one.partition)
            if isinstance(one, Sought):
                at.pop(key, None)
                if one.offset >= 0:
                    at[key] = one.offset
                continue
            seen += 1
            position = at.get(key)
            at[key] = one.offset + 1
            if position is None:
                continue
            offsets = readable[one.committed_only, one.partition]
            skipped = next((offset for offset in range(position, one.offset) if offset in offsets), None)
            where = f"{one.client} at {topic}-{one.partition}"
            if one.offset < position:
                wrong.append(f"{where} went back to offset {one.offset}, where {position} was next")
            elif skipped is not None:
                wrong.append(f"{where} skipped offset {skipped}, and was handed {one.offset}")
        return Verdict(seen, f"record of {topic} handed to a consumer", tuple(wrong))

    return Check(f"consumer never skips ({topic})", look)


def _readable(history: History, topic: str) -> dict[tuple[bool, int], set[int]]:
    """Return the offsets that can be read now, by (whether with read_committed, partition)."""
    found: dict[tuple[bool, int], set[int]] = defaultdict(set)
    for committed, records in ((False, history.stored), (True, history.stored_committed)):
        for one in records:
            if one.topic == topic:
                found[committed, one.partition].add(one.offset)
    return found


def in_order(history: History, topic: str) -> Iterator[Handed | Sought]:
    """Yield the topic's records handed to consumers, and their seeks, in the order in which they happened."""
    seeks = iter([one for one in history.sought if one.topic == topic])
    seek = next(seeks, None)
    for number, handed in enumerate(history.handed):
        while seek is not None and seek.after <= number:
            yield seek
            seek = next(seeks, None)
        if handed.topic == topic:
            yield handed
