"""The offsets that groups have committed.

A commit becomes visible once it is replicated (K1); until then readers get the previous commit. So an entry stores its
position in the log and the entry before it. Offsets of an open transaction are pending until the transaction commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from abeyant.broker.groups.offsets.records import Offset, OffsetKey


@dataclass(slots=True)
class Entry:
    """A commit at log offset `position`, which is visible once the log is replicated past `visible_from`.

    `visible_from` is the log offset of the commit itself, or of its transaction's marker.
    """

    offset: Offset
    position: int
    visible_from: int
    before: Entry | None


TopicPartition = tuple[str, int]
"""A topic and a partition."""


class Offsets:
    """The committed offsets of all groups in one partition of the log."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, Entry]] = {}  # by group
        self._pending: dict[int, dict[OffsetKey, Entry]] = {}  # by producer id
        self._unstable: Counter[OffsetKey] = Counter()  # open transactions per key

    # -- changes, by replay

    def put(self, key: OffsetKey, offset: Offset, position: int, replicated: int) -> None:
        """Apply a commit at log offset `position`. The log is replicated up to `replicated`. O(1)."""
        self._put(key, offset, position, position, replicated)

    def _put(self, key: OffsetKey, offset: Offset, position: int, visible_from: int, replicated: int) -> None:
        entries = self._committed.setdefault(key.group, {})
        previous = entries.get((key.topic, key.partition))
        if previous is not None and previous.visible_from < replicated:
            previous.before = None
        entries[key.topic, key.partition] = Entry(offset, position, visible_from, previous)

    def put_pending(self, producer_id: int, key: OffsetKey, offset: Offset, position: int) -> None:
        """Apply a commit in a producer's transaction, at log offset `position`."""
        pending = self._pending.setdefault(producer_id, {})
        if key not in pending:
            self._unstable[key] += 1
        pending[key] = Entry(offset, position, position, None)

    def forget(self, key: OffsetKey) -> None:
        """Delete an offset, also from open transactions, as in Kafka."""
        if self._unstable.pop(key, 0):
            for pending in self._pending.values():
                pending.pop(key, None)
        entries = self._committed.get(key.group)
        if entries is not None:
            entries.pop((key.topic, key.partition), None)
            if not entries:
                del self._committed[key.group]

    def end_transaction(self, producer_id: int, marker: int, replicated: int, *, commits: bool) -> None:
        """End a producer's transaction; its marker is at log offset `marker`. Later commits outside of it stay."""
        for key, entry in self._pending.pop(producer_id, {}).items():
            self._unstable[key] -= 1
            if not self._unstable[key]:
                del self._unstable[key]
            current = self._committed.get(key.group, {}).get((key.topic, key.partition))
            if commits and (current is None or current.position < entry.position):
                self._put(key, entry.offset, entry.position, marker, replicated)

    # -- queries

    def committed(self, key: OffsetKey, replicated: int) -> Offset | None:
        """Return the last visible commit, or None."""
        return _visible(self._committed.get(key.group, {}).get((key.topic, key.partition)), replicated)

    def all_committed(self, group: str, replicated: int) -> Iterator[tuple[TopicPartition, Offset]]:
        """Yield all visible offsets of a group."""
        for partition, entry in self._committed.get(group, {}).items():
            offset = _visible(entry, replicated)
            if offset is not None:
                yield partition, offset

    def keys(self, group: str) -> list[OffsetKey]:
        """Return the keys of a group's committed offsets."""
        return [OffsetKey(group, topic, partition) for topic, partition in self._committed.get(group, {})]

    def every_key(self, group: str) -> list[OffsetKey]:
        """Return the keys of a group's committed and pending offsets."""
        return list(dict.fromkeys([*self.keys(group), *(key for key in self._unstable if key.group == group)]))

    def is_unstable(self, key: OffsetKey) -> bool:
        """Return whether an open transaction has an offset for the key."""
        return key in self._unstable

    def has_pending(self, group: str) -> bool:
        """Return whether an open transaction has offsets of this group. O(open transactions' offsets)."""
        return any(key.group == group for key in self._unstable)


def _visible(entry: Entry | None, replicated: int) -> Offset | None:
    while entry is not None and entry.visible_from >= replicated:
        entry = entry.before
    return None if entry is None else entry.offset
