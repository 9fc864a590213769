"""Read pending operations for the window: key, client, start, deadline, and what would complete each (W2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from abeyant import aio
from abeyant.engine import is_compiled
from abeyant.purgatory import DelayedOperation, Purgatory
from abeyant.purgatory.survey import deadline_of, operations_in, slots_of, timer_of
from abeyant.reporting import shown
from abeyant.window.pacing import Pacer
from abeyant.window.wheels import name_of

ROWS = 100  # operations that a page shows
CLIENTS = 60  # clients listed, those with most operations first
MOST_SLOTS = 131_072  # slots read of each purgatory at most
SLICE = 256 if is_compiled() else 64  # slots read at a time
_KEPT = 4 * ROWS
KEYS = 3  # keys of an operation that are listed
_KEYS_READ = 24
_LONG = 300  # characters of a key or client: a topic's name has up to 249


class Described(NamedTuple):
    """The description of an operation, as its row shows it."""

    kind: str
    keys: list[str]
    client: str
    since: float | None  # seconds on the timer's clock; None: computed as deadline - timeout
    deadline: float | None  # seconds on the timer's clock; None: read from the timer
    until: str  # what would complete it


Describe = Callable[[Any, list[str]], Described]


class PurgatoryView(NamedTuple):
    """A purgatory with the function that describes its operations."""

    name: str
    purgatory: Purgatory[Any] | aio.Purgatory
    describe: Describe | None = None
    now: Callable[[], float] | None = None  # its clock, where its timer has none

    @property
    def room(self) -> Purgatory[Any] | None:
        """Return the purgatory that holds the operations; None if an asyncio purgatory has had no wait yet."""
        purgatory = self.purgatory
        return purgatory._waits if isinstance(purgatory, aio.Purgatory) else purgatory

    def counts(self) -> dict[str, Any]:
        """Return the counts, for the page. O(1)."""
        return {"name": self.name, "closed": self.purgatory.closed, **self.purgatory.stats()._asdict()}


class Match(NamedTuple):
    """A pending operation that matches the search, as it was read."""

    deadline: float
    number: int  # unique, so that sorting compares no further field
    view: PurgatoryView
    operation: DelayedOperation
    keys: list[Any]


async def read_waits(views: Sequence[PurgatoryView], search: str, only: str, client: str) -> dict[str, Any]:
    """Return the pending operations that expire first, their number, and the clients with most of them, as JSON values.

    `search` is a text to find in a key, kind, client or purgatory's name, ignoring case; `only` is a purgatory's name
    and `client` a client id; '' selects all. Clients are counted regardless of `search` and `client`. O(watches), at
    most `MOST_SLOTS` of each purgatory, in slices. During the reading only the operations that expire first are kept:
    many surviving objects would make the garbage collector traverse all objects of the program.
    """
    search = search.casefold()
    first: list[Match] = []
    latest = math.inf  # latest deadline of those that are kept
    clients: Counter[str] = Counter()
    total = matched = 0
    partial = False
    pacer = Pacer()
    for view in views:
        room = view.room
        if room is None or (only and view.name != only):
            continue
        slots = slots_of(room)
        partial |= slots > MOST_SLOTS
        for begin in range(0, min(slots, MOST_SLOTS), SLICE):
            for operation, keys in operations_in(room, begin, SLICE):
                total += 1
                client_id = client_of(operation)
                if client_id:
                    clients[client_id] += 1
                if client and client_id != client:
                    continue
                if search and not _matches(view, operation, client_id, keys, search):
                    continue
                matched += 1
                deadline = deadline_of(room, operation)
                if deadline is None:
                    deadline = math.inf
                if deadline < latest or len(first) < ROWS:
                    first.append(Match(deadline, matched, view, operation, keys))
            if len(first) > _KEPT:
                first.sort()
                del first[ROWS:]
                latest = first[-1].deadline
            await pacer.rest()
    first.sort()
    rows = []
    for entry in first[:ROWS]:
        rows.append(_row(entry))
        await pacer.rest()
    listed = [{"name": name, "waiting": number} for name, number in clients.most_common(CLIENTS)]
    return {"total": total, "matched": matched, "partial": partial, "clients": listed, "rows": rows}


def client_of(operation: object) -> str:
    """Return an operation's `client_id`, which a broker's operations have; '' if it has none."""
    client = getattr(operation, "client_id", "")
    return client[:_LONG] if isinstance(client, str) else ""


def _matches(view: PurgatoryView, operation: DelayedOperation, client: str, keys: Sequence[object], text: str) -> bool:
    if text in view.name.casefold() or text in type(operation).__name__.casefold():
        return True
    if text in client.casefold():
        return True
    return any(text in key_text(key).casefold() for key in keys)


def _row(entry: Match) -> dict[str, Any]:
    view, operation = entry.view, entry.operation
    room = view.room
    timer = None if room is None else timer_of(room)
    keys = [key_text(key) for key in entry.keys[:_KEYS_READ]]
    described = (view.describe or describe)(operation, keys)
    deadline = entry.deadline if described.deadline is None else described.deadline
    since = deadline - operation.timeout if described.since is None else described.since
    now = clock_of(timer) if view.now is None else view.now()
    return {
        "id": f"{id(operation):x} {entry.deadline:.6f}",  # an `id` alone may be reused once an operation has ended
        "in": view.name,
        "kind": described.kind,
        "keys": described.keys[:KEYS],
        "more": max(0, len(entry.keys) - KEYS),
        "client": described.client[:_LONG],
        "waited": None if now is None or not math.isfinite(since) else round(now - since, 4),
        "left": None if now is None or not math.isfinite(deadline) else round(deadline - now, 4),
        "timeout": operation.timeout,
        "until": described.until,
    }


def clock_of(timer: Any) -> float | None:
    """Return the time of a purgatory's timer, in seconds; None if the timer has no clock."""
    time = getattr(timer, "time", None)
    return time() if callable(time) else None


def describe(operation: Any, keys: list[str]) -> Described:
    """Return the description of an operation by its class and keys, where nothing describes it better."""
    kind = type(operation).__name__
    until = getattr(operation, "until", None)
    if kind == "_Wait":  # aio's
        condition = "a check" if until is None else f"{name_of(until)}()"
        return Described("wait", keys, "", None, None, f"{condition} at check({keys[0]})")
    return Described(
        kind, keys, client_of(operation), None, None, f"{kind}.try_complete() at check_and_complete({keys[0]})"
    )


def key_text(key: object) -> str:
    """Return a key as text: a string unchanged, the parts of a tuple joined with commas."""
    if isinstance(key, str):
        text = key
    elif isinstance(key, tuple):
        text = ", ".join(part if isinstance(part, str) else shown(part) for part in key[:KEYS])
    else:
        text = shown(key)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."
