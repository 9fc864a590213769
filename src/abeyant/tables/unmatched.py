"""Warn where no key of the operations occurs among the events: all operations expire, and nothing looks wrong.

Mostly both tables have the same identifiers in two forms: `0017` and `17`, `A-1` and `a-1`. The warning names such a
pair if there is one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from abeyant.tables.columns import missing
from abeyant.tables.defaults import SHOWN_CHARS, only_role
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.roles import ROLE_COLUMNS
from abeyant.tables.validity import Operations

__all__ = ["LEAST_UNMATCHED", "KeySample", "key_column", "unmatched", "unmatched_in", "unmatched_keys", "watched_keys"]

LEAST_UNMATCHED: Final = 10
"""The minimum number of operations to warn about: if there are few, all may wait for events that are still to come."""
_SAMPLED: Final = 1_000
"""The maximum number of rows of a chunk that are sampled for examples."""

Key = tuple[str, str]  # instance and key

_ZEROS: Final = re.compile(r"(?<!\d)0+(?=\d)")
_NO_LETTER: Final = re.compile(r"[\W_]+")
_FORMS: Final[tuple[tuple[str, Callable[[str], str], str], ...]] = (
    ("in the spaces around it", str.strip, "trim both columns"),
    ("in upper and lower case", lambda key: key.strip().casefold(), "write both columns in lower case"),
    (
        "in zeros in front",
        lambda key: _ZEROS.sub("", key.strip()),
        "pad one column or strip the other (an id that was read as a number has lost its zeros)",
    ),
    (
        "in '.0' at the end",
        lambda key: key.strip().removesuffix(".0"),
        "make them integers before they become text",
    ),
    (
        "in how it is written",
        lambda key: _ZEROS.sub("", _NO_LETTER.sub("", key)).casefold(),
        "write both columns in one way",
    ),
)


class KeySample:
    """A sample of a table's keys: the first keys of each chunk. Several threads may add chunks."""

    def __init__(self) -> None:
        self._chunks: deque[list[Key]] = deque()

    def add(self, instance: pa.ChunkedArray, key: pa.ChunkedArray) -> None:
        """Keep the first pairs of a chunk. O(1): at most `_SAMPLED` rows."""
        first = [column.slice(0, _SAMPLED).cast(pa.string()).to_pylist() for column in (instance, key)]
        self._chunks.append([*dict.fromkeys(zip(*first, strict=True))])

    @property
    def keys(self) -> list[Key]:
        """Return the distinct pairs of instance and key."""
        return [*dict.fromkeys(pair for chunk in self._chunks for pair in chunk)]


def key_column(operations: Collection[str]) -> str:
    """Return the name of the column with the operations' keys, in a table with these columns."""
    if role := only_role(operations):
        return f"{role}_key"
    return "key" if "watches" not in operations else "watches.key"


def watched_keys(operations: Operations) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return the instance and the key of each watch."""
    watches, instance = operations.watches, operations.table["instance"]
    return instance if watches.single else instance.take(pa.array(watches.operation())), watches.key


def unmatched(
    operations: Sequence[Operations], column: str, event_places: Sequence[Integers], events: KeySample, pairs: PairHash
) -> str | None:
    """Return a warning if there are ten or more valid operations and none of their keys has an event; else None.

    `event_places` are the first hashes by `pairs` of all events' keys; `events` is a sample of these keys. O(rows).
    """
    rows = sum(len(part.start) for part in operations)
    if rows < LEAST_UNMATCHED or not any(map(len, event_places)):
        return None
    places = np.unique(np.concatenate(event_places))
    keys = KeySample()
    for part in operations:
        for instance, key in _all_keys(part):
            if np.isin(pairs(instance, key)[0], places).any():
                return None
            keys.add(instance, key)
    return unmatched_keys(f"the {rows:,} operations", column, keys.keys, events.keys)


def unmatched_in(operations: Operations, column: str, events: pa.Table) -> str | None:
    """Return a warning if no key of the valid operations occurs in the valid `events`, else None. See `unmatched`."""
    keys, pairs = KeySample(), PairHash()
    keys.add(events["instance"], events["key"])
    places = pairs(events["instance"], events["key"])[0].copy()  # `pairs` uses it again
    return unmatched([operations], column, [places], keys, pairs)


def _all_keys(operations: Operations) -> Iterator[tuple[pa.ChunkedArray, pa.ChunkedArray]]:
    """Yield instances and keys of the watches, then of columns such as `cancel_key`."""
    yield watched_keys(operations)
    for name in ROLE_COLUMNS.values():
        if name in operations.table.column_names:
            rows = operations.table.filter(pa.array(~missing(operations.table[name])))
            yield rows["instance"], rows[name]


def unmatched_keys(many: str, column: str, operations: Iterable[Key], events: Iterable[Key]) -> str:
    """Return the warning: an example of a key from each table, how the two differ, and what to do.

    `many` names the operations, `column` the column with their keys. Both samples of keys must not be empty.
    """
    operation_keys, event_keys = [*operations], [*events]
    operation_key, event_key, difference, fix = _similar_keys(operation_keys, event_keys)
    return (
        f"no key of {many} occurs among the events, so all expired: operations have {column} "
        f"{_shown(operation_key)}, events have key {_shown(event_key)}{difference}; {fix}"
    )


def _similar_keys(operation_keys: list[Key], event_keys: list[Key]) -> tuple[str, str, str, str]:
    """Return a key from each table (similar keys if there are any), how the two differ, and what to do."""
    instances = {key: instance for instance, key in operation_keys}
    for instance, key in event_keys:
        if key in instances:
            pair = f", with instance {_shown(instances[key])} in operations and {_shown(instance)} in events"
            return key, key, pair, "name instances alike in both tables, or drop the column from both"
    for difference, form, fix in _FORMS:
        keys = {form(key): key for _, key in operation_keys}
        for _, key in event_keys:
            if (match := keys.get(form(key))) is not None and form(key):
                return match, key, f", which differ {difference}", fix
    return (
        operation_keys[0][1],
        event_keys[0][1],
        "",
        "check that both columns have the same identifiers, in the same form",
    )


def _shown(key: str) -> str:
    return repr(key[:SHOWN_CHARS])
