"""Measure the methods of resolving whole tables, check that their outcomes agree, and print the table.

python -m lab.spark                        5 M operations, 20 M events, 500 k keys; even and hot; 3 rounds
python -m lab.spark --scale 0.1 --rounds 1 a tenth of it

The first round warms Spark's JVM up; it is printed but not counted. Figures are medians of all other rounds. Methods on
Spark run in a session of ours, and once more, in a process of its own, in a session with Spark's defaults (1 GB, 200
partitions).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from abeyant.pipeline import find_java, spark_session
from abeyant.pipeline.spark.session import SHUFFLE_PARTITIONS
from lab.machine import load
from lab.spark import data
from lab.spark.cluster import SETTINGS, cluster
from lab.spark.processes import Cost
from lab.spark.rivals import METHODS

_OURS = ("abeyant", "abeyant-filtered", "abeyant-computed")


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
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
    parser.add_argument(
        "--workers", type=int, metavar="N", help="a standalone cluster of N workers of one core, not --master"
    )
    parser.add_argument("--memory", default="4g", help="of Spark's driver (default: %(default)s)")
    parser.add_argument("--partitions", type=int, help="of shuffles (default: two a core, as any session of ours)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-spark"), help="for the tables (default: %(default)s)"
    )
    parser.add_argument(
        "--sessions", nargs="+", choices=["ours", "defaults"], default=["ours", "defaults"], help="(default: both)"
    )
    parser.add_argument("--seconds", type=Path, help="write the medians there as JSON, too")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if methods disagree."""
    given = sys.argv[1:] if given is None else given
    options = _arguments(given)
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    folder = options.folder.absolute() / "cluster"
    with cluster(folder, workers=options.workers, memory="2g") if options.workers else nullcontext() as there:
        if there is not None:
            options.master = there.master
        try:
            return _measure(given, options)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _measure(given: list[str], options: argparse.Namespace) -> int:
    spark = _session(options)
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
                if round_ == 0 and METHODS[name].resolves:
                    found.setdefault(case, {})[name] = _digest(out)
                _remove(out)
    spark.stop()
    seconds = {which: statistics.median(cost.wall for cost in measured) for which, measured in costs.items()}
    if options.seconds:
        options.seconds.write_text(json.dumps([[*which, value] for which, value in seconds.items()]), encoding="utf-8")
    in_defaults = _in_defaults(given, options) if "defaults" in options.sessions[1:] else {}
    _print(options, costs, seconds, in_defaults)
    return _disagreements(found)


def _session(options: argparse.Namespace) -> SparkSession:
    """Start the first session that `--sessions` names: ours, or one with Spark's defaults."""
    if options.sessions[0] == "defaults":
        os.environ |= {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
        spark = SparkSession.builder.master(options.master).appName("abeyant bench-spark").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark
    config: dict[str, str] = {"spark.driver.memory": options.memory}
    if options.partitions:
        config[SHUFFLE_PARTITIONS] = str(options.partitions)
    if options.workers:
        config |= SETTINGS | {SHUFFLE_PARTITIONS: str(options.partitions or 2 * options.workers)}
    return spark_session(options.master, "abeyant bench-spark", config=config)


def _in_defaults(given: list[str], options: argparse.Namespace) -> dict[tuple[str, str], float]:
    """Run the methods on Spark once more, in a process with Spark's defaults.

    Return the medians in seconds, by case and method.
    """
    methods = [name for name in options.methods if METHODS[name].on_spark]
    if not methods:
        return {}
    print("\na session with Spark's defaults:", flush=True)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        more = ["--sessions", "defaults", "--seconds", file.name, "--methods", *methods]
        subprocess.run([sys.executable, "-m", "lab.spark", *given, *more], check=True)
        return {(case, name): value for case, name, value in json.load(file)}


def _remove(out: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)


def _digest(out: Path) -> tuple[int, ...]:
    """Return a digest of a result: the number of rows and of completed rows, and the sums of the times of both."""
    rows = completed = at_sum = completed_at_sum = 0
    for batch in ds.dataset(out, format="parquet").to_batches(columns=["at", "completed"]):
        since = pc.subtract(batch["at"], 1_767_225_600_000_000)
        rows += batch.num_rows
        completed += pc.sum(batch["completed"]).as_py() or 0
        at_sum += pc.sum(since).as_py() or 0
        completed_at_sum += pc.sum(since.filter(batch["completed"])).as_py() or 0
    return rows, completed, at_sum, completed_at_sum


def _print(
    options: argparse.Namespace,
    costs: dict[tuple[str, str], list[Cost]],
    seconds: dict[tuple[str, str], float],
    in_defaults: dict[tuple[str, str], float],
) -> None:
    where = f"{options.workers} workers of one core" if options.workers else options.master
    print(
        f"\n{data.OPERATIONS * options.scale:,.0f} operations, {data.EVENTS * options.scale:,.0f} events, "
        f"{data.KEYS * options.scale:,.0f} keys, {where}; medians of {options.rounds}"
    )
    effort = {which: statistics.median(cost.cpu for cost in measured) for which, measured in costs.items()}
    for case in options.cases:
        ours = (case, "abeyant")
        print(f"\n| {case:<40} | seconds | of ours | processor, s | of ours | Spark's defaults, s | of ours |")
        print(f"|{'-' * 42}|--------:|--------:|-------------:|--------:|--------------------:|--------:|")
        for which in ((case, name) for name in options.methods if (case, name) in costs):
            cells = [f"{seconds[which]:7.1f}", _ratio(seconds, which, ours), f"{effort[which]:12.1f}"]
            cells += [_ratio(effort, which, ours)]
            there = f"{in_defaults[which]:19.1f}" if which in in_defaults else f"{'-':>19}"
            cells += [there, _ratio(in_defaults, which, ours) if which in in_defaults else f"{'-':>7}"]
            print(f"| {METHODS[which[1]].label:<40} | {' | '.join(cells)} |")
        for which in ((case, name) for name in _OURS if (case, name) in costs and (case, "floor") in costs):
            floor = (case, "floor")
            over = f"{_ratio(seconds, which, floor)}, processor{_ratio(effort, which, floor)}"
            print(f"\n{METHODS[which[1]].label}, over the floor:{over}")
    for name in _OURS:
        even, hot = ("even", name), ("hot", name)
        if even in costs and hot in costs:
            over = f"{_ratio(seconds, hot, even)}, processor{_ratio(effort, hot, even)}"
            print(f"\n{METHODS[name].label}, hot over even:{over}")


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
