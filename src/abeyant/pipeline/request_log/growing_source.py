"""Stream a growing log with Spark: a batch has the lines written since the last batch, parsed in Spark's tasks.

Offsets are as in `GrowingLog`. The rows are packed tables (`spark.packed`): `operations` (`GROWING`); `topics`, the
names of topic ids; and `read`, the batch's end offsets, at which a later query can begin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.files import Chunk
from abeyant.pipeline.request_log.growing import GROWING, GrowingLog
from abeyant.pipeline.request_log.line import KNOWN_TOPICS
from abeyant.pipeline.request_log.rows import observed_rows, parse_chunk
from abeyant.pipeline.request_log.tables import topics_of
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.spark.packed import PACKED, packed_rows

__all__ = ["READ", "TOPICS", "GrowingSource"]

TOPICS: Final = pa.schema({"id": pa.string(), "name": pa.string()})

_MORE: Final = ("client_id", "error_code", "keys", "local_ms", "send_ms", "throttle_ms", "size_bytes")

READ: Final = pa.schema({"offsets": pa.string(), "is_all": pa.bool_(), "joined": pa.list_(pa.string())})
"""Schema of `read`: a batch's end offsets, whether the log is read to its end, and the files begun in this batch."""


@dataclass(frozen=True)
class _Piece(InputPartition):
    """A partition for Spark: a chunk of the file `name` to parse or, with `chunk` None, the row of the table `read`."""

    name: str
    chunk: Chunk | None
    offsets: str = ""
    is_all: bool = False
    joined: tuple[str, ...] = ()


class GrowingSource(DataSource):
    """The Spark data source `abeyant-request-log`; its option `log` is JSON: paths, instance, timezone, offsets."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "abeyant-request-log"

    def schema(self) -> str:
        """Return the schema of packed rows."""
        return PACKED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader that plans and reads the batches."""
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
            return self._last  # a file is being rotated: the next call finds it
        if read != self._last["read"]:
            self._last = {"read": read, "is_all": is_all}
        return self._last

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        pieces = self._log.pieces(start["read"], end["read"])
        joined = {chunk.file.path: None for name, chunk in pieces if not start["read"].get(name)}
        last = _Piece("", None, json.dumps(end["read"]), end["is_all"], tuple(joined))
        return [*(_Piece(*piece) for piece in pieces), last]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Piece)
        if partition.chunk is None:
            row = [partition.offsets], [partition.is_all], [list(partition.joined)]
            yield packed_rows("read", pa.table(list(row), schema=READ))
            return
        zone = time_zone(self._options["timezone"])
        yield from self._log.read(partition.name, partition.chunk, lambda chunk: list(_parsed(chunk, zone)))


def _parsed(chunk: Chunk, zone: ZoneInfo) -> Iterator[pa.RecordBatch]:
    topics = dict(KNOWN_TOPICS) | topics_of(chunk)
    yield packed_rows("topics", pa.table([list(topics), list(topics.values())], schema=TOPICS))
    for batch in parse_chunk(chunk, topics, zone):
        if batch.column("record")[0].as_py() == "operation":
            rows = observed_rows(pa.Table.from_batches([batch]), _MORE)
            yield packed_rows("operations", rows.select(GROWING.names).cast(GROWING))
