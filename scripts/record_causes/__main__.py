"""Record genuine Kafka with one planted cause each: `python -m scripts.record_causes [NAME ...]`.

Each recording is a minute of three brokers' request logs at DEBUG, gzipped, and `planted.json`: what was planted, when,
and who has to be named. Needs Linux, Java 17, Maven, and root for the slow disk; two minutes a recording.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from abeyant.broker.genuine import ClusterError, free_ports
from scripts.capture_kafka_request_log.stage import Stage
from scripts.capture_kafka_request_log.toolchain import Toolchain, prepare

from .causes import CAUSES, PLANT, SECONDS, WARM_UP, Cause, everyday
from .cluster import RecordedCluster

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDINGS = REPOSITORY / "tests" / "data" / "recordings"

# Beside Kafka's defaults: less of what an idle metadata log writes.
SETTINGS = {"metadata.max.idle.interval.ms": "5000"}


def record(cause: Cause, tools: Toolchain, work: Path, out: Path) -> None:
    """Play one recording and put it into `out`."""
    shutil.rmtree(work, ignore_errors=True)
    cluster = RecordedCluster(
        tools.kafka, work, free_ports(), settings=SETTINGS | dict(cause.settings), request_level="DEBUG", brief=True
    )
    cluster.far, cluster.slow = cause.far, cause.slow
    with cluster.running():
        stage = Stage(tools, cluster, work / "clients", 1e9)
        with stage.running():
            began = datetime.now(UTC)
            everyday(stage)
            cause.before(stage)
            stage.until(PLANT)
            cause.plant(stage, cluster)
            stage.until(WARM_UP + SECONDS)
            first, last = began + timedelta(seconds=WARM_UP), datetime.now(UTC)
        time.sleep(2)
    _publish(cause, work, out / cause.name, first, last, [(event.at, event.what) for event in stage.events])


def _publish(
    cause: Cause, work: Path, out: Path, first: datetime, last: datetime, events: list[tuple[datetime, str]]
) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    begin, end = (f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}]".encode() for at in (first, last))
    for folder in sorted(work.glob("broker-*")):
        files = sorted((folder / "logs").glob("kafka-request.log*"), key=lambda file: file.stat().st_mtime)
        lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
        kept = b"".join(line for line in lines if begin <= line[: len(begin)] <= end)
        (out / folder.name).mkdir()
        (out / folder.name / "kafka-request.log.gz").write_bytes(gzip.compress(kept, 9, mtime=0))
    told = {
        "what": cause.what,
        "suspect": cause.suspect,
        "events": [f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {what}" for at, what in events if at >= first],
    }
    (out / "planted.json").write_text(json.dumps(told, indent=2) + "\n")
    size = sum(file.stat().st_size for file in out.rglob("*.gz"))
    print(f"{cause.name}: {size / 1000:.0f} kB in {out}", flush=True)


def main() -> int:
    """Record the causes that the command line names, or all."""
    parser = argparse.ArgumentParser(prog="python -m scripts.record_causes", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(cause.name for cause in CAUSES))
    parser.add_argument("--out", type=Path, default=RECORDINGS)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "abeyant-kafka-capture")
    arguments = parser.parse_args()
    chosen = [cause for cause in CAUSES if not arguments.names or cause.name in arguments.names]
    try:
        tools = prepare(arguments.work)
        for cause in chosen:
            record(cause, tools, arguments.work / "recording", arguments.out)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
