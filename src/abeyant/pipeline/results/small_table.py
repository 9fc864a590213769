"""Write an Arrow table of this process into a result."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["put_table"]


def put_table(directory: Path, table: pa.Table) -> None:
    """Write a table into a new directory of a result's folder, as one file."""
    directory.mkdir()
    pq.write_table(table, directory / "part-0.zstd.parquet", compression="zstd")
