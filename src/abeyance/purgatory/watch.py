"""One watch: one operation waiting on one key. The link of two lists at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from abeyance.purgatory.operation import DelayedOperation
    from abeyance.purgatory.watchers import Watchers


class Watch:
    """The node that stands in the key's list (`previous`, `next`) and in the operation's chain (`also`).

    Because the operation can reach its watches, and a watch its list, an operation leaves all of its lists in
    O(its keys), wherever in them it stands (law P4). Guarded by the purgatory's lock.

    A watch that has been taken out keeps its `next`. New watches join at the end only, so the `next` of one
    that was taken out still leads on to all that stood behind it; whoever was walking the list goes on from
    there.
    """

    __slots__ = ("also", "hashed", "key", "next", "number", "operation", "previous", "watchers")

    def __init__(self, operation: DelayedOperation, key: Hashable, hashed: int) -> None:
        self.operation = operation
        self.key = key
        self.hashed = hashed
        self.number = -1  # its place in the order of arrival on the key
        self.watchers: Watchers | None = None  # the list it stands in; None before and after
        self.previous: Watch | None = None
        self.next: Watch | None = None
        self.also: Watch | None = None
