"""Read, map and resolve both tables of `abeyant resolve` in this process; look up what its summary needs."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import SchemaError, listed
from abeyant.pipeline.commands.quick.columns import mapped
from abeyant.pipeline.commands.quick.eligible import NeedsSparkError
from abeyant.pipeline.commands.quick.files import read_file
from abeyant.pipeline.commands.quick.values import converted
from abeyant.pipeline.results.local import LocalSink
from abeyant.pipeline.results.outcome_counts import SAMPLED, OutcomeCounts, keys_of
from abeyant.pipeline.results.sink import ResultWriter
from abeyant.pipeline.results.small_table import put_table
from abeyant.pipeline.sources.quoted_names import text_of
from abeyant.tables.defaults import DEFAULTS, REJECT_REASON, check_instances, unreadable_reason, warn_of_ignored
from abeyant.tables.durations import parse_duration
from abeyant.tables.reading import normalize_table
from abeyant.tables.reasons import constant_error
from abeyant.tables.rejected import rejected_rows
from abeyant.tables.resolving import resolve
from abeyant.tables.rules import ALL_CONDITIONS
from abeyant.tables.schemas import EVENTS, OPERATIONS, columns_of, expected_columns
from abeyant.tables.unmatched import key_column, unmatched_in
from abeyant.tables.validity import valid_events, valid_operations

if TYPE_CHECKING:
    from abeyant.pipeline.spark.progress import Steps

__all__ = ["QuickTables", "completed"]

_SPARK_TYPES: Final = {"text": "string", "a timestamp": "timestamp", "an integer": "bigint"}
_TOO_MUCH: Final = ("watches", "extend", "extend_ms")
_WATCHES: Final = pa.list_(pa.struct({"key": pa.string(), "required": pa.int64()}))


class QuickTables:
    """Operations and events of small files, in memory. `eligible.check_eligible` says which files are small."""

    engine = "tables"

    def __init__(self, args: argparse.Namespace, rules: Mapping[str, Any]) -> None:
        """Read the tables of operations and events.

        Raises `NeedsSparkError` for tables that need Spark, `AbeyantError` for missing columns.
        """
        self._args = args
        names = {"operations": args.operations, "events": args.events}
        files = {name: read_file(file, args.format) for name, file in names.items()}
        mappings = {"operations": dict(args.operation), "events": dict(args.event)}
        check_instances(*([*files[name].column_names, *mappings[name]] for name in ("operations", "events")))
        self._options = {**rules, "deadline": args.deadline, "unique_ids": args.unique_ids}
        self._column = key_column([*map(str.lower, files["operations"].column_names), *mappings["operations"]])
        self._given = {
            "operations": completed(files["operations"], mappings["operations"], OPERATIONS, "operations"),
            "events": completed(files["events"], mappings["events"], EVENTS, "events"),
        }
        self._operations = _plain(normalize_table(self._given["operations"], OPERATIONS), OPERATIONS)
        self._events = _plain(normalize_table(self._given["events"], EVENTS), EVENTS)

    def result(self) -> AbstractContextManager[ResultWriter]:
        """Return a context manager that yields the writer of the result."""
        return LocalSink(str(self._args.out)).table(None, overwrite=self._args.overwrite)

    def tables(self) -> dict[str, pa.Table]:
        """Return the tables to write, by name: the outcomes and the rejected rows."""
        readable = {
            name: table.filter(table[REJECT_REASON].is_null()).drop_columns(REJECT_REASON)
            for name, table in self._given.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the summary reports the same
            outcomes = resolve(readable["operations"], readable["events"], **self._options)
        return {
            "outcomes": outcomes,
            "invalid_operations": rejected_rows(self._operations, "operations"),
            "invalid_events": rejected_rows(self._events, "events"),
        }

    def write(self, result: ResultWriter, name: str, table: pa.Table, steps: Steps) -> None:
        """Write one of the tables that `tables` returns."""
        put_table(result.folder / name, table)

    def expired_keys(self, ended: OutcomeCounts) -> pa.Table:
        """Return the keys on which most operations expired."""
        watches = self._operations["watches"].combine_chunks()
        keys = pa.ListArray.from_arrays(watches.offsets, pc.struct_field(watches.values, "key"))
        return keys_of(ended, self._operations.select(SAMPLED).append_column("key", keys))

    def unmatched(self, ended: OutcomeCounts) -> str | None:
        """Return a warning if all operations expired, and none of their keys occurs among the events."""
        if not ended.all_expired:
            return None
        valid = valid_operations(self._operations, ALL_CONDITIONS)
        return unmatched_in(valid, self._column, valid_events(self._events))

    def newest_event(self) -> int | None:
        """Return the greatest `at` of all events, in microseconds since 1970; None if there is none."""
        newest: int | None = pc.max(self._given["events"]["at"].cast(pa.int64())).as_py()
        return newest

    def has_valid_events(self) -> bool:
        """Return whether at least one event is valid."""
        return bool(valid_events(self._events).num_rows)


def completed(
    table: pa.Table, columns: Mapping[str, str], expected: Mapping[str, str], name: Literal["operations", "events"]
) -> pa.Table:
    """Return the table's `expected` columns, converted, and a column `REJECT_REASON`, null for rows not rejected.

    Raises `AbeyantError` for missing columns, `NeedsSparkError` for columns that need Spark.
    """
    names = table.column_names
    warn_of_ignored([*map(str.lower, names)], columns_of(expected), name)
    table = mapped(table, expected, columns, name)
    constant = text_of(columns.get("timeout", ""))
    if constant is not None and parse_duration(constant) is None:
        raise constant_error(name, unreadable_reason("timeout", "duration", constant))
    kinds = expected_columns(expected, table.column_names)
    if "watches" in kinds:
        del kinds["watches"]
        kinds |= {"key": "text", "required": "an integer"}
    if unsupported := [column for column in _TOO_MUCH if name == "operations" and column in table.column_names]:
        raise NeedsSparkError(f"operations has a column {unsupported[0]}")
    arrays: dict[str, pa.ChunkedArray] = {}
    reasons = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    for column, kind in kinds.items():
        if column not in table.column_names:
            if column in DEFAULTS:
                continue
            raise SchemaError(
                f"{name}: no column {column!r}, expected {_SPARK_TYPES.get(kind, kind)} (columns: {listed(names)}); "
                f"--{name.removesuffix('s')} COLUMN=SQL maps a column"
            )
        arrays[column], reason = converted(table[column], column, kind)
        if reason is not None:
            reasons = pc.coalesce(reasons, reason)
    return pa.table({**arrays, REJECT_REASON: reasons})


def _plain(table: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Return a normalized table with Spark's columns, in their order and types, for its rejected rows."""
    names = table.column_names
    how_long = next((name for name in ("timeout_ms", "timeout", "deadline") if name in names), "timeout_ms")
    order = [how_long if name == "timeout_ms" else name for name in columns]
    order += [name for name in ("cancel_key", "extend_key", "pause_key") if name in names]
    kinds = {"text": pa.string(), "a timestamp": pa.timestamp("us", "UTC"), "an integer": pa.int64()}
    types = {name: kinds.get(columns.get(name, "text"), _WATCHES) for name in order}
    types |= {"timeout": pa.int64(), "deadline": kinds["a timestamp"]}
    schema = pa.schema([(name, types[name]) for name in [*order]] + [(REJECT_REASON, pa.string())])
    return table.select(schema.names).cast(schema)
