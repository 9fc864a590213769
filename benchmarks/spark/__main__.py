"""Measure, check that all agree, print the table.

python -m benchmarks.spark                        5 M operations, 20 M events, 500 k keys; even and hot; 3 rounds
python -m benchmarks.spark --scale 0.1 --rounds 1 a tenth of it
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from abeyance.pipeline import spark_session
from benchmarks.spark import data
from benchmarks.spark.rivals import METHODS


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the tables' size (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="each method's time is the median (default: %(default)s)")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument(
        "--cases", nargs="+", choices=["even", "hot"], default=["even", "hot"], help="hot: one key has half of all rows"
    )
    parser.add_argument("--master", default="local[2]", help="(default: %(default)s)")
    parser.add_argument("--memory", default="4g", help="of Spark's driver (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=16, help="of Spark's shuffles (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-spark"), help="for the tables (default: %(default)s)"
    )
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Do as the command line says; return 1 when methods disagree."""
    options = _arguments(given)
    config = {"spark.driver.memory": options.memory, "spark.sql.shuffle.partitions": str(options.partitions)}
    spark = spark_session(options.master, "abeyance bench-spark", config=config)
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    times: dict[tuple[str, str], list[float]] = {}
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for case in options.cases:
        tables = data.make(spark, options.folder, options.scale, hot=case == "hot")
        for round_ in range(options.rounds):
            for name in options.methods:
                if case == "hot" and not METHODS[name].stands_skew:
                    continue
                out = options.folder / "out"
                _remove(out)
                began = time.perf_counter()
                METHODS[name].run(spark, tables, out)
                seconds = time.perf_counter() - began
                times.setdefault((case, name), []).append(seconds)
                print(f"{case} {round_ + 1}/{options.rounds}  {METHODS[name].label:<40} {seconds:7.1f} s", flush=True)
                if round_ == 0:
                    found.setdefault(case, {})[name] = _digest(out)
                _remove(out)
    spark.stop()
    _print(options, times)
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


def _print(options: argparse.Namespace, times: dict[tuple[str, str], list[float]]) -> None:
    medians = {which: statistics.median(measured) for which, measured in times.items()}
    ours = {case: medians.get((case, "abeyance")) for case in options.cases}
    print(
        f"\n{data.OPERATIONS * options.scale:,.0f} operations, {data.EVENTS * options.scale:,.0f} events, "
        f"{data.KEYS * options.scale:,.0f} keys, {options.master}, median of {options.rounds}\n"
    )
    print(f"| {'method':<40} | even, s | of ours | hot key, s | of ours |")
    print(f"|{'-' * 42}|--------:|--------:|-----------:|--------:|")
    for name in options.methods:
        cells = []
        for case, width in (("even", 7), ("hot", 10)):
            seconds, base = medians.get((case, name)), ours.get(case)
            cells.append(f"{'-' if seconds is None else f'{seconds:.1f}':>{width}}")
            cells.append(f"{'-' if seconds is None or not base else f'{seconds / base:.2f}x':>7}")
        print(f"| {METHODS[name].label:<40} | {' | '.join(cells)} |")
    if (even := ours.get("even")) and (hot := ours.get("hot")):
        print(f"\nhot over even, ours: {hot / even:.2f}x")


def _disagreements(found: dict[str, dict[str, tuple[int, ...]]]) -> int:
    for case, digests in found.items():
        if len(set(digests.values())) > 1:
            print(f"benchmarks: error: the methods disagree on the {case} tables: {digests}", file=sys.stderr)
            return 1
        print(f"{case}: all methods agree: {next(iter(digests.values()))[:2]} (operations, completed)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
