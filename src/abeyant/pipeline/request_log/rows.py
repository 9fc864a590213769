"""Parse a chunk of a log to Arrow batches: operations, rejected lines, and requests counted by the second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType, StructField, StructType

from abeyant.pipeline.request_log.brokers import broker_named
from abeyant.pipeline.request_log.files import Chunk, LogFile
from abeyant.pipeline.request_log.line import LineParser, excerpt
from abeyant.pipeline.request_log.operation import Read, read_request
from abeyant.pipeline.request_log.requests import read_requests, typed_parser
from abeyant.pipeline.schemas import OBSERVED, REJECTED, REQUESTS_BY_KIND
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.packed import packed_rows

__all__ = ["COUNTED", "PARSED", "named_chunk", "observed_rows", "packed_chunk", "parse_chunk"]

PARSED: Final = StructType(
    [
        StructField("record", StringType(), False),  # which of the three tables the row belongs to
        *OBSERVED.fields,
        *(f for f in REJECTED.fields if f.name != "instance"),
        *(f for f in REQUESTS_BY_KIND.fields if f.name not in ("instance", "api")),
    ]
)

_OPERATED: Final = (
    *("number", "api", "start", "wait_us", "has_waited", "client_id", "local_ms", "send_ms", "throttle_ms"),
    *("kind", "timeout_ms", "keys", "condition", "outcome", "error_code", "size_bytes"),
)
"""The fields of a buffered operation. A field with a column has the column's name; `keys` is the number of keys."""

_TABLES: Final = {"operation": "operations", "rejected": "rejected", "requests": "requests"}
"""The table to which a row belongs, by its column `record`."""

COUNTED: Final = pa.schema(
    {
        **dict.fromkeys(("instance", "api"), pa.string()),
        **dict.fromkeys(("at_us", "requests", "waited"), pa.int64()),
    }
)
"""Schema of requests counted by the second."""

_COLUMNS: Final[Mapping[str, list[str]]] = {
    "operations": OBSERVED.fieldNames(),
    "rejected": REJECTED.fieldNames(),
    "requests": COUNTED.names,
}

_BATCH_ROWS: Final = 8192
_COUNTED_US: Final = 1_000_000  # requests are counted by the second


def parse_chunk(chunk: Chunk, topics: Mapping[str, str], zone: ZoneInfo) -> Iterator[pa.RecordBatch]:
    """Parse a chunk of a log; yield its rows in batches with the schema `PARSED`."""
    default_rows = _Rows(chunk.file)
    by_name: dict[str | None, _Rows] = {None: default_rows, chunk.file.instance: default_rows}
    typed, parse = typed_parser(zone, topics), LineParser(zone).parse
    fast = typed.read if typed is not None else None
    for number, place, line, result in read_requests(chunk, fast, lambda line: read_request(parse(line), topics)):
        rows = default_rows
        if chunk.file.by_line and (name := broker_named(line)) not in by_name:
            rows = by_name[name] = _Rows(replace(chunk.file, instance=str(name)))
        elif chunk.file.by_line:
            rows = by_name[name]
        if isinstance(result, Exception):
            rows.rejected.append((number, str(result), excerpt(line)))
        else:
            rows.add(f"{number}.{place}" if place else number, result)
        if len(rows.operated) + len(rows.rejected) >= _BATCH_ROWS:
            yield from rows.take()
    for rows in {id(rows): rows for rows in by_name.values()}.values():
        yield from rows.take()
        yield from rows.counts()


def packed_chunk(chunk: Chunk, topics: Mapping[str, str], zone: ZoneInfo) -> Iterator[pa.RecordBatch]:
    """Parse a chunk of a log; yield its rows as packed tables, with the names as in `named_chunk`."""
    return (packed_rows(name, rows) for name, rows in named_chunk(chunk, topics, zone))


def named_chunk(chunk: Chunk, topics: Mapping[str, str], zone: ZoneInfo) -> Iterator[tuple[str, pa.Table]]:
    """Parse a chunk; yield (table name, rows) for `operations`, `rejected` and `requests` (`COUNTED`), in batches."""
    for batch in parse_chunk(chunk, topics, zone):
        name = _TABLES[batch.column("record")[0].as_py()]
        rows = pa.Table.from_batches([batch])
        if name == "requests":
            rows = rows.append_column("at_us", rows["start"].cast(pa.int64()))
        yield name, rows.select(_COLUMNS[name])


def observed_rows(operations: pa.Table, more: Sequence[str] = ()) -> pa.Table:
    """Return the operations whose wait is known, in the columns of `columns.observed` and those named in `more`."""
    rows = operations
    if rows["waited_ms"].null_count:
        rows = rows.filter(rows["waited_ms"].is_valid())
    rows = rows.combine_chunks()
    columns = {
        **{name: rows[name] for name in ("instance", "kind")},
        "start_us": rows["start"].cast(pa.int64()),
        "wait_us": pc.round(pc.multiply(rows["waited_ms"], 1000.0)).cast(pa.int64()),
        "outcome": rows["outcome"],
    }
    for name in more:
        columns[name] = _keys(rows["watches"].combine_chunks()) if name == "keys" else rows[name]
    return pa.table(columns)


def _keys(watches: pa.ListArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(watches.offsets, watches.values.field("key"), mask=watches.is_null())


class _Rows:
    """Buffer for the rows of one instance in a chunk."""

    def __init__(self, file: LogFile) -> None:
        self._schema = arrow_schema(PARSED)
        self._file = file
        self.operated: list[tuple[Any, ...]] = []
        self._keys: list[str] = []  # of all operations: a list for each would be work for the garbage collector
        self._required: list[int | None] = []
        self.rejected: list[tuple[int, str, str]] = []
        self._requests: Counter[tuple[str, int]] = Counter()
        self._waited: Counter[tuple[str, int]] = Counter()

    def add(self, number: int | str, request: Read) -> None:
        """Add a request as an operation; a request that is no operation is only counted."""
        api, start_us, wait_us, waited, client_id, local_ms, send_ms, throttle_ms, operated = request
        if operated is None:
            second = api, start_us // _COUNTED_US
            self._requests[second] += 1
            self._waited[second] += waited
            return
        kind, timeout_ms, keys, required, condition, outcome, error_code, size_bytes = operated
        self._keys += keys
        self._required += required
        times = start_us, wait_us, waited, client_id, local_ms, send_ms, throttle_ms
        details = kind, timeout_ms, len(keys), condition, outcome, error_code, size_bytes
        self.operated.append((number, api, *times, *details))

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield the operations and the rejected lines that were added since the last call."""
        if self.operated:
            yield self._operations(dict(zip(_OPERATED, zip(*self.operated, strict=True), strict=True)))
            self.operated, self._keys, self._required = [], [], []
        if self.rejected:
            numbers, reasons, excerpts = zip(*self.rejected, strict=True)
            columns = {"line_number": numbers, "reason": reasons, "excerpt": excerpts}
            yield self._batch("rejected", len(numbers), columns | {"file": pa.repeat(self._file.path, len(numbers))})
            self.rejected = []

    def counts(self) -> Iterator[pa.RecordBatch]:
        """Yield how many requests there were, by API and second."""
        if self._requests:
            apis, seconds = zip(*self._requests, strict=True)
            waited = [self._waited[second] for second in self._requests]
            columns = {"api": apis, "start": [second * _COUNTED_US for second in seconds], "waited": waited}
            yield self._batch("requests", len(apis), columns | {"requests": list(self._requests.values())})

    def _operations(self, columns: dict[str, Any]) -> pa.RecordBatch:
        numbers, waits = columns.pop("number"), pa.array(columns.pop("wait_us"), pa.float64())
        seconds = (start // _COUNTED_US for start in columns["start"])
        started = Counter(zip(columns["api"], seconds, columns.pop("has_waited"), strict=True))
        for (api, second, has_waited), count in started.items():
            self._requests[api, second] += count
            self._waited[api, second] += count * has_waited
        labels = pa.repeat(self._file.label, len(numbers))
        places = pa.array(numbers).cast(pa.string()) if set(map(type, numbers)) == {int} else list(map(str, numbers))
        columns["op_id"] = pc.binary_join_element_wise(labels, pa.array(places, pa.string()), ":")
        columns["waited_ms"] = pc.divide(waits, 1000.0)
        kind = self._schema.field("watches").type
        offsets = pc.cumulative_sum(pa.array([0, *columns.pop("keys")], pa.int32()))
        flat = [pa.array(self._keys, pa.string()), pa.array(self._required, pa.int64())]
        watches = pa.StructArray.from_arrays(flat, fields=list(kind.value_type))
        columns["watches"] = pa.ListArray.from_arrays(offsets, watches, type=kind)
        return self._batch("operation", len(numbers), columns)

    def _batch(self, record: str, count: int, columns: dict[str, Any]) -> pa.RecordBatch:
        """Return a batch with one table's columns; the columns of the other tables are null.

        Raises KeyError for a column that no table has.
        """
        columns |= {"record": pa.repeat(record, count), "instance": pa.repeat(self._file.instance, count)}
        arrays = []
        for field in self._schema:
            column = columns.pop(field.name, None)
            if column is None:
                column = pa.nulls(count, field.type)
            arrays.append(column if isinstance(column, pa.Array) else pa.array(column, field.type))
        if columns:
            raise KeyError(f"no table of a log has the columns {', '.join(columns)}")
        return pa.record_batch(arrays, schema=self._schema)
