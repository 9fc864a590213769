"""The pipeline's main job: read a request log, and write Parquet tables and a report, all or nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from abeyant.errors import AbeyantError
from abeyant.pipeline.analysis.activity import Incident, incidents_of
from abeyant.pipeline.analysis.by_time import Slices
from abeyant.pipeline.analysis.columns import LogRows, observed
from abeyant.pipeline.analysis.pending import Span, drawn_rows, pending_rows, plot_rows
from abeyant.pipeline.analysis.small_tables import incident_tables, time_tables, waits_tables
from abeyant.pipeline.analysis.suspects import find_suspects, suspect_rows
from abeyant.pipeline.analysis.written import WrittenLog, write_rows
from abeyant.pipeline.request_log.brokers import joined_files
from abeyant.pipeline.request_log.files import counted_files, named_files, no_request
from abeyant.pipeline.request_log.layout import layouts
from abeyant.pipeline.request_log.line import NOT_A_REQUEST
from abeyant.pipeline.request_log.tables import KafkaRequestLog
from abeyant.pipeline.results.directory import REPORT, title_entry, write_marker
from abeyant.pipeline.results.registry import sink_of
from abeyant.pipeline.results.sink import Out, ResultWriter
from abeyant.pipeline.results.small_table import put_table
from abeyant.pipeline.schemas import PENDING, TABLES
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.errors import explained
from abeyant.pipeline.spark.jobs import cancel_jobs, name_jobs
from abeyant.pipeline.spark.packed import PACKED, unpack
from abeyant.pipeline.spark.progress import Steps
from abeyant.pipeline.spark.versions import versions_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.request_log.files import Paths

__all__ = ["AnalysisResult", "analyze"]

_SORTED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "requests_by_kind": ("instance", "api"),
    "summary": ("instance", "kind"),
    "by_key": ("instance", "kind", "key"),
    "timeout_curve": ("instance", "kind", "timeout_ms"),
    "pending_plot": ("instance", "kind", "at"),
    "waits": ("instance", "kind", "outcome", "low_ms"),
    "lags": ("instance", "replica", "at"),
    "incidents": ("first", "kind", "trouble"),
    "waits_by_time": ("instance", "kind", "at", "outcome", "step"),
    "keys_by_time": ("instance", "kind", "key", "at", "outcome", "step"),
    "requests_by_time": ("instance", "api", "at"),
    "incident_waits": ("incident", "start", "waited_ms", "kind", "key"),
    "suspects": (),  # the likeliest of each incident first
}
"""The small tables, which this process writes, and the columns by which they are sorted."""

# Small jobs are mostly waiting for the driver: a few at a time keep the cores busy.
_JOBS_AT_ONCE: Final = 4
_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_CANCEL_SECONDS: Final = 0.1
_FULL: Final = ("No space left on device", "Disk quota exceeded")


@dataclass(frozen=True)
class AnalysisResult:
    """The folder and the report that an analysis wrote, and its counts."""

    out: Path | str
    """The result's directory, or its URI as text: one Parquet directory per table, the report and the marker."""
    report: Path | str
    requests: int
    operations: int
    rejected: int
    """Number of lines, and of damaged ends of files, that could not be read."""
    folder: Path
    """Folder on this machine, until the process ends, with the report, the tables that it draws, and the marker."""


def analyze(
    spark: SparkSession,
    logs: Paths,
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    timezone: str = "UTC",
    instance: str | Callable[[str], str] | None = None,
    quiet: bool = True,
    command: str | None = None,
    title: str | None = None,
) -> AnalysisResult:
    """Analyze a Kafka request log: write the tables of `schemas.TABLES` and `report.html` into `out`.

    The command `abeyant analyze` does the same.

    `out` (a directory that the driver and the workers share, or a URI) appears only when all of it is written.
    With `overwrite`, an existing result of an analysis is replaced; anything else in its place is never replaced.
    `logs`, `timezone` and `instance` are as in `read_kafka_request_log`, where `logs` are its `paths`. Unless `quiet`,
    progress goes to the error stream. `command` is the command line that repeats this analysis, for the report to show;
    `title` replaces the report's default title. Raises `AbeyantError` with one line for errors that the user can fix:
    paths, a log with no request in it, a full disk.
    """
    sink = sink_of(out)
    sink.check(overwrite=overwrite)
    log = KafkaRequestLog(spark, logs, timezone=timezone, instance=instance)
    steps = Steps(quiet=quiet)
    with sink.table(spark, overwrite=overwrite) as result:
        run = _Run(spark, result, steps)
        with run.failures_explained(sink.place):
            run.apart(lambda: run.tables(log))
            counts = run.counts()
            write_marker(result.folder, _marker(spark, log, counts, timezone, command) | title_entry(title))
            with steps.step("writing the report"):
                from abeyant.pipeline.report.page import write_report

                result.fetch("rejected")  # the others that it draws are there
                write_report(result.folder, result.folder / REPORT)
    return AnalysisResult(out=sink.place, report=result.report, folder=result.folder, **counts)


class _Run:
    """A running analysis: its Spark jobs, all in one job group, write one result."""

    def __init__(self, spark: SparkSession, result: ResultWriter, steps: Steps) -> None:
        self._spark = spark
        self._result = result
        self._steps = steps
        self._group = f"abeyant-{uuid4()}"
        self._stopping = False
        self.small: Final[dict[str, pa.Table]] = {}

    def apart(self, work: Callable[[], None]) -> None:
        """Run `work`, which calls Spark, in a thread of its own.

        Ctrl-C interrupts the main thread: in the middle of a call to the JVM it would break the connection.
        """
        self._run([work])

    def tables(self, log: KafkaRequestLog) -> None:
        """Write every table; the log is parsed once."""
        with self._steps.step(f"surveying {counted_files(log.files)}"):
            if not log.survey.any_request:
                raise AbeyantError(no_request(log.files))
        # Packed rows are few and large: limit the batches that go to Python by bytes.
        limit = self._spark.conf.get(_BATCH_BYTES)
        self._spark.conf.set(_BATCH_BYTES, "64m")
        written: WrittenLog | None = None
        try:
            with self._step("parsing"):
                written = WrittenLog(self._result, log)
                operations, times = written.operations, written.times
                if not times["operations"] and not times["requests"]:
                    raise AbeyantError(f"no request in {named_files(log.files)} can be read: {self._first_reason()}")
            with self._step("analyzing"):
                incidents = self._small_tables(operations, times)
                # The sweep keeps Spark busy while this process finds suspects.
                self._run_concurrently(
                    lambda: self._suspects(operations, incidents, times["end"] or 0),
                    lambda: self._pending(operations, Span.of(times)),
                )
        finally:
            if written is not None:
                written.close()
            self._spark.conf.set(_BATCH_BYTES, limit or "64m")

    def _small_tables(self, operations: LogRows, times: Mapping[str, Any]) -> list[Incident]:
        """Write the small tables of the whole log; return the incidents."""
        waits = waits_tables(operations, times["operations"])
        self._put(waits)
        slices = Slices(times["first"], times["last"])
        self._put(time_tables(operations, slices, waits, times["end"] or 0))
        return incidents_of(self.small["incidents"])

    def _suspects(self, operations: LogRows, incidents: Sequence[Incident], end_us: int) -> None:
        """Write the small tables of the times near incidents."""
        tables = incident_tables(operations, incidents)
        self._put(tables | {"suspects": suspect_rows(find_suspects(incidents, tables["activity"], end_us))})

    def _pending(self, operations: LogRows, span: Span) -> None:
        """Write the table `pending`, and `pending_plot`, its rows for the plot."""
        if self._stopping:
            return
        rows, times = pending_rows(observed(operations), span), (span.first_us, span.last_us)
        parts = write_rows(self._result, "pending", rows, PENDING, partial(drawn_rows, times=times), PACKED)
        chunks = [arrow_schema(PENDING).empty_table(), *map(unpack, parts["rows"].to_pylist())]
        self._put({"pending_plot": plot_rows(pa.concat_tables(chunks), *times)})

    def _put(self, tables: Mapping[str, pa.Table]) -> None:
        """Write the tables that belong to the result, sorted; ignore other tables."""
        for name in _SORTED_BY.keys() & tables.keys():
            self.small[name] = _sorted(tables[name], _SORTED_BY[name])
            put_table(self._result.folder / name, self.small[name])

    def counts(self) -> dict[str, int]:
        """Return the numbers of requests, operations and rejected lines of the result."""
        return {
            "requests": pc.sum(self.small["requests_by_kind"]["requests"]).as_py() or 0,
            "operations": self._result.rows("operations"),
            "rejected": self._result.rows("rejected"),
        }

    @contextmanager
    def failures_explained(self, out: Out) -> Iterator[None]:
        """Turn failures in the `with` block that the user can fix into AbeyantError with one line."""
        try:
            with explained():
                yield
        except Exception as error:
            # Spark's own message is in the cause.
            if any(message in f"{error} {error.__cause__}" for message in _FULL):
                folder = os.path.dirname(out) or "."
                raise AbeyantError(
                    f"the disk is full, for {folder} or Spark's temporary files: {out} was not written"
                ) from error
            raise

    @contextmanager
    def _step(self, label: str) -> Iterator[None]:
        name_jobs(self._spark, self._group, label)
        with self._steps.step(label, self._spark, self._group):
            yield

    def _run_concurrently(self, *jobs: Callable[[], None]) -> None:
        """Run jobs a few at a time; the first that fails stops the rest."""

        def grouped(job: Callable[[], None]) -> None:
            name_jobs(self._spark, self._group, "analyzing")
            job()

        self._run([partial(grouped, job) for job in jobs])

    def _run(self, works: Sequence[Callable[[], None]]) -> None:
        """Run `works` in threads; if one fails, or this thread is interrupted, stop the others and wait for them."""
        pool = ThreadPoolExecutor(min(len(works), _JOBS_AT_ONCE), thread_name_prefix="abeyant-analyze")
        futures = [pool.submit(work) for work in works]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._stop(futures)
            raise
        finally:
            pool.shutdown()

    def _stop(self, futures: Sequence[Future[None]]) -> None:
        """Cancel this run's jobs, again and again, until the threads that start them have ended.

        Their result's folder is removed next.
        """
        self._stopping = True
        while not all(future.done() for future in futures):
            # Repeat: Spark cancels jobs that run now, not those being planned. If the JVM is gone, so are its jobs, and
            # the threads fail without help.
            with suppress(Exception):
                cancel_jobs(self._spark, self._group)
            time.sleep(_CANCEL_SECONDS)

    def _first_reason(self) -> str:
        columns = ["file", "line_number", "reason"]
        rejected = [
            row for part in self._result.files("rejected") for row in pq.read_table(part, columns=columns).to_pylist()
        ]
        first = min(
            rejected, key=lambda row: (row["reason"] == NOT_A_REQUEST, row["file"], row["line_number"]), default=None
        )
        return f"{first['file']} line {first['line_number']}: {first['reason']}" if first else "it is empty"


def _sorted(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table sorted by columns, nulls first."""
    keys = {}
    if not names:
        return table
    for name in names:
        if table[name].null_count:
            keys[f"{name} is known"] = table[name].is_valid()
        keys[name] = table[name]
    return table.take(pc.sort_indices(pa.table(keys), [(key, "ascending") for key in keys]))


def _marker(
    spark: SparkSession, log: KafkaRequestLog, counts: dict[str, int], timezone: str, command: str | None
) -> dict[str, Any]:
    return {
        **versions_of(spark),
        "master": spark.conf.get("spark.master"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **counts,
        "timezone": timezone,
        **({"command": command} if command else {}),
        "layouts": layouts(log.files),
        "joined": joined_files(log.files),
        "inputs": [{"instance": f.instance, "file": f.path, "bytes": f.size} for f in log.files],
        "tables": list(TABLES),
    }
