"""Select operations that waited during the worst incidents. From these, the report draws the purgatory at that time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.activity import Incident
from abeyant.pipeline.schemas import INCIDENT_WAITS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["FOUND", "first_waits", "incident_waits", "waits_during", "worst"]

MOST_INCIDENTS: Final = 6
MOST_WAITS: Final = 250
"""Maximum waits per incident: waits of the incident's kind come first, and longer waits before shorter waits."""
LONGEST_S: Final = 600
"""Only the first 600 seconds of a longer incident are drawn."""

_WAITED: Final = ("waited", "rebalanced")  # the troubles that operations have in a purgatory
_NAMES: Final = ("instance", "kind", "key", "outcome")
_NUMBERS: Final = ("incident", "start_us", "wait_us", "timeout_ms")
FOUND: Final = pa.schema(
    {**dict.fromkeys(_NAMES, pa.string()), **dict.fromkeys(_NUMBERS, pa.int64()), "own": pa.bool_()}
)
"""Schema of the waits among which `first_waits` chooses. `own`: the wait is of the incident's kind."""


def worst(incidents: Sequence[Incident]) -> list[Incident]:
    """Return at most `MOST_INCIDENTS` incidents to draw, by number of expiries, then of operations. O(n log n)."""
    candidates = [incident for incident in incidents if incident.trouble in _WAITED]
    return sorted(candidates, key=lambda item: (-item.expired, -item.operations, item.number))[:MOST_INCIDENTS]


def waits_during(operations: pa.Table, incidents: Sequence[Incident]) -> Iterator[pa.Table]:
    """For each of the `worst` incidents, yield a table of at most `MOST_WAITS` operations that waited in it (`FOUND`).

    `operations` have the columns of `observed`, with `keys` and `timeout_ms`. O(operations) for each incident.
    """
    with_start = operations.filter(operations["start_us"].is_valid())
    start, wait = with_start["start_us"].to_numpy(), with_start["wait_us"].to_numpy()
    for incident in worst(incidents):
        until = min(incident.last_us, incident.first_us + LONGEST_S * 1_000_000)
        during = np.flatnonzero((wait > 0) & (start <= until) & (start + wait > incident.first_us))
        if len(during):
            rows = with_start.take(pa.array(during))
            incident_keys = set(incident.keys)
            keys = (keys or [None] for keys in rows["keys"].to_pylist())
            columns = {
                **{name: rows[name] for name in ("instance", "kind", "outcome", "start_us", "wait_us", "timeout_ms")},
                "key": pa.array(
                    [next((key for key in row_keys if key in incident_keys), row_keys[0]) for row_keys in keys],
                    pa.string(),
                ),
                "incident": pa.repeat(incident.number, len(during)),
                "own": pc.equal(rows["kind"], incident.kind).fill_null(False),
            }
            yield first_waits(pa.table(columns).select(FOUND.names).cast(FOUND))


def first_waits(waits: pa.Table) -> pa.Table:
    """Return at most `MOST_WAITS` waits of each incident: its own kind first, then the longest. O(n log n)."""
    order = [("incident", "ascending"), ("own", "descending"), ("wait_us", "descending"), ("start_us", "ascending")]
    rows = waits.sort_by(order).combine_chunks()
    numbers = rows["incident"].to_numpy()
    return rows.filter(pa.array(np.arange(len(numbers)) - np.searchsorted(numbers, numbers) < MOST_WAITS))


def incident_waits(waits: pa.Table) -> pa.Table:
    """Return the table `incident_waits` from the waits that all tasks selected (`FOUND`)."""
    rows, schema = first_waits(waits), arrow_schema(INCIDENT_WAITS)
    derived = {"start": rows["start_us"], "waited_ms": pc.divide(rows["wait_us"].cast(pa.float64()), 1000.0)}
    columns = {name: derived[name] if name in derived else rows[name] for name in schema.names}
    return pa.table({name: column.cast(schema.field(name).type) for name, column in columns.items()}, schema)
