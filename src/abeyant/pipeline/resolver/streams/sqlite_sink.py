"""Write outcomes to an SQLite table keyed by (instance, op_id): each batch once, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.rejected import REJECTED_ROWS
from abeyant.pipeline.resolver.streams.plan import outcomes_of
from abeyant.pipeline.resolver.streams.query_identity import checkpoint_of, query_of
from abeyant.pipeline.results.leases.local import result_lease
from abeyant.pipeline.results.leases.queries import lease_while_query_runs

__all__ = ["SQLiteSink"]

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS outcomes (
    instance TEXT NOT NULL, op_id TEXT NOT NULL, kind TEXT, outcome TEXT NOT NULL, at_us INTEGER, waited_ms REAL,{}
    PRIMARY KEY (instance, op_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aside ("table" TEXT NOT NULL, reason TEXT NOT NULL, "row" TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
    query TEXT NOT NULL, batch INTEGER NOT NULL, PRIMARY KEY (query, batch)
) WITHOUT ROWID;
"""
_DETAILS: Final = """
    completed_by TEXT, completed_by_at_us INTEGER, cancelled_by TEXT, cancelled_by_at_us INTEGER, counted INTEGER,"""
# The first outcome of an id is kept: a second belongs to a conflicting row that came later.
_OUTCOME: Final = "INSERT INTO outcomes VALUES ({}) ON CONFLICT DO NOTHING"
_REJECTED: Final = "INSERT INTO aside VALUES (?, ?, ?)"
_DONE: Final = "INSERT INTO batches VALUES (?, ?) ON CONFLICT DO NOTHING"

_AT_A_TIME: Final = 1000


class SQLiteSink:
    """For `foreachBatch`: writes outcomes and rejected rows (table `aside`) to an SQLite database on this machine.

    Times are integers, microseconds since 1970. Details are columns too: `completed_by` and `cancelled_by` (keys), each
    with its time, and `counted`. One transaction writes the rows of a batch and records it as done, so a repeated
    batch changes nothing. Rows stream through the driver, 1,000 at a time. On Spark Connect the database is on the
    server's machine, and `checkpoint` has to name the query's checkpoint. Raises `AbeyantError` if the database cannot
    be written, and on Connect without `checkpoint`.
    """

    def __init__(self, file: str | Path, *, checkpoint: str | Path | None = None) -> None:
        self.file: Final = Path(file).absolute()
        self._checkpoint: Final = checkpoint_of("SQLiteSink", checkpoint)

    def __call__(self, answers: DataFrame, batch: int) -> None:
        """Write one batch, unless the database has it already."""
        query = query_of(answers, self._checkpoint)
        lease_while_query_runs(answers, query, result_lease(self.file), self.file)
        try:
            with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
                database.executescript(_TABLES.format(_DETAILS if "counted" in answers.columns else ""))
                database.execute("BEGIN IMMEDIATE")
                fresh = database.execute(_DONE, (query, batch)).rowcount
                if fresh:
                    _insert(database, answers)
                else:  # run the batch all the same, because that commits its state
                    answers.write.format("noop").mode("overwrite").save()
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise AbeyantError(f"cannot write {self.file}: {error}") from error


def _insert(database: sqlite3.Connection, answers: DataFrame) -> None:
    columns = [column for name in outcomes_of(answers).columns for column in _columns(name)]
    insert = _OUTCOME.format(", ".join("?" * len(columns)))
    rows: Iterator[Any] = answers.select(*columns, *REJECTED_ROWS.fieldNames()).toLocalIterator()
    while some := list(islice(rows, _AT_A_TIME)):
        database.executemany(insert, [tuple(row)[: len(columns)] for row in some if row["reason"] is None])
        database.executemany(_REJECTED, [tuple(row)[len(columns) :] for row in some if row["reason"] is not None])


def _columns(name: str) -> list[Column]:
    """Return the columns for SQLite that hold a column of outcomes."""
    if name in ("completed_by", "cancelled_by"):
        return [F.col(f"{name}.key").alias(name), F.unix_micros(f"{name}.at").alias(f"{name}_at_us")]
    return [F.unix_micros(name).alias("at_us") if name == "at" else F.col(name)]
