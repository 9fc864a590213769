"""Hash the events of a run: equal hashes mean the same bytes at the same times in the same order (S1)."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Event(NamedTuple):
    """One event of a run: when and what happened, with the size and hash of the bytes that arrived, if any."""

    at: float
    what: str
    size: int
    digest: str
    """Hash of the event's bytes."""


class Trace:
    """A running hash of events; with `keep`, also the events, to find the first difference between two runs."""

    def __init__(self, keep: bool = False) -> None:
        self.events: list[Event] | None = [] if keep else None
        self.count = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, at: float, what: str, data: bytes = b"") -> None:
        """Add an event at a time on the loop's clock. O(bytes)."""
        self.count += 1
        self._hash.update(f"{at!r} {what} {len(data)}\n".encode())
        self._hash.update(data)
        if self.events is not None:
            self.events.append(Event(at, what, len(data), hashlib.blake2b(data, digest_size=6).hexdigest()))

    def hash(self) -> str:
        """Return the hash of all events so far: 32 hexadecimal digits."""
        return self._hash.hexdigest()
