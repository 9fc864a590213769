"""Plain Parquet files on each store are read by Python workers themselves, to the same outcomes as by Spark."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from object_store.buckets import Bucket
from object_store.kill import environment
from pipeline.resolver.tables.test_plain_parquet import small_rows
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS


def test_workers_read_the_files_of_a_store(bucket: Bucket) -> None:
    for name, rows, schema in zip(
        ("operations", "events"), small_rows(), (ARROW_OPERATIONS, ARROW_EVENTS), strict=True
    ):
        table, parts = pa.Table.from_pylist(rows, schema), 3
        size = -(-table.num_rows // parts)
        for number in range(parts):
            file = io.BytesIO()
            pq.write_table(table.slice(number * size, size), file, row_group_size=100)
            bucket.write(f"plain/{name}/day=2026-11-0{number + 1}/a b%{number}.parquet", file.getvalue())
    ran = subprocess.run(
        [sys.executable, "-m", "object_store.plain_parquet", f"{bucket.uri}/plain"],
        input=json.dumps(dict(bucket.settings)), capture_output=True, text=True, check=False, env=environment(),
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "not-a-secret" not in ran.stdout + ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["true"]["scanned"] == 0, "Spark scans nothing where workers read"
    assert told["false"]["scanned"] == 6
    assert told["true"]["rows"] == told["false"]["rows"]
    assert len(told["true"]["rows"]) > 700
