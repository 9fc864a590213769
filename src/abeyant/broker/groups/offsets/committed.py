"""The offsets that groups have committed.

A commit becomes visible once it is replicated (K1); until then readers get the one before. So an entry has its offset
in the log, and keeps the entry that it replaces. Offsets of an open transaction are pending until it commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from abeyant.broker.groups.offsets.records import Offset, OffsetKey


@dataclass(slots=True)
class Entry:
    """One commit, at offset `place` of the log. Visible once `visible_from` (a transaction's marker) is replicated."""

    offset: Offset
    place: int
    visible_from: int
    before: Entry | None


Place = tuple[str, int]
"""A topic and a partition."""


class Offsets:
    """The committed offsets of all groups in one partition of the log."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[Place, Entry]] = {}
        self._pending: dict[int, dict[OffsetKey, Entry]] = {}  # by the producer's id
        self._unstable: Counter[OffsetKey] = Counter()  # the number of open transactions with this key

    # -- changes, by replay

    def put(self, key: OffsetKey, offset: Offset, place: int, replicated: int) -> None:
        """Apply a commit at offset `place` of the log, which is replicated up to `replicated`. O(1)."""
        self._put(key, offset, place, place, replicated)

    def _put(self, key: OffsetKey, offset: Offset, place: int, visible_from: int, replicated: int) -> None:
        entries = self._committed.setdefault(key.group, {})
        known = entries.get((key.topic, key.partition))
        if known is not None and known.visible_from < replicated:
            known.before = None
        entries[key.topic, key.partition] = Entry(offset, place, visible_from, known)

    def put_pending(self, producer_id: int, key: OffsetKey, offset: Offset, place: int) -> None:
        """Apply a commit in a producer's transaction."""
        pending = self._pending.setdefault(producer_id, {})
        if key not in pending:
            self._unstable[key] += 1
        pending[key] = Entry(offset, place, place, None)

    def forget(self, key: OffsetKey) -> None:
        """Delete an offset, and those of open transactions for its key, as in Kafka."""
        if self._unstable.pop(key, 0):
            for pending in self._pending.values():
                pending.pop(key, None)
        entries = self._committed.get(key.group)
        if entries is not None:
            entries.pop((key.topic, key.partition), None)
            if not entries:
                del self._committed[key.group]

    def ended(self, producer_id: int, marker: int, replicated: int, *, commits: bool) -> None:
        """End a producer's transaction with its marker at `place`. Later commits outside of it stay."""
        for key, entry in self._pending.pop(producer_id, {}).items():
            self._unstable[key] -= 1
            if not self._unstable[key]:
                del self._unstable[key]
            known = self._committed.get(key.group, {}).get((key.topic, key.partition))
            if commits and (known is None or known.place < entry.place):
                self._put(key, entry.offset, entry.place, marker, replicated)

    # -- queries

    def committed(self, key: OffsetKey, replicated: int) -> Offset | None:
        """Return the last commit below `replicated`; None for none."""
        return _safe(self._committed.get(key.group, {}).get((key.topic, key.partition)), replicated)

    def of_group(self, group: str, replicated: int) -> Iterator[tuple[Place, Offset]]:
        """Return all offsets of a group."""
        for place, entry in self._committed.get(group, {}).items():
            offset = _safe(entry, replicated)
            if offset is not None:
                yield place, offset

    def keys(self, group: str) -> list[OffsetKey]:
        """Return the partitions with a committed offset of a group."""
        return [OffsetKey(group, topic, partition) for topic, partition in self._committed.get(group, {})]

    def every_key(self, group: str) -> list[OffsetKey]:
        """Return the partitions with a committed or pending offset of a group."""
        return list(dict.fromkeys([*self.keys(group), *(key for key in self._unstable if key.group == group)]))

    def is_unstable(self, key: OffsetKey) -> bool:
        """Return whether an open transaction may change it."""
        return key in self._unstable

    def has_pending(self, group: str) -> bool:
        """Return whether an open transaction has offsets of this group. O(open transactions' offsets)."""
        return any(key.group == group for key in self._unstable)


def _safe(entry: Entry | None, replicated: int) -> Offset | None:
    while entry is not None and entry.visible_from >= replicated:
        entry = entry.before
    return None if entry is None else entry.offset
