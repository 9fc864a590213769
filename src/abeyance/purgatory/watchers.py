"""The watch list of one key: who waits on it, in order of arrival. Kafka's `Watchers`, with links of its own."""

from __future__ import annotations

from collections.abc import Hashable

from abeyance.purgatory.watch import Watch


class Watchers:
    """A doubly linked list through the watches themselves. Guarded by the purgatory's lock.

    A list lives from its key's first watch to its last and is `retired` then, never to be used again:
    whoever found it a moment ago sees that under the lock and looks again. So no key stays behind when its
    operations are gone.
    """

    __slots__ = ("first", "hashed", "issued", "key", "last", "retired", "sibling", "size")

    def __init__(self, key: Hashable, hashed: int) -> None:
        self.key = key
        self.hashed = hashed
        # The list of the next key with the same hash; kept when this one is retired, as Watch.next is.
        self.sibling: Watchers | None = None
        self.retired = False
        self.first: Watch | None = None
        self.last: Watch | None = None
        self.size = 0
        self.issued = 0  # the number that the next watch gets

    def append(self, watch: Watch) -> None:
        """Let a watch join at the end. O(1)."""
        watch.watchers = self
        watch.number = self.issued
        self.issued += 1
        last = self.last
        watch.previous = last
        if last is None:
            self.first = watch
        else:
            last.next = watch
        self.last = watch
        self.size += 1

    def remove(self, watch: Watch) -> None:
        """Take a watch out, from anywhere in the list. O(1)."""
        before, behind = watch.previous, watch.next
        if before is None:
            self.first = behind
        else:
            before.next = behind
        if behind is None:
            self.last = before
        else:
            behind.previous = before
        watch.watchers = None
        watch.previous = None  # but `next` stays: see Watch
        self.size -= 1

    def batch(self, behind: Watch | None, before: int, limit: int) -> list[Watch]:
        """Up to `limit` watches that stand behind `behind` (None: from the start) and are numbered below `before`.

        `before` is what `issued` was when the walk began. Without it a walk whose operations come back on
        the same key, as a session that waits again does, would never end.
        """
        found: list[Watch] = []
        watch = self.first if behind is None else behind.next
        while watch is not None and watch.number < before:
            if watch.watchers is not None:
                found.append(watch)
                if len(found) == limit:
                    break
            watch = watch.next
        return found
