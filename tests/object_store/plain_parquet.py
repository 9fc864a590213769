"""Tables of plain Parquet files on a store, resolved both ways: `python -m object_store.plain_parquet ROOT`.

Settings of the session come on stdin, as JSON. Prints one object of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE
from abeyant.pipeline.resolver.tables.plain_parquet.footers import DIRECT


def main() -> None:
    root = sys.argv[1]
    spark = pipeline.spark_session("local[2]", "plain parquet", brief=True, config=json.load(sys.stdin))
    told: dict[str, Any] = {}
    for direct in ("true", "false"):
        spark.conf.set(DIRECT, direct)
        tables = [spark.read.parquet(f"{root}/{name}") for name in ("operations", "events")]
        outcomes = pipeline.resolve(*tables, sample=DEFAULT_SAMPLE)
        rows = [list(row) for row in outcomes.withColumn("at", F.unix_micros("at")).collect()]
        told[direct] = {"scanned": len(outcomes.inputFiles()), "rows": sorted(rows, key=repr)}
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
