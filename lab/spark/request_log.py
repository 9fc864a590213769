"""Measure how long `abeyant analyze` takes, beside a floor and DuckDB over the same files.

The floor: Spark reads the text and passes it to Python; Spark then writes a row per line with operations' columns. The
values are cut out of the line without parsing it (98 lines in 100 are operations). A lesser floor writes a row of two
columns per line. DuckDB runs one query: parse, group, exact percentiles.

python -m lab.spark.request_log              0.1, 1 and 10 times 0.55 GB; 1 and 2 cores; plain and gzip; medians of 3
python -m lab.spark.request_log --quick      0.1 times, one round

The log consists of copies of the shipped example, each a day later. Each run is a process of its own and includes
Spark's start, as for a user. Processor time is of all its processes; seconds say little on a busy machine.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from lab.machine import load, machine
from lab.spark.processes import Cost

SHIPPED: Final = Path("examples/data/kafka-request-log")
_COPIES: Final = 6  # of the shipped log are 0.55 GB
_LEVEL: Final = 6  # gzip's own default
_DAY: Final = re.compile(rb"^\[(\d{4}-\d\d-\d\d) ", re.MULTILINE)
_SUBREAPER: Final = 36  # of prctl(2)
_STEPS: Final = re.compile(r"^(\D[^.]*?) \.\.\.$")


@dataclass
class Run:
    """The cost of one run: seconds, processor seconds, and resident bytes."""

    wall: float
    cpu: float
    memory: int
    steps: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Seconds and processor seconds of each step, by the name that the command prints."""


def make(folder: Path, scale: float, *, packed: bool) -> list[Path]:
    """Write a log of `scale` times 0.55 GB, one folder per broker, unless it is there; return its files."""
    place = folder / f"{scale:g}x-{'gzip' if packed else 'plain'}"
    if not (place / "whole").exists():
        shutil.rmtree(place, ignore_errors=True)
        for broker in sorted(path for path in SHIPPED.iterdir() if path.is_dir()):
            (place / broker.name).mkdir(parents=True)
            parts = sorted(
                broker.glob("kafka-request.log*"), key=lambda path: (-len(path.name), path.name), reverse=True
            )
            parts.sort(key=lambda path: -int(number[1]) if (number := re.search(r"\.(\d+)\.gz$", path.name)) else 0)
            text = b"".join(gzip.decompress(path.read_bytes()) for path in parts)
            _write(place / broker.name, text, scale * _COPIES, packed=packed)
        (place / "whole").touch()
    return sorted(place.glob("*/kafka-request.log*"))


def _write(folder: Path, text: bytes, copies: float, *, packed: bool) -> None:
    number = 0
    while copies > 0:
        if copies < 1:
            text = text[: text.rfind(b"\n", 0, int(len(text) * copies)) + 1]
        shifted = _DAY.sub(lambda day, number=number: b"[" + _later(day[1], number) + b" ", text)  # type: ignore[misc]
        name = f"kafka-request.log.{number:02}"
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(shifted, _LEVEL))
        else:
            (folder / name).write_bytes(shifted)
        number, copies = number + 1, copies - 1


def _later(day: bytes, days: int) -> bytes:
    return (date.fromisoformat(day.decode()) + timedelta(days)).isoformat().encode()


def analyze(files: Path, out: Path, cores: int, memory: str) -> list[str]:
    """Return the command of `abeyant analyze`."""
    conf = ["--conf", f"spark.driver.memory={memory}"]
    where = ["--out", str(out), "--overwrite", "--master", f"local[{cores}]"]
    return [sys.executable, "-m", "abeyant.cli", "analyze", str(files), *where, *conf]


def _child(method: str, files: Path, out: Path, cores: int, memory: str) -> list[str]:
    if method == "abeyant":
        return analyze(files, out, cores, memory)
    return [sys.executable, "-m", "lab.spark.request_log", "--child", method, str(files), str(out), str(cores), memory]


def floor(files: Path, out: Path, cores: int, memory: str) -> None:
    """Run the floor: Spark reads the text, passes it to Python, and writes a row per line with operations' columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from abeyant.pipeline.schemas import OBSERVED
    from abeyant.pipeline.spark.arrow import arrow_schema

    schema = arrow_schema(OBSERVED)

    def column(line: pa.Array, kind: pa.DataType) -> pa.Array:
        if pa.types.is_list(kind):  # one watch each, as nearly all have
            fields = [column(line, field.type) for field in kind.value_type]
            watches = pa.StructArray.from_arrays(fields, fields=list(kind.value_type))
            return pa.ListArray.from_arrays(pa.array(range(len(line) + 1), pa.int32()), watches, type=kind)
        if pa.types.is_string(kind):
            return pc.utf8_slice_codeunits(line, 1, 11)
        return pc.cast(pc.cast(pc.binary_length(line), pa.int64()), kind)

    def rows(batches: Any) -> Any:
        for batch in batches:
            line = batch.column(0)
            columns = {field.name: column(line, field.type) for field in schema}
            columns["op_id"] = pc.utf8_slice_codeunits(line, 0, 25)
            yield pa.record_batch(list(columns.values()), schema=schema)

    _write_rows(files, out, cores, memory, rows, OBSERVED)


def least(files: Path, out: Path, cores: int, memory: str) -> None:
    """Run the lesser floor: Spark reads the text, passes it to Python, and writes a row of two columns per line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def rows(batches: Any) -> Any:
        for batch in batches:
            line = batch.column(0)
            columns = [pc.utf8_slice_codeunits(line, 0, 25), pc.cast(pc.binary_length(line), pa.int64())]
            yield pa.record_batch(columns, ["at", "bytes"])

    _write_rows(files, out, cores, memory, rows, "at string, bytes long")


def _write_rows(files: Path, out: Path, cores: int, memory: str, rows: Any, schema: Any) -> None:
    from abeyant.pipeline import spark_session

    spark = spark_session(f"local[{cores}]", "floor", config={"spark.driver.memory": memory})
    lines = spark.read.option("recursiveFileLookup", "true").text(files.absolute().as_uri())
    lines.mapInArrow(rows, schema).write.mode("overwrite").parquet(out.absolute().as_uri())
    spark.stop()


def duckdb(files: Path, out: Path, cores: int, memory: str) -> None:
    """Run DuckDB: count the waits of each API, with exact percentiles, in one query."""
    import duckdb as engine

    found = engine.connect(config={"threads": cores}).execute(
        """
        SELECT api, count(*), quantile_disc(waited_ms, [0.5, 0.95, 0.99]) FROM (
            SELECT body->>'$.requestHeader.requestApiKeyName' AS api, (body->>'$.remoteTimeMs')::DOUBLE AS waited_ms
            FROM (SELECT regexp_extract(line, '(\\{.*\\})', 1)::JSON AS body FROM read_csv(
                ?, columns={'line': 'VARCHAR'}, header=false, delim='\\x01', quote='', escape='', max_line_size=33554432
            ))
        ) GROUP BY api ORDER BY api
        """,
        [str(files / "*" / "kafka-request.log*")],
    )
    out.write_text(json.dumps(found.fetchall()), encoding="utf-8")


METHODS: Final = {
    "abeyant": "abeyant analyze",
    "floor": "the floor",
    "least": "two columns a line",
    "duckdb": "DuckDB, one query",
}
_CHILDREN: Final = {"floor": floor, "least": least, "duckdb": duckdb}


def measure(command: list[str], cores: int) -> Run:
    """Run a command on `cores` cores; return the cost of all its processes."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)  # processes whose parent has ended become ours: none of their time is lost
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    environment = {**os.environ, "ABEYANT_CLASS_ARCHIVE": "wait"}
    marks: list[tuple[str, float, float]] = []
    with Cost() as cost:
        child = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, allowed),
        )
        said = []
        for line in child.stderr or ():
            said.append(line)
            if step := _STEPS.match(line):
                marks.append((step[1].split(" ")[0], time.perf_counter(), cost.so_far()))
        child.wait()
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        marks.append(("", time.perf_counter(), cost.so_far()))
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {''.join(said[-5:])}")
    steps = {name: (after[1] - wall, after[2] - cpu) for (name, wall, cpu), after in pairwise(marks)}
    return Run(cost.wall, cost.cpu, cost.memory, steps)


def main(given: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    given = sys.argv[1:] if given is None else given
    if given[:1] == ["--child"]:
        method, log, to, cores, memory = given[1:]
        _CHILDREN[method](Path(log), Path(to), int(cores), memory)
        return 0
    options = _arguments(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    out = options.folder / "out"
    print(", ".join(machine().values()), f"load {load():.1f}", sep="; ", flush=True)
    if "abeyant" in options.methods:  # the first command on a machine makes Spark's classes ready, which takes 20 s
        measure(analyze(SHIPPED / "broker-3", out, 2, options.memory), 2)
    runs: dict[tuple[float, bool, int], dict[str, list[Run]]] = {}
    for scale in options.scales:
        for packed in (form == "gzip" for form in options.forms):
            files = make(options.folder, scale, packed=packed)
            folder = files[0].parents[1]
            for cores in options.cores:
                for round_ in range(options.rounds):
                    for method in options.methods:
                        run = measure(_child(method, folder, out, cores, options.memory), cores)
                        runs.setdefault((scale, packed, cores), {}).setdefault(method, []).append(run)
                        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
                        print(
                            f"{folder.name:<12} {cores} cores {round_ + 1}/{options.rounds} {METHODS[method]:<18} "
                            f"{run.wall:7.1f} s {run.cpu:7.1f} s of processor {run.memory / 1e9:5.1f} GB "
                            f"(load {load():.1f})",
                            flush=True,
                        )
            if not options.keep:
                shutil.rmtree(folder)
    _print(runs, options.methods)
    return 0


def _print(runs: dict[tuple[float, bool, int], dict[str, list[Run]]], methods: list[str]) -> None:
    print("\n| log | cores | method | seconds | of the floor | processor, s | of the floor | memory, GB |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for (scale, packed, cores), by_method in runs.items():
        base = {name: _median(by_method["floor"], name) for name in ("wall", "cpu")} if "floor" in by_method else {}
        for method in methods:
            some = by_method[method]
            cells = []
            for name in ("wall", "cpu"):
                value = _median(some, name)
                cells += [f"{value:.1f}", f"{value / base[name]:.2f}x" if base else "-"]
            log = f"{scale * 0.575:.3g} GB{', gzip' if packed else ''}"
            memory = max(run.memory for run in some) / 1e9
            print(f"| {log} | {cores} | {METHODS[method]} | {' | '.join(cells)} | {memory:.1f} |")
    print("\nWhere the time of `analyze` goes: seconds, and seconds of a processor\n")
    names = list(dict.fromkeys(name for by in runs.values() for run in by.get("abeyant", []) for name in run.steps))
    print(f"| log | cores | {' | '.join(names)} |\n|---|--:|{'--:|' * len(names)}")
    for (scale, packed, cores), by_method in runs.items():
        cells = [
            " / ".join(
                f"{statistics.median(run.steps.get(name, (0.0, 0.0))[part] for run in by_method['abeyant']):.1f}"
                for part in (0, 1)
            )
            for name in names
        ]
        print(f"| {scale * 0.575:.3g} GB{', gzip' if packed else ''} | {cores} | {' | '.join(cells)} |")


def _median(runs: list[Run], name: str) -> float:
    values: list[float] = [getattr(run, name) for run in runs]
    return statistics.median(values)


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.spark.request_log",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="0.1 times, plain, two cores, one round")
    parser.add_argument("--scales", nargs="+", type=float, metavar="N", help="times 0.55 GB (default: 0.1 1 10)")
    parser.add_argument("--forms", nargs="+", choices=["plain", "gzip"], help="(default: both)")
    parser.add_argument("--cores", nargs="+", type=int, metavar="N", help="(default: 1 2)")
    parser.add_argument("--rounds", type=int, metavar="N", help="(default: 3)")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD", help=", ".join(METHODS)
    )
    parser.add_argument("--memory", default="2g", help="of Spark's driver (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the logs for the next run")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/bench-log"), help="for the logs (default: %(default)s)"
    )
    options = parser.parse_args(given)
    full, quick = ([0.1, 1, 10], ["plain", "gzip"], [1, 2], 3), ([0.1], ["plain"], [2], 1)
    for name, value in zip(("scales", "forms", "cores", "rounds"), quick if options.quick else full, strict=True):
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


if __name__ == "__main__":
    sys.exit(main())
