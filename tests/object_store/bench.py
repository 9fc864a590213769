"""How long `resolve` takes over Parquet tables on a store, beside the floor in the same session.

    PYTHONPATH=tests python -m object_store.bench --store s3 --scale 0.2  # or hdfs, azure

The tables are those of `python -m lab.spark`. Processor time includes the store's, in all rows alike.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from abeyant import pipeline
from lab.spark import data
from lab.spark.processes import Cost
from lab.spark.rivals import METHODS
from object_store.stores import STORES

NAMES = ("floor", "abeyant", "abeyant-filtered", "abeyant-computed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=STORES, default="s3", help="(default: %(default)s)")
    parser.add_argument("--scale", type=float, default=0.2, help="of the tables' size (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms Spark up (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="abeyant-bench-") as name:
        folder = Path(name)
        with STORES[options.store](folder / "store") as store:
            config = {**store.settings, "spark.driver.memory": "3g"}
            spark = pipeline.spark_session("local[2]", "bench of a store", config=config)
            made = data.make(spark, folder / "tables", options.scale, hot=False)
            for file in sorted(made.rglob("*.parquet")):
                store.write(f"bench/{file.relative_to(made)}", file.read_bytes())
            measure(spark, f"{store.uri}/bench", folder / "out", options.rounds)
            spark.stop()


def measure(spark: Any, tables: str, out: Path, rounds: int) -> None:
    costs: dict[str, list[Cost]] = {name: [] for name in NAMES}
    for round_ in range(rounds + 1):
        for name in NAMES:
            with Cost() as cost:
                METHODS[name].run(spark, tables, out)
            if round_:
                costs[name].append(cost)
    floor = statistics.median(cost.cpu for cost in costs["floor"])
    print("| method | seconds | processor, s | of the floor |\n|---|---:|---:|---:|")
    for name in NAMES:
        wall = statistics.median(cost.wall for cost in costs[name])
        cpu = statistics.median(cost.cpu for cost in costs[name])
        print(f"| {METHODS[name].label} | {wall:.1f} | {cpu:.1f} | {cpu / floor:.2f} |")


if __name__ == "__main__":
    main()
