"""Record the request log of a genuine broker of every minor version: `python -m scripts.record_versions [MINOR ...]`.

Each broker, from 0.8.2 on, serves a producer, a consumer in a group and a transaction, as far as it has them. Its log
is kept in `tests/data/versions`, gzipped; `tests/pipeline/request_log/test_versions.py` holds the parser against it.
Needs Java 17 and Maven; 60 MB and half a minute a version.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import time
from pathlib import Path

from confluent_kafka import KafkaException
from kafka.errors import KafkaError

from abeyant.broker.genuine import ClusterError, free_ports
from abeyant.cache import cache_folder

from .broker import running_broker
from .traffic import play
from .versions import VERSIONS, fetch_release

REPOSITORY = Path(__file__).resolve().parents[2]
OUT = REPOSITORY / "tests" / "data" / "versions"


def record(minor: str, jars: Path, work: Path) -> int:
    """Record one version; return the number of lines. Raises ClusterError."""
    release = fetch_release(minor, jars)
    port = free_ports() + 1
    with running_broker(release, work, port, port + 1) as log:
        play(release, port)
    lines = log.read_bytes()
    if not lines:
        raise ClusterError(f"Kafka {release.version} has logged no request: see {log.parent}")
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{minor}.log.gz").open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(lines)
    shutil.rmtree(work)
    return lines.count(b"\n")


def main(arguments: list[str]) -> int:
    """Record the named versions, or all; return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts.record_versions", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("minors", nargs="*", metavar="MINOR", help="a minor version, 2.8 for instance (default: all)")
    parser.add_argument(
        "--jars", type=Path, default=cache_folder() / "abeyant-kafka-versions", help="where jars are kept"
    )
    parser.add_argument("--work", type=Path, default=Path("build/versions"), help="where brokers run")
    options = parser.parse_args(arguments)
    unknown = [minor for minor in options.minors if minor not in VERSIONS]
    if unknown:
        parser.error(f"unknown minor version {unknown[0]}: choose from {', '.join(VERSIONS)}")
    failed = []
    for minor in options.minors or VERSIONS:
        began = time.monotonic()
        try:
            lines = record(minor, options.jars, options.work.absolute() / minor)
        except (ClusterError, OSError, KafkaException, KafkaError) as error:
            failed.append(minor)
            print(f"{minor}: failed: {error}", file=sys.stderr, flush=True)
        else:
            print(f"{minor}: {lines} lines, {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
