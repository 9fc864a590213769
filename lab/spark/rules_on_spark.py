"""Measure what each rule of `pipeline.resolve` costs beside the plain call, in processor time of JVM and workers.

    python -m lab.spark.rules_on_spark [--scale 0.1] [--rounds 3] [--cases even hot]

The tables are those of `lab.spark`, with a column `key` in place of the list of watches, as people write them, and with
the column that a rule needs. The figure of a rule is the median of its ratios to the plain call of the same round. A
first round only warms the JVM up.
Target: at most 1.5; with a hot key (half of all rows) at most 1.2 times the same rule without a hot key.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from lab.spark import data
from lab.spark.processes import Cost
from lab.spark.rules import RULES

__all__ = ["measure"]


def measure(spark: SparkSession, home: Path, rounds: int, rules: list[str]) -> dict[str, list[float]]:
    """Return the processor seconds of each rule in each round."""
    found: dict[str, list[float]] = {name: [] for name in rules}
    for round_ in range(rounds + 1):
        for name in rules:
            operations = _read(spark, home / (f"keyed-{name}" if name.endswith("_key") else "keyed"))
            with Cost() as cost:
                outcomes = pipeline.resolve(operations, _read(spark, home / "events"), unique_ids=True, **RULES[name])
                outcomes.write.mode("overwrite").parquet(f"file://{(home / 'out').resolve()}")
            print(f"{home.name} {round_} {name:20}{cost.cpu:7.1f} s of processor, {cost.wall:.1f} s", flush=True)
            if round_:
                found[name].append(cost.cpu)
    return found


def _read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.parquet(f"file://{path.resolve()}")


def _with_keys(spark: SparkSession, home: Path, rules: list[str]) -> None:
    """Write the operations again, with `key` in place of `watches`; for some rules also with the rule's column."""
    one = _read(spark, home / "operations").selectExpr("*", "watches[0].key AS key", "watches[0].required AS required")
    one = one.drop("watches", "condition")
    made = {"keyed": one}
    for name in rules:
        if name.endswith("_key"):
            made[f"keyed-{name}"] = one.withColumn(name, F.concat("key", F.lit(f" {name}")))
    for name, table in made.items():
        if not (home / name / "_SUCCESS").exists():
            table.write.mode("overwrite").parquet(f"file://{(home / name).resolve()}")


def main(given: list[str] | None = None) -> None:
    """Measure, and print the ratio of each rule."""
    parser = argparse.ArgumentParser(prog="python -m lab.spark.rules_on_spark")
    parser.add_argument("--scale", type=float, default=0.2, help="of the tables' size (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms Spark up (default: %(default)s)")
    parser.add_argument("--cases", nargs="+", choices=["even", "hot"], default=["even", "hot"])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES), metavar="RULE")
    parser.add_argument("--folder", type=Path, default=Path("build/bench-spark"), help="(default: %(default)s)")
    options = parser.parse_args(sys.argv[1:] if given is None else given)
    spark = pipeline.spark_session("local[2]", "abeyant bench-rules", config={"spark.driver.memory": "4g"})
    found = {}
    for case in options.cases:
        home = data.make(spark, options.folder, options.scale, hot=case == "hot")
        _with_keys(spark, home, options.rules)
        found[case] = measure(spark, home, options.rounds, options.rules)
    spark.stop()
    for name in options.rules:
        cells = [f"{case} {_ratio(costs[name], costs['plain']):.2f}" for case, costs in found.items()]
        if len(found) > 1:
            cells.append(
                f"hot over even {statistics.median(found['hot'][name]) / statistics.median(found['even'][name]):.2f}"
            )
        print(f"{name:20}{', '.join(cells)}")


def _ratio(costs: list[float], plain: list[float]) -> float:
    return statistics.median(one / base for one, base in zip(costs, plain, strict=True))


if __name__ == "__main__":
    main()
