"""Capture a request log of genuine Apache Kafka: three brokers, real clients, real waiting.

Fetches Kafka (Maven) and two Python clients (pip), starts three KRaft nodes on loopback, plays
scenario.py, checks that everything wanted is in the log, and only then replaces the output
folder. Everything that it starts ends with it, on Ctrl-C and on SIGTERM too. Needs Linux,
Java 17 or newer, Maven and Python 3.11; takes about six minutes and 3 GB of memory.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from abeyant.broker.genuine import Cluster, ClusterError

from . import publish, requestlog
from .scenario import SECONDS, play
from .settings import SETTINGS
from .stage import CutShortError, Event, Stage
from .toolchain import HERE, CaptureError, Toolchain, prepare

if TYPE_CHECKING:
    from types import FrameType

REPOSITORY = HERE.parent.parent
OUTPUT = REPOSITORY / "examples" / "data" / "kafka-request-log"


def capture(tools: Toolchain, run: Path, arguments: argparse.Namespace) -> list[Event]:
    """Play the scenario; the logs are below `run` afterwards."""
    print("starting three brokers ...", flush=True)
    cluster = Cluster(tools.kafka, run, arguments.base_port, settings=SETTINGS, request_level=arguments.level)
    with cluster.running():
        stage = Stage(tools, cluster, run / "clients", arguments.seconds)
        with stage.running():
            try:
                play(stage)
            except CutShortError:
                stage.note("end of the capture")
        # What still waits when the clients have gone is answered and logged now.
        time.sleep(3)
    return stage.events


def main() -> int:
    """Capture, check, publish; return the exit code."""
    arguments = _arguments()
    _end_on_sigterm()
    began = time.monotonic()
    run = arguments.work / "run"
    try:
        arguments.work.mkdir(parents=True, exist_ok=True)
        _lock(arguments.work)
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        tools = prepare(arguments.work)
        events = capture(tools, run, arguments)
        logs = publish.captured(run)
        summary = requestlog.summarize(logs)
        complaints = [] if arguments.unchecked else requestlog.complaints(summary)
        if complaints:
            raise CaptureError(f"the capture in {run} is not good: " + "; ".join(complaints))
        page = publish.page(tools.kafka.version, summary, logs, events, arguments.level)
        written = publish.publish(logs, arguments.out, page)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: everything that was started has been ended", file=sys.stderr)
        return 130
    size = sum(path.stat().st_size for path in written)
    print(
        f"{summary.requests:,} requests in {len(written)} files, {size / 1e6:.1f} MB compressed, "
        f"in {arguments.out} after {time.monotonic() - began:.0f} s"
    )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m scripts.capture_kafka_request_log",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=OUTPUT, help="folder to replace (examples/data/kafka-request-log)")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "abeyant-kafka-capture",
        help="folder for the jars, the clients and the brokers' files (%(default)s)",
    )
    parser.add_argument("--base-port", type=int, default=29190, help="ports +1..+3 and +11..+13 are used (%(default)s)")
    parser.add_argument("--level", choices=("TRACE", "DEBUG"), default="TRACE", help="of the request logger")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="end the scenario early (%(default)s)")
    parser.add_argument("--unchecked", action="store_true", help="accept the result of a shortened scenario")
    return parser.parse_args()


def _lock(work: Path) -> None:
    """Keep a second capture out of the same folder; the lock goes with this process."""
    # Kept open for as long as the process lives.
    descriptor = os.open(work / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CaptureError(f"another capture is running in {work}") from None


def _end_on_sigterm() -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        # The first signal unwinds; the tidying up that follows is not interrupted.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


if __name__ == "__main__":
    sys.exit(main())
