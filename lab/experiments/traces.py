"""Traces of operations for the experiment `geometry`: synthetic, each from a seed, or read from real request logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from abeyant.errors import AbeyantError
from abeyant.kernels.replay import NEVER
from lab.experiments.workload import LOADS, TIMEOUT_MS, arrivals, latencies

_US = 1_000  # ns
_COUNT = 300_000


class Trace(NamedTuple):
    """The operations of a trace, in columns of µs (NumPy int64): start, time-out, and when the condition came true."""

    starts: Any
    timeouts: Any
    ends: Any


def trace(name: str) -> Trace:
    """Return the trace of a name: a name in `SYNTHETIC`, or the path of a Parquet file that `from_log` has written."""
    make = SYNTHETIC.get(name)
    return make() if make is not None else _read(Path(name))


def _requests(load: str, seed: int) -> Trace:
    from numpy import full
    from numpy.random import default_rng

    random = default_rng(seed)
    starts = arrivals(_COUNT, 20_000, random) // _US
    return Trace(starts, full(_COUNT, TIMEOUT_MS * 1_000), starts + latencies(_COUNT, LOADS[load], random) // _US)


def _long_polls() -> Trace:
    """Return a trace of long polls of 0.5 s, most of which expire, as of a consumer that is ahead of its producers."""
    from numpy import full
    from numpy.random import default_rng

    random = default_rng(3)
    starts = arrivals(_COUNT, 5_000, random) // _US
    return Trace(starts, full(_COUNT, 500_000), starts + (random.exponential(1e6, _COUNT)).astype("int64"))


def _all_sorts() -> Trace:
    """Return a trace of time-outs from a millisecond to a day, equally many per decade, all of which expire."""
    from numpy import full
    from numpy.random import default_rng

    random = default_rng(4)
    starts = arrivals(_COUNT, 1_000, random) // _US
    timeouts = (10 ** random.uniform(3, 10.94, _COUNT)).astype("int64")
    return Trace(starts, timeouts, full(_COUNT, NEVER))


SYNTHETIC = {
    "low": lambda: _requests("low", 1),
    "high": lambda: _requests("high", 2),
    "long polls": _long_polls,
    "all sorts": _all_sorts,
}


def _read(path: Path) -> Trace:
    from pyarrow import parquet

    table = parquet.read_table(path)
    return Trace(*(table.column(name).to_numpy() for name in ("start_us", "timeout_us", "end_us")))


def from_log(logs: list[str], folder: Path, spark: Any) -> list[str]:
    """Read Kafka request logs with the pipeline; write a trace for each broker, and return the traces' paths."""
    from pyspark.sql import functions as f

    from abeyant.pipeline import read_kafka_request_log

    operations = read_kafka_request_log(spark, logs)
    waited = operations.where("timeout_ms is not null and start is not null and outcome is not null")
    start = f.unix_micros("start")
    end = f.when(f.col("outcome") == "completed", start + (f.col("waited_ms") * 1_000).cast("long")).otherwise(
        f.lit(NEVER)
    )
    table = waited.select(
        "instance",
        start.alias("start_us"),
        f.greatest(f.lit(0), f.col("timeout_ms") * 1_000).alias("timeout_us"),
        end.alias("end_us"),
    ).toPandas()
    if table.empty:
        raise AbeyantError(f"no operation with a time-out in {', '.join(logs)}")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for instance, rows in table.groupby("instance"):
        path = folder / f"kafka {instance}.parquet"
        rows.sort_values("start_us").to_parquet(path)
        paths.append(str(path.absolute()))
    return paths
