"""What always holds of a purgatory's lists while its lock is free, checked from the outside."""

from __future__ import annotations

from abeyance.purgatory.directory import Directory
from abeyance.purgatory.outcome import PENDING
from abeyance.purgatory.watch import Watch


def check(directory: Directory) -> None:
    """Raise AssertionError, saying which, where one does not hold. The lock is held. O(watches)."""
    keys = 0
    seen: set[int] = set()  # the watches that were met in lists, by identity
    operations: dict[int, Watch | None] = {}
    for watchers in directory:
        keys += 1
        where = f"key {watchers.key!r}"
        assert not watchers.retired, f"{where}: a retired list is still in the table"
        assert watchers.first is not None, f"{where}: an empty list is still in the table"
        before: Watch | None = None
        watch: Watch | None = watchers.first
        size = 0
        while watch is not None:
            size += 1
            assert size <= watchers.size, f"{where}: more watches than the {watchers.size} counted"
            assert watch.watchers is watchers, f"{where}: a watch that does not know its list"
            assert watch.previous is before, f"{where}: a broken back link"
            assert watch.hashed == watchers.hashed, f"{where}: a watch of another key"
            assert before is None or before.number < watch.number, f"{where}: not in order of arrival"
            assert watch.number < watchers.issued, f"{where}: a number that was never issued"
            assert watch.operation._dop_state == PENDING, f"{where}: {watch.operation!r} has ended"
            operations[id(watch.operation)] = watch.operation._dop_watches
            seen.add(id(watch))
            before, watch = watch, watch.next
        assert size == watchers.size, f"{where}: {size} watches, but {watchers.size} were counted"
        assert watchers.last is before, f"{where}: the last watch is not the last"
    assert keys == directory.keys, f"{keys} keys, but {directory.keys} were counted"
    assert len(seen) == directory.watches, f"{len(seen)} watches, but {directory.watches} were counted"
    for chain in operations.values():
        lists: set[int] = set()
        link = chain
        while link is not None:
            assert id(link) in seen, f"{link.operation!r} has a watch that is in no list"
            assert id(link.watchers) not in lists, f"{link.operation!r} is watched twice on {link.key!r}"
            lists.add(id(link.watchers))
            seen.discard(id(link))
            link = link.also
    assert not seen, f"{len(seen)} watches are in lists that their operations do not know of"
