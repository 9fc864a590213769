"""Results: Parquet files in one schema, to which every cell of every run is appended as soon as it is measured.

A run is known by its date, the moment at which it began: all of its rows have it. So yesterday's run can be laid
beside today's, and one that was broken off can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyarrow import parquet

from abeyant.errors import AbeyantError
from abeyant.former import is_former, written_before
from lab.experiment import Cell, Measure
from lab.machine import machine, versions

if TYPE_CHECKING:
    import pandas as pd

SCHEMA: Final = pa.schema(
    [
        ("experiment", pa.string()),
        ("design", pa.string()),
        ("parameters", pa.string()),  # JSON, names in order
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("unit", pa.string()),
        ("machine", pa.string()),
        ("version", pa.string()),
        ("date", pa.timestamp("us", tz="UTC")),
    ]
)


class Results:
    """The results in one folder. Only one run at a time may append to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, date: datetime, rows: Sequence[tuple[Cell, Sequence[Measure]]]) -> None:
        """Write what these cells gave; a reader sees all of it or nothing."""
        about = {"machine": ", ".join(machine().values()), "version": ", ".join(map(" ".join, versions().items()))}
        flat = [
            {**cell._asdict(), **measure._asdict(), **about, "date": date}
            for cell, measures in rows
            for measure in measures
        ]
        if not flat:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        number = sum(1 for _ in self.folder.glob("*.parquet"))
        path = self.folder / f"{date:%Y%m%dT%H%M%S}-{flat[0]['experiment']}-{number:05}.parquet"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            parquet.write_table(pa.Table.from_pylist(flat, schema=SCHEMA), temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def read(self) -> pd.DataFrame:
        """All rows of all runs; AbeyantError where a file is no such results."""
        files = sorted(self.folder.glob("*.parquet"))
        try:
            tables = [parquet.read_table(file).cast(SCHEMA) for file in files]
        except (pa.ArrowException, ValueError) as error:
            raise AbeyantError(f"{self.folder} holds a file that is not the lab's: {error}") from error
        if any(is_former(told) for table in tables for told in table["version"].unique().to_pylist()):
            raise written_before(self.folder, "name another --dir, and measure anew")
        rows: pd.DataFrame = pa.concat_tables(tables or [SCHEMA.empty_table()]).to_pandas()
        return rows

    def last_run(self, experiment: str) -> tuple[datetime | None, set[Cell]]:
        """When the last run of an experiment began, and which of its cells are done."""
        rows = self.read()
        rows = rows[rows["experiment"] == experiment]
        if rows.empty:
            return None, set()
        date = rows["date"].max()
        done = rows[rows["date"] == date][["experiment", "design", "parameters"]].drop_duplicates()
        return date.to_pydatetime(), {Cell(*map(str, row)) for row in done.itertuples(index=False)}


def now() -> datetime:
    """The date of a run that begins."""
    return datetime.now(UTC).replace(microsecond=0)
