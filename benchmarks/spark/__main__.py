"""Measure, check that all agree, print the table.

python -m benchmarks.spark                        5 M operations, 20 M events, 500 k keys; even and hot; 3 rounds
python -m benchmarks.spark --scale 0.1 --rounds 1 a tenth of it

The first round warms Spark's JVM up, and is shown but not counted; of the others, medians.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from abeyance.pipeline import spark_session
from abeyance.pipeline.spark.session import SHUFFLE_PARTITIONS
from benchmarks.machine import load
from benchmarks.spark import data
from benchmarks.spark.processes import Cost
from benchmarks.spark.rivals import METHODS


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the tables' size (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms Spark up (default: %(default)s)")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument(
        "--cases", nargs="+", choices=["even", "hot"], default=["even", "hot"], help="hot: one key has half of all rows"
    )
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    parser.add_argument("--memory", default="4g", help="of Spark's driver (default: %(default)s)")
    parser.add_argument("--partitions", type=int, help="of shuffles (default: two a core, as any session of ours)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-spark"), help="for the tables (default: %(default)s)"
    )
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Do as the command line says; return 1 when methods disagree."""
    options = _arguments(given)
    config = {"spark.driver.memory": options.memory}
    if options.partitions:
        config[SHUFFLE_PARTITIONS] = str(options.partitions)
    spark = spark_session(options.master, "abeyance bench-spark", config=config)
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    costs: dict[tuple[str, str], list[Cost]] = {}
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for case in options.cases:
        tables = data.make(spark, options.folder, options.scale, hot=case == "hot")
        for round_ in range(options.rounds + 1):
            for name in options.methods:
                if case == "hot" and not METHODS[name].stands_skew:
                    continue
                out = options.folder / "out"
                _remove(out)
                with Cost() as cost:
                    METHODS[name].run(spark, tables, out)
                if round_:
                    costs.setdefault((case, name), []).append(cost)
                which = f"{round_}/{options.rounds}" if round_ else "warm-up"
                print(
                    f"{case} {which:<8} {METHODS[name].label:<40} {cost.wall:7.1f} s "
                    f"{cost.cpu:7.1f} s of processor {cost.memory / 1e9:6.1f} GB (load {load():.1f})",
                    flush=True,
                )
                if round_ == 0:
                    found.setdefault(case, {})[name] = _digest(out)
                _remove(out)
    spark.stop()
    _print(options, costs)
    return _disagreements(found)


def _remove(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)


def _digest(out: Path) -> tuple[int, ...]:
    """Rows, completed, and sums over all rows: of the times, and of the times of those completed."""
    rows = completed = at_sum = completed_at_sum = 0
    for batch in ds.dataset(out, format="parquet").to_batches(columns=["at", "completed"]):
        since = pc.subtract(batch["at"], 1_767_225_600_000_000)
        rows += batch.num_rows
        completed += pc.sum(batch["completed"]).as_py() or 0
        at_sum += pc.sum(since).as_py() or 0
        completed_at_sum += pc.sum(since.filter(batch["completed"])).as_py() or 0
    return rows, completed, at_sum, completed_at_sum


def _print(options: argparse.Namespace, costs: dict[tuple[str, str], list[Cost]]) -> None:
    print(
        f"\n{data.OPERATIONS * options.scale:,.0f} operations, {data.EVENTS * options.scale:,.0f} events, "
        f"{data.KEYS * options.scale:,.0f} keys, {options.master}; medians of {options.rounds}"
    )
    seconds = {which: statistics.median(cost.wall for cost in measured) for which, measured in costs.items()}
    effort = {which: statistics.median(cost.cpu for cost in measured) for which, measured in costs.items()}
    for case in options.cases:
        ours = (case, "abeyance")
        print(f"\n| {case:<40} | seconds | of ours | processor, s | of ours |")
        print(f"|{'-' * 42}|--------:|--------:|-------------:|--------:|")
        for which in ((case, name) for name in options.methods if (case, name) in costs):
            cells = [f"{seconds[which]:7.1f}", _ratio(seconds, which, ours), f"{effort[which]:12.1f}"]
            print(f"| {METHODS[which[1]].label:<40} | {' | '.join(cells)} | {_ratio(effort, which, ours)} |")
    even, hot = ("even", "abeyance"), ("hot", "abeyance")
    if even in costs and hot in costs:
        print(f"\nhot over even, ours:{_ratio(seconds, hot, even)}, processor{_ratio(effort, hot, even)}")


def _ratio(figures: dict[tuple[str, str], float], which: tuple[str, str], base: tuple[str, str]) -> str:
    return f"{figures[which] / figures[base]:6.2f}x" if base in figures else f"{'-':>7}"


def _disagreements(found: dict[str, dict[str, tuple[int, ...]]]) -> int:
    for case, digests in found.items():
        if len(set(digests.values())) > 1:
            print(f"benchmarks: error: the methods disagree on the {case} tables: {digests}", file=sys.stderr)
            return 1
        print(f"{case}: all methods agree: {next(iter(digests.values()))[:2]} (operations, completed)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
