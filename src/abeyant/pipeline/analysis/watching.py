"""Find the incidents of a growing log: after each batch of operations, the ones that `analyze` would find so far.

Notices are the changes since the previous call of `look`. An incident `begins`. It `ends` when no operation of its kind
has had its trouble for the time that ends a burst (`incidents.gap_s`). It is `changed` when later lines have added to
the incident or to its evidence, which is complete `NEAR_S` after its end. It is `withdrawn` when its waits have turned
out to be usual. An incident that ended `KEPT_S` ago is final.

Waits are counted from the log's beginning, so that what is usual is known exactly. Operations are kept for `KEPT_S`;
older operations of a burst are kept as sums. So memory is bounded by the operations of a quarter of an hour, and by the
number of distinct waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.activity import NEAR_S, Incident, activity_of, incidents_of
from abeyant.pipeline.analysis.incidents import LONG_MS, SUFFERING, gap_s, incident_rows, long_waits, paused, suffering
from abeyant.pipeline.analysis.pauses import READING, joined_reading, reading, unfinished
from abeyant.pipeline.analysis.ranked import count_waits, known_groups, rank
from abeyant.pipeline.analysis.suspects import Suspect, find_suspects
from abeyant.pipeline.request_log.growing import GROWING
from abeyant.pipeline.spark.packed import pack, unpack

__all__ = ["KEPT_S", "IncidentWatch", "Notice"]

KEPT_S: Final = 900
"""Seconds, by the log's clock, for which operations are kept."""

_COUNTS: Final = pa.schema(
    {"kind": pa.string(), "wait_us": pa.int64(), "outcome": pa.string(), "operations": pa.int64()}
)
_SECOND_US: Final = 1_000_000


@dataclass
class _Known:
    """An incident as last reported."""

    number: int
    row: dict[str, Any]
    suspects: list[dict[str, Any]]
    ended: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    """The last report of the incident since it ended."""

    def document(self) -> dict[str, Any]:
        return {"incident": self.number, **self.row, "suspects": self.suspects}


Notice = dict[str, Any]
"""`event` (`begins`, ...), the `incident`'s number, its row in `incidents`, and its `suspects`, likeliest first."""


class IncidentWatch:
    """The incidents of a growing log so far, with a report of what has changed."""

    def __init__(self) -> None:
        self._counts = _COUNTS.empty_table()
        self._recent = GROWING.empty_table()
        self._folded = SUFFERING.empty_table()
        self._reading = READING.empty_table()
        self._known: list[_Known] = []
        self._number = 0
        self._cut = 0
        self._clocks: dict[str, int] = {}
        self._topics: dict[str, str] = {}

    def add(self, operations: pa.Table, topics: Mapping[str, str] | None = None) -> None:
        """Add operations (`GROWING`), in any order, and topic names by id. O(n log n) in operations and known waits."""
        self._topics |= topics or {}
        operations = operations.select(GROWING.names).cast(GROWING)
        if not operations.num_rows:
            return
        counts = count_waits(known_groups(operations, ["kind"]), ["kind"]).cast(_COUNTS)
        counts = pa.concat_tables([self._counts, counts]).group_by(["kind", "wait_us", "outcome"], use_threads=False)
        self._counts = counts.aggregate([("operations", "sum")]).rename_columns(_COUNTS.names)
        self._recent = pa.concat_tables([self._recent, operations]).combine_chunks()
        ends = pa.table({"instance": operations["instance"], "end": _ends(operations)})
        for row in ends.group_by("instance").aggregate([("end", "max")]).to_pylist():
            end, instance = row["end_max"], row["instance"]
            if end is not None:
                self._clocks[instance] = max(end, self._clocks.get(instance, end))

    def look(self, idle_s: float = 0.0) -> list[Notice]:
        """Return the notices since the last call, from the operations that `add` has been given.

        `idle_s` is the time in seconds for which the log has had no new line.
        """
        if not self._clocks:
            return []
        now = max(self._clocks.values()) + round(idle_s * _SECOND_US)
        rows, suspects = self._found()
        notices = list(self._compare(rows, suspects, now))
        self.forget(now)
        return notices

    @property
    def unsettled(self) -> bool:
        """Return whether a notice may become due without new rows, as time passes."""
        return any(not incident.ended or incident.told != incident.document() for incident in self._known)

    def forget(self, now: int | None = None) -> None:
        """Replace operations older than `KEPT_S` at `now` (µs) by sums; default: a time that all instances reached."""
        if now is None:
            now = min(self._clocks.values(), default=0)
        cut = now - KEPT_S * _SECOND_US
        starts = self._recent["start_us"].fill_null(0).to_numpy()
        old = starts < cut
        if not old.any():
            return
        self._cut = cut
        aged = self._recent.filter(pa.array(old))
        self._recent = self._recent.filter(pa.array(~old)).combine_chunks()
        folded = pa.concat_tables([self._folded, suffering(_suspicious(aged), self._long())])
        self._folded = _summed_up(folded, cut // _SECOND_US)
        runs = joined_reading(pa.concat_tables([self._reading, reading(aged)]))
        self._reading = unfinished(runs, cut - 2 * KEPT_S * _SECOND_US)

    def packed(self) -> bytes:
        """Return the whole state as bytes, for `restored`."""
        incidents = [vars(incident) for incident in self._known]
        state = {
            "known": incidents,
            "number": self._number,
            "cut": self._cut,
            "clocks": self._clocks,
            "topics": self._topics,
        }
        columns = {name: [pack(table)] for name, table in self._tables().items()}
        return pack(pa.table({**columns, "more": [json.dumps(state)]}))

    @classmethod
    def restored(cls, packed: bytes) -> IncidentWatch:
        """Return the watch whose state `packed` returned."""
        watch, row = cls(), unpack(packed).to_pylist()[0]
        state = json.loads(row["more"])
        watch._counts, watch._recent, watch._folded = (unpack(row[name]) for name in ("counts", "recent", "folded"))
        if "reading" in row:  # states from before pauses existed have none
            watch._reading = unpack(row["reading"])
        watch._known = [_Known(**fields) for fields in state["known"]]
        watch._number, watch._cut, watch._clocks, watch._topics = (
            state[name] for name in ("number", "cut", "clocks", "topics")
        )
        return watch

    def _tables(self) -> dict[str, pa.Table]:
        return {"counts": self._counts, "recent": self._recent, "folded": self._folded, "reading": self._reading}

    def _long(self) -> dict[str, float]:
        table = long_waits(rank(self._counts, ["kind"])) if self._counts.num_rows else None
        return (
            {} if table is None else dict(zip(*(table[name].to_pylist() for name in ("kind", "long_us")), strict=True))
        )

    def _found(self) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
        """Return the incidents of the log so far, and the suspects of each."""
        runs = joined_reading(pa.concat_tables([self._reading, reading(self._recent)]))
        parts = [self._folded, suffering(_suspicious(self._recent), self._long()), paused(runs)]
        table = incident_rows(_named(pa.concat_tables(parts), self._topics))
        table = table.sort_by([(name, "ascending") for name in ("first", "kind", "trouble")])
        incidents = incidents_of(table)
        activity = activity_of(self._recent, incidents)
        suspects: list[list[dict[str, Any]]] = [[] for _ in incidents]
        for suspect in find_suspects(incidents, activity, max(self._clocks.values())):
            suspects[suspect.incident - 1].append(_suspect(suspect))
        rows = [_row(row) for row in table.to_pylist()]
        return rows, self._with_earlier(incidents, rows, suspects)

    def _with_earlier(
        self, incidents: list[Incident], rows: list[dict[str, Any]], suspects: list[list[dict[str, Any]]]
    ) -> list[list[dict[str, Any]]]:
        """Keep an incident's last reported suspects if operations near its beginning have been dropped since then."""
        for number, incident in enumerate(incidents):
            if incident.first_us - NEAR_S * _SECOND_US < self._cut:
                earlier = next((known for known in self._known if _overlap(known.row, rows[number])), None)
                suspects[number] = earlier.suspects if earlier is not None else suspects[number]
        return suspects

    def _compare(self, rows: list[dict[str, Any]], suspects: list[list[dict[str, Any]]], now: int) -> Iterator[Notice]:
        """Yield the differences from the last reports as notices."""
        unmatched, current = list(self._known), []
        for row, row_suspects in zip(rows, suspects, strict=True):
            known = next((candidate for candidate in unmatched if _overlap(candidate.row, row)), None)
            last_us = _us(row["last"])
            if known is None:
                if last_us < now - KEPT_S * _SECOND_US:
                    continue  # it is final, and forgotten
                self._number += 1
                known = _Known(self._number, row, row_suspects)
                current.append(known)
                yield {"event": "begins", **known.document()}
            else:
                unmatched.remove(known)
                current.append(known)
                known.row, known.suspects = row, row_suspects
            quiet_s = now // _SECOND_US - last_us // _SECOND_US
            limit_s = gap_s(row["trouble"])
            if not known.ended:
                if quiet_s > limit_s:
                    known.ended, known.told = True, known.document()
                    yield {"event": "ends", **known.told}
            elif quiet_s <= limit_s:
                known.ended = False
                yield {"event": "begins", **known.document()}
            elif known.told != known.document() and (quiet_s > NEAR_S or _who(known.told) != _who(known.document())):
                known.told = known.document()
                yield {"event": "changed", **known.told}
        for known in unmatched:
            if _us(known.row["last"]) >= now - KEPT_S * _SECOND_US:
                yield {"event": "withdrawn", **known.document()}
        self._known = [
            incident
            for incident in current
            if _us(incident.row["last"]) >= now - KEPT_S * _SECOND_US or not incident.ended
        ]


def _ends(operations: pa.Table) -> pa.ChunkedArray:
    return pc.add(operations["start_us"], operations["wait_us"])


def _suspicious(operations: pa.Table) -> pa.Table:
    """Return all operations that `suffering` may count, whatever waits turn out to be usual."""
    long = pc.greater_equal(operations["wait_us"], LONG_MS * 1000)
    for name in ("local_ms", "send_ms", "throttle_ms"):
        long = pc.or_(long, pc.greater_equal(operations[name].fill_null(0.0), LONG_MS - 1))
    failed = pc.not_equal(operations["error_code"].fill_null(0), 0)
    expired = pc.equal(operations["outcome"].fill_null(""), "expired")
    return operations.filter(pc.or_(pc.or_(long, failed), expired))


def _named(struck: pa.Table, topics: Mapping[str, str]) -> pa.Table:
    """Return rows of `SUFFERING` with names in place of topic ids that became known after their lines were read."""
    if not topics or not struck.num_rows:
        return struck
    keys = [_renamed(key, topics) for key in struck["key"].to_pylist()]
    return struck.set_column(struck.column_names.index("key"), "key", pa.array(keys, pa.string()))


def _renamed(key: str | None, topics: Mapping[str, str]) -> str | None:
    if key is None:
        return None
    topic, dash, partition = key.rpartition("-")
    return f"{topics[topic]}{dash}{partition}" if topic in topics else key


def _summed_up(struck: pa.Table, cut: int) -> pa.Table:
    """Sum up each burst in its last second; drop bursts that ended 2 * `KEPT_S` before the second `cut`."""
    if not struck.num_rows:
        return struck
    ordered = struck.sort_by([(name, "ascending") for name in ("kind", "trouble", "second")]).combine_chunks()
    seconds = ordered["second"].to_numpy()
    names = [ordered[name].to_numpy(zero_copy_only=False).astype(str) for name in ("kind", "trouble")]
    is_first = np.ones(len(seconds), bool)
    gaps = np.array([gap_s(name) for name in ordered["trouble"].to_pylist()])
    is_first[1:] = np.diff(seconds) > gaps[1:]
    for column in names:
        is_first[1:] |= column[1:] != column[:-1]
    burst = np.cumsum(is_first)
    ends = np.maximum.reduceat(seconds, np.flatnonzero(is_first))[burst - 1]
    ordered = ordered.set_column(ordered.column_names.index("second"), "second", pa.array(ends))
    ordered = ordered.filter(pa.array(ends >= cut - 2 * KEPT_S))
    group = ["kind", "trouble", "instance", "key", "second"]
    merged = {"first_us": "min", "last_us": "max", "longest_us": "max", "operations": "sum", "expired": "sum"}
    summed = ordered.group_by(group, use_threads=False).aggregate(list(merged.items()))
    return summed.rename_columns([*group, *merged]).select(SUFFERING.names).cast(SUFFERING)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if name in ("first", "last") else value for name, value in row.items()}


def _suspect(suspect: Suspect) -> dict[str, Any]:
    fields = {name: getattr(suspect, name) for name in ("suspect", "kind", "evidence", "confidence")}
    return {**fields, "first": suspect.first.isoformat(), "last": suspect.last.isoformat()}


def _who(document: Mapping[str, Any]) -> list[str]:
    return [suspect["suspect"] for suspect in document["suspects"]]


def _us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * _SECOND_US)


def _overlap(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two rows have the same kind and trouble, and their times overlap: they are then one burst."""
    same = all(row[name] == other[name] for name in ("kind", "trouble"))
    return same and _us(row["first"]) <= _us(other["last"]) and _us(other["first"]) <= _us(row["last"])
