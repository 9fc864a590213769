"""Read, map and resolve both tables of `abeyant resolve` on Spark; look up what its summary needs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.analysis.outcomes import expired_keys
from abeyant.pipeline.analysis.unmatched import unmatched_of
from abeyant.pipeline.resolver.either import resolve
from abeyant.pipeline.resolver.tables.validity import rejected_events, rejected_operations, valid_events
from abeyant.pipeline.results.outcome_counts import OutcomeCounts
from abeyant.pipeline.results.registry import sink_of
from abeyant.pipeline.results.sink import ResultWriter
from abeyant.pipeline.sources.source import Source
from abeyant.pipeline.sources.tables import events_from, operations_from
from abeyant.pipeline.spark.jobs import name_jobs
from abeyant.pipeline.spark.progress import Steps
from abeyant.tables.defaults import check_instances

__all__ = ["SparkTables"]

_GROUP = "abeyant-resolve"


class SparkTables:
    """Operations and events of `abeyant resolve`, as DataFrames."""

    engine = "spark"

    def __init__(
        self, spark: SparkSession, args: argparse.Namespace, rules: Mapping[str, Any], ours: Source, theirs: Source
    ) -> None:
        """Plan the tables from the sources of operations (`ours`) and events (`theirs`), without reading rows.

        Raises `AbeyantError` for columns that are missing or of a wrong type.
        """
        operations, events = ours.queried(spark), theirs.queried(spark)
        self._columns = [*operations.columns, *dict(args.operation)]
        check_instances(self._columns, [*events.columns, *dict(args.event)])
        self._operations = operations_from(operations, dict(args.operation))
        self._events = events_from(events, dict(args.event))
        self._spark, self._args, self._rules = spark, args, rules
        self._newest = Observation("newest event")

    def result(self) -> AbstractContextManager[ResultWriter]:
        """Return a context manager that yields the writer of the result."""
        return sink_of(self._args.out).table(self._spark, overwrite=self._args.overwrite)

    def tables(self) -> dict[str, DataFrame]:
        """Return the tables to write, by name: the outcomes and the rejected rows. Lazy."""
        options = {**self._rules, "deadline": self._args.deadline, "unique_ids": self._args.unique_ids}
        # The rows are all read for those to reject: so no job of its own has to look for the newest event.
        observed = self._events.observe(self._newest, F.max(F.unix_micros("at")).alias("at_us"))
        return {
            "outcomes": resolve(self._operations, self._events, **options),
            "invalid_operations": rejected_operations(self._operations),
            "invalid_events": rejected_events(observed),
        }

    def write(self, result: ResultWriter, name: str, table: DataFrame, steps: Steps) -> None:
        """Write one of the tables that `tables` returns, and print the progress."""
        name_jobs(self._spark, _GROUP, name)
        with steps.step(f"writing {name}", self._spark, _GROUP):
            if name == "invalid_operations" and self._has_outcomes_of_all(result):
                table = table.limit(0)
            result.write(name, table)

    def _has_outcomes_of_all(self, result: ResultWriter) -> bool:
        """Return whether each operation has an outcome, so that none is rejected. Counts the operations.

        With a promise that ids are unique, a duplicate has an outcome, too, and is still to be found.
        """
        return not self._args.unique_ids and result.rows("outcomes") == self._operations.count()

    def expired_keys(self, ended: OutcomeCounts) -> pa.Table:
        """Return the keys on which most operations expired. Reads the operations again."""
        return expired_keys(ended, self._operations)

    def unmatched(self, ended: OutcomeCounts) -> str | None:
        """Return a warning if all operations expired, and none of their keys occurs among the events."""
        return unmatched_of(ended, self._operations, self._events, self._columns)

    def newest_event(self) -> int | None:
        """Return the greatest `at` of all events, in microseconds since 1970; None without events.

        It is known once the rejected events are written.
        """
        newest: int | None = self._newest.get["at_us"]
        return newest

    def has_valid_events(self) -> bool:
        """Return whether at least one event is valid. Reads events again."""
        return not valid_events(self._events).isEmpty()
