"""Read Kafka's request log as Spark tables: operations, requests counted by kind, and rejected lines.

The parsing runs in Spark's tasks as Python over Arrow (`mapInArrow`). Spark's native `from_json` would need one schema
for the bodies of all requests and versions, which differ from line to line. It also cannot report a bad line's reason
and line number (docs/request-log-input.md has the measurement).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import StructType

from abeyant.pipeline.request_log.brokers import by_broker
from abeyant.pipeline.request_log.files import (
    Chunk,
    DamagedFileError,
    LogFile,
    LongLineError,
    Paths,
    chunks,
    find_logs,
    lines_of,
    read_blocks,
)
from abeyant.pipeline.request_log.joining import open_parts
from abeyant.pipeline.request_log.line import KNOWN_TOPICS, MARKER, naming_lines, topic_names
from abeyant.pipeline.request_log.requests import numbered_lines
from abeyant.pipeline.request_log.rows import PARSED, packed_chunk, parse_chunk
from abeyant.pipeline.request_log.time_zone import time_zone
from abeyant.pipeline.request_log.wrapping import may_be_request
from abeyant.pipeline.schemas import OBSERVED, REJECTED, REQUESTS_BY_KIND
from abeyant.pipeline.spark.chunks import freeze_imports
from abeyant.pipeline.spark.packed import PACKED, PackedRows
from abeyant.pipeline.spark.remote_files import reach_of
from abeyant.pipeline.spark.session import default_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["KafkaRequestLog", "read_kafka_request_log", "topics_of"]

# Below this much text, surveying it in this process takes less time than starting Spark's workers for it. On one
# machine parsing needs the same workers, which are then there: a survey by them costs as much, and uses all cores.
_DRIVER_SURVEY_BYTES: Final = 1 << 30
_LOCAL_SURVEY_BYTES: Final = 256 << 20
# Below this much, starting a task costs about as much as its work.
_TASK_BYTES: Final = 4 << 20
# On one machine a task gets up to about this much, if every core has two: a task costs Spark some 40 ms.
_LOCAL_TASK_BYTES: Final = 256 << 20
_SURVEY_TASK_BYTES: Final = 1 << 30  # a survey takes a tenth of the time that parsing takes

# A batch of rows is many tuples and lists without cycles: to look for cycles takes a twelfth of the parsing time.
_COLLECTED_AFTER: Final = 1 << 18
_NEWLINE: Final = ord("\n")

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Maps batches of chunk numbers to batches of rows."""

_SURVEYED: Final = "chunk long, lines long, any_request boolean, topic_id string, name string"


def read_kafka_request_log(
    spark: SparkSession,
    paths: Paths,
    *,
    timezone: str = "UTC",
    instance: str | Callable[[str], str] | None = None,
) -> DataFrame:
    """Return the operations of a Kafka request log, with their observed outcome and wait (`schemas.OBSERVED`).

    `paths` are files (plain, gzip, bzip2 or zstd), globs, or directories, which are searched for `kafka-request*`.
    `timezone` applies to timestamps that name no time zone. `instance` is the broker's name, or a function from a
    file's path to the name; by default, the folder that holds the file. Rejected lines are left out: `KafkaRequestLog`
    has these lines and the counts. Raises `AbeyantError` for paths that are missing or unreadable.
    """
    return KafkaRequestLog(spark, paths, timezone=timezone, instance=instance).operations


@dataclass(frozen=True)
class Survey:
    """Facts about a whole log that the tasks need before they parse its chunks."""

    chunks: tuple[Chunk, ...]
    """The log's chunks, each with the number of lines before it in its file."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic ids to names, from every response in the log that has an id and its name."""
    any_request: bool = False
    """Whether any line looks like a request."""


class KafkaRequestLog:
    """A Kafka request log: its files, and its lines as three Spark tables.

    The files are found at once; everything else is read on first use. Each table parses the log again;
    `analyze` writes them all in one pass. `read_kafka_request_log` is for the operations alone.
    """

    def __init__(
        self,
        spark: SparkSession,
        paths: Paths,
        *,
        timezone: str = "UTC",
        instance: str | Callable[[str], str] | None = None,
    ) -> None:
        self.spark = spark
        self._zone = time_zone(timezone)
        files = find_logs(paths, instance=instance, reach=partial(reach_of, spark))
        self.files: tuple[LogFile, ...] = tuple(by_broker(files) if instance is None else files)

    @cached_property
    def survey(self) -> Survey:
        """Line numbers, topic names, and whether there is a request, from one pass without parsing. Not for users."""
        pieces = chunks(self.files)
        rows: list[Any]
        limit = _DRIVER_SURVEY_BYTES if default_partitions(self.spark) is None else _LOCAL_SURVEY_BYTES
        if sum(piece.cost for piece in pieces) <= limit:
            with ThreadPoolExecutor(2) as pool:
                surveyed = pool.map(_survey_chunk, range(len(pieces)), pieces)
                rows = [row for chunk_rows in surveyed for row in chunk_rows]
        else:
            surveyed_rows = self._map(_survey_batches(pieces), pieces, _SURVEYED, _SURVEY_TASK_BYTES)
            rows = [tuple(row) for row in surveyed_rows.collect()]
        lines = {chunk: count for chunk, count, *_ in rows if count is not None}
        numbered: list[Chunk] = []
        for at, piece in enumerate(pieces):
            before = numbered[-1] if numbered and numbered[-1].file == piece.file else None
            numbered.append(
                replace(piece, lines_before=before.lines_before + lines[at - 1] if before is not None else 0)
            )
        topics = dict(KNOWN_TOPICS) | {row[3]: row[4] for row in rows if row[3] is not None}
        return Survey(tuple(numbered), topics, any(row[2] for row in rows))

    @property
    def parsed(self) -> DataFrame:
        """The rows of all lines: three tables in one DataFrame, which `of` splits. Not for users."""
        survey = self.survey
        return self._map(_parse_batches(survey, self._zone, parse_chunk), survey.chunks, PARSED)

    @property
    def packed(self) -> dict[str, PackedRows]:
        """The lines as packed tables: `operations`, `rejected`, `requests` counted by the second. Not for users.

        All tables are in one DataFrame, which is cheap to `persist`. If workers can write files, `mapped` is cheaper.
        """
        survey = self.survey
        rows = self._map(_parse_batches(survey, self._zone, packed_chunk), survey.chunks, PACKED)
        return {name: PackedRows(rows, name) for name in ("operations", "rejected", "requests")}

    @property
    def operations(self) -> DataFrame:
        """The operations (`schemas.OBSERVED`)."""
        return self.of(self.parsed)["operations"]

    @property
    def rejected(self) -> DataFrame:
        """The lines that do not parse, with file, line number and reason (`schemas.REJECTED`)."""
        return self.of(self.parsed)["rejected"]

    @property
    def requests_by_kind(self) -> DataFrame:
        """The number of requests, by instance and kind (`schemas.REQUESTS_BY_KIND`)."""
        return self.of(self.parsed)["requests_by_kind"]

    def mapped(self, work: Callable[[Survey, ZoneInfo], Work], schema: StructType | str) -> DataFrame:
        """Map the log's chunks to rows with the function that `work(survey, zone)` returns. Not for users."""
        return self._map(work(self.survey, self._zone), self.survey.chunks, schema)

    @staticmethod
    def of(parsed: DataFrame) -> dict[str, DataFrame]:
        """Split `parsed` into operations, rejected, requests_by_kind, and `requests` by the second. Not for users."""
        requests = parsed.where(F.col("record") == "requests")
        counts = [F.sum(name).alias(name) for name in ("requests", "waited")]
        return {
            "operations": parsed.where(F.col("record") == "operation").select(*OBSERVED.fieldNames()),
            "rejected": parsed.where(F.col("record") == "rejected").select(*REJECTED.fieldNames()),
            "requests_by_kind": requests.groupBy("instance", "api").agg(*counts).select(*REQUESTS_BY_KIND.fieldNames()),
            "requests": requests.select("instance", "api", F.col("start").alias("at"), "requests", "waited"),
        }

    def _map(
        self,
        work: Work,
        pieces: Sequence[Chunk],
        schema: StructType | str,
        local_bytes: int | None = None,
    ) -> DataFrame:
        """Run `work` over the numbers of the chunks, in tasks that each have about the same amount to read.

        On one machine that is at most about `local_bytes`.
        """
        tasks = self._tasks(pieces, local_bytes or _LOCAL_TASK_BYTES)
        chunks_of_task: list[list[int]] = [[] for _ in range(tasks)]
        load = [0] * tasks
        for number in sorted(range(len(pieces)), key=lambda at: -pieces[at].cost):
            lightest = load.index(min(load))
            chunks_of_task[lightest].append(number)
            load[lightest] += pieces[number].cost
        return self.spark.range(0, tasks, 1, tasks).mapInArrow(_ChunkWork(work, chunks_of_task), schema)

    def _tasks(self, pieces: Sequence[Chunk], local_bytes: int) -> int:
        text = sum(piece.cost for piece in pieces)
        tasks = -(-text // _TASK_BYTES)
        partitions = default_partitions(self.spark)
        if partitions is not None:
            # A multiple of the cores, which then end together.
            tasks = min(tasks, partitions * max(-(-text // (partitions * local_bytes)), 1))
        return max(min(len(pieces), tasks), 1)


@dataclass(frozen=True)
class _ChunkWork:
    """Function for `mapInArrow`: runs `work` on the numbers of a task's chunks. Its input is the number of the task."""

    work: Work
    chunks_of_task: list[list[int]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        threshold = gc.get_threshold()
        gc.set_threshold(_COLLECTED_AFTER, *threshold[1:])
        try:
            yield from self._work(batches)
        finally:
            gc.set_threshold(*threshold)

    def _work(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (n for batch in batches for task in batch.column(0).to_pylist() for n in self.chunks_of_task[task])
        return self.work(pa.record_batch([pa.array([n], pa.int64())], ["piece"]) for n in numbers)


def topics_of(chunk: Chunk) -> dict[str, str]:
    """Return topic names by topic id, from the responses in a chunk of a log."""
    return {row[3]: row[4] for row in _survey_chunk(0, chunk) if row[3] is not None and row[4] is not None}


def _survey_chunk(number: int, chunk: Chunk) -> list[tuple[int, int | None, bool | None, str | None, str | None]]:
    topics: dict[str, str] = {}
    lines = 0
    any_request = any_cut = False
    try:
        for block in read_blocks(chunk):
            if isinstance(block, LongLineError):
                lines += 1
                continue
            if not chunk.file.compressed:  # such a file is one chunk: none follows whose lines have to be numbered
                # NumPy counts at thrice the speed of bytes.count.
                lines += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE)) + (not block.endswith(b"\n"))
            any_request = any_request or MARKER in block or any(map(may_be_request, lines_of(block)))
            for line in naming_lines(block):
                any_cut = any_cut or bool(open_parts([line]))
                topics.update(topic_names(line))
    except DamagedFileError:
        pass  # what cannot be read is rejected, once, when the log is parsed
    if any_cut:  # by a container's runtime
        for _, full_line in numbered_lines(chunk):
            topics.update(topic_names(full_line) if isinstance(full_line, bytes) else ())
    return [(number, lines, any_request, None, None), *((number, None, None, *pair) for pair in topics.items())]


def _survey_batches(pieces: list[Chunk]) -> Work:
    def survey(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        types = [pa.int64(), pa.int64(), pa.bool_(), pa.string(), pa.string()]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                columns = zip(*_survey_chunk(number, pieces[number]), strict=True)
                arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
                yield pa.record_batch(arrays, ["chunk", "lines", "any_request", "topic_id", "name"])

    return survey


def _parse_batches(survey: Survey, zone: ZoneInfo, read: Callable[..., Iterator[pa.RecordBatch]]) -> Work:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read(survey.chunks[number], survey.topics, zone)

    return parse
