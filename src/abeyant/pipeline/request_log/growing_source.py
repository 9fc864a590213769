"""A growing log as a source of Spark's streaming: each batch is what has come since the last, parsed in Spark's tasks.

Offsets are those of `GrowingLog`. The rows are packed tables: `operations` (`GROWING`); `topics`, the names of topic
ids; and `read`, where the batch ends and a later query begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.files import Chunk
from abeyant.pipeline.request_log.growing import GROWING, GrowingLog
from abeyant.pipeline.request_log.line import KNOWN_TOPICS
from abeyant.pipeline.request_log.rows import parse_chunk
from abeyant.pipeline.request_log.tables import topics_of
from abeyant.pipeline.request_log.time_zone import time_zone

__all__ = ["READ", "TOPICS", "GrowingSource"]

TOPICS: Final = pa.schema({"id": pa.string(), "name": pa.string()})

READ: Final = pa.schema({"offsets": pa.string(), "is_all": pa.bool_()})

_PACKED: Final = "name string, rows binary"


@dataclass(frozen=True)
class _Piece(InputPartition):
    """A piece of the file of a name; or, without one, what is read when the batch is."""

    name: str
    chunk: Chunk | None
    offsets: str = ""
    is_all: bool = False


class GrowingSource(DataSource):
    """The source `abeyant-request-log`; its option `log` is JSON: paths, instance, timezone, offsets."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "abeyant-request-log"

    def schema(self) -> str:
        """Return the schema of packed rows."""
        return _PACKED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return what plans and reads the batches."""
        return _Reader(json.loads(self.options["log"]))


class _Reader(DataSourceStreamReader):
    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._log = GrowingLog(options["paths"], options["instance"])
        self._first: dict[str, Any] = {"read": options["offsets"], "is_all": False}
        self._last = self._first

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._first

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 - the form that PySpark 4.1 knows
        try:
            read, is_all = self._log.latest(self._last["read"])
        except (AbeyantError, OSError):
            return self._last  # a file is being rotated: the next look finds it
        if read != self._last["read"]:
            self._last = {"read": read, "is_all": is_all}
        return self._last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        pieces = self._log.pieces(start["read"], end["read"])
        return [*(_Piece(*piece) for piece in pieces), _Piece("", None, json.dumps(end["read"]), end["is_all"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Piece)
        if partition.chunk is None:
            yield _packed("read", pa.table([[partition.offsets], [partition.is_all]], schema=READ))
            return
        zone = time_zone(self._options["timezone"])
        yield from self._log.read(partition.name, partition.chunk, lambda chunk: list(_parsed(chunk, zone)))


def _parsed(chunk: Chunk, zone: ZoneInfo) -> Iterator[pa.RecordBatch]:
    topics = dict(KNOWN_TOPICS) | topics_of(chunk)
    yield _packed("topics", pa.table([list(topics), list(topics.values())], schema=TOPICS))
    for batch in parse_chunk(chunk, topics, zone):
        if (operations := _observed(batch)).num_rows:
            yield _packed("operations", operations)


def _observed(batch: pa.RecordBatch) -> pa.Table:
    rows = pa.Table.from_batches([batch])
    rows = rows.filter(pc.and_(pc.equal(rows["record"], "operation"), rows["waited_ms"].is_valid()))
    watches = rows["watches"].combine_chunks()
    keys = pa.ListArray.from_arrays(watches.offsets, watches.values.field("key"))
    found = {
        **{name: rows[name] for name in GROWING.names if name in rows.column_names},
        "start_us": rows["start"].cast(pa.int64()),
        "wait_us": pc.round(pc.multiply(rows["waited_ms"], 1000.0)).cast(pa.int64()),
        "keys": pc.if_else(watches.is_valid(), keys, None),
    }
    return pa.table({name: found[name] for name in GROWING.names}).cast(GROWING)


def _packed(name: str, rows: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return pa.record_batch([pa.array([name]), pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["name", "rows"])
