"""`abeyant analyze --watch`: follow a growing log, and print when incidents begin and end, until stopped."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from abeyant.ending import print_json, standard_output
from abeyant.errors import AbeyantError
from abeyant.pages.formatting import duration, visible
from abeyant.pipeline.analysis.cases import TROUBLES
from abeyant.pipeline.analysis.packed import collected
from abeyant.pipeline.analysis.watching import IncidentWatch, Notice
from abeyant.pipeline.commands.running import spark_for, terminate_as_interrupt
from abeyant.pipeline.commands.stream_run.run import LOCAL_CHECKPOINTS
from abeyant.pipeline.commands.stream_run.watch import stop_on_signal
from abeyant.pipeline.request_log.files import find_logs, need_session
from abeyant.pipeline.request_log.growing import GROWING
from abeyant.pipeline.request_log.growing_source import READ, TOPICS, GrowingSource
from abeyant.pipeline.results.leases.local import leased, stream_lease
from abeyant.pipeline.spark.errors import query_error
from abeyant.pipeline.spark.location import is_uri

__all__ = ["run"]

INCIDENTS: Final = "incidents.jsonl"
STATE: Final = "watch-state"

_TRIGGER: Final = "1 second"
_LOOK_SECONDS: Final = 0.25
_FILES_NAMED: Final = 4
_SAVING_SHARE: Final = 0.02
"""Maximum share of the running time that is spent on saving the state."""


def run(args: argparse.Namespace) -> int:
    """Follow the log until stopped; return the exit status, 0.

    Raises `AbeyantError` with a one-line message for errors that the user can fix.
    """
    if args.overwrite or args.open or args.title:
        option = "--overwrite" if args.overwrite else "--open" if args.open else "--title"
        raise AbeyantError(f"--watch continues from the state in DIR and writes no report: leave {option} out")
    if need_session(args.logs) or is_uri(str(args.out)):
        raise AbeyantError("--watch needs local logs and a local DIR: s3a://, hdfs:// and abfss:// are not supported")
    messages = list[str]()
    find_logs(args.logs, instance=args.instance, awaited=messages.append)  # refuse missing files before Spark starts
    if messages and not args.quiet:
        print(visible(f"waiting for a log: {'; '.join(messages)}"), file=sys.stderr, flush=True)
    out = args.out.absolute()
    with terminate_as_interrupt(), leased(stream_lease(out), out):
        follower = _Follower(args, out)
        del args.overwrite  # `spark_for` would expect a result that is written as a whole
        with spark_for(args, "abeyant analyze --watch", brief=True) as spark, stop_on_signal() as stop_event:
            follower.follow(spark, stop_event)
    if not args.quiet and not args.json:
        print("stopped: run the same command again to continue", file=sys.stderr)
    return 0


class _Follower:
    """Follower of a growing log: feeds new lines to an `IncidentWatch`, reports its notices and saves its state."""

    def __init__(self, args: argparse.Namespace, out: Path) -> None:
        self._args, self._out = args, out
        self._lock = threading.Lock()
        self._watch, self._offsets = IncidentWatch(), dict[str, int]()
        self._grown = self._looked = time.monotonic()
        self._saved, self._saving_s = 0.0, 0.0
        self._is_all = False
        self._what = {"logs": [str(Path(log).absolute()) for log in args.logs], "instance": args.instance}
        self._what["timezone"] = args.timezone
        self._restore()

    def follow(self, spark: SparkSession, stop_requested: threading.Event) -> None:
        """Follow the log until `stop_requested` is set."""
        for name, value in LOCAL_CHECKPOINTS.items():
            spark.conf.set(name, value)
        spark.dataSource.register(GrowingSource)
        options = {"paths": self._what["logs"], "instance": self._args.instance, "timezone": self._args.timezone}
        log = json.dumps({**options, "offsets": self._offsets})
        rows = spark.readStream.format(GrowingSource.name()).option("log", log).load()
        # Our state has the position in the log, as both must agree. Spark's checkpoint is temporary.
        with tempfile.TemporaryDirectory(prefix="abeyant-watch-") as checkpoint:
            writer = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", f"file://{checkpoint}")
            query = writer.trigger(processingTime=_TRIGGER).start()
            try:
                while not stop_requested.is_set() and not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
                    self._pass_time()
            except StreamingQueryException as error:
                raise AbeyantError(f"the watch failed: {query_error(error)}") from error
            finally:
                with self._lock:  # not in the middle of a batch
                    query.stop()
                    self._save(always=True)

    def _take(self, rows: DataFrame, batch: int) -> None:
        """Add a batch of log lines to the watch, and report new notices."""
        tables = collected(rows, {"operations": GROWING, "topics": TOPICS, "read": READ})
        with self._lock:
            self._watch.add(tables["operations"], dict(zip(*tables["topics"].to_pydict().values(), strict=True)))
            for row in tables["read"].to_pylist():
                self._report_joined(row["joined"])
                self._offsets, self._is_all = json.loads(row["offsets"]), row["is_all"]
            self._grown = self._looked = time.monotonic()
            self._report(self._watch.look() if self._is_all else [])
            if not self._is_all:
                self._watch.forget()

    def _pass_time(self) -> None:
        """Report incidents that end because no log line has arrived. Looks for them at most once a second."""
        now = time.monotonic()
        if now - self._looked < 1 or not self._is_all or not self._watch.unsettled:
            return
        if self._lock.acquire(blocking=False):
            try:
                self._looked = now
                self._report(self._watch.look(idle_s=now - self._grown))
            finally:
                self._lock.release()

    def _report(self, notices: list[Notice]) -> None:
        if notices:
            with (self._out / INCIDENTS).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(notice, ensure_ascii=False) + "\n" for notice in notices)
        for notice in notices:
            if self._args.json:
                print_json(notice)
            elif not self._args.quiet:
                with standard_output():
                    print(visible(notice_line(notice)))
        self._save(always=bool(notices))

    def _report_joined(self, paths: list[str]) -> None:
        """Print the files that are followed from now on to stderr; standard output is for incidents."""
        if paths and not self._args.quiet:
            also = "also " if self._offsets else ""
            print(visible(f"{also}following {_paths(paths)}"), file=sys.stderr, flush=True)

    def _save(self, *, always: bool) -> None:
        now = time.monotonic()
        if not always and now - self._saved < self._saving_s / _SAVING_SHARE:
            return
        state = json.dumps({**self._what, "offsets": self._offsets}).encode() + b"\n" + self._watch.packed()
        new = self._out / f".{STATE}"
        new.write_bytes(state)
        new.replace(self._out / STATE)
        self._saved = time.monotonic()
        self._saving_s = self._saved - now

    def _restore(self) -> None:
        try:
            header, packed = (self._out / STATE).read_bytes().split(b"\n", 1)
        except FileNotFoundError:
            return
        before: dict[str, Any] = json.loads(header)
        self._offsets = before.pop("offsets")
        if before != self._what:
            raise AbeyantError(
                f"{self._out} has the state of a watch of {', '.join(before['logs'])}: name another --out, or give the "
                "same LOGS, --instance and --timezone as before"
            )
        self._watch = IncidentWatch.restored(packed)


def _paths(paths: list[str]) -> str:
    listing = ", ".join(paths[:_FILES_NAMED])
    remaining = len(paths) - _FILES_NAMED
    return f"{len(paths):,} files: {listing} and {remaining:,} more" if remaining > 0 else listing


def notice_line(notice: Mapping[str, Any]) -> str:
    """Return a notice (an incident begins, ends or is withdrawn) as one line of text."""
    first, last = (datetime.fromisoformat(notice[name]) for name in ("first", "last"))
    affected = f"{notice['operations']:,} {notice['kind']} {TROUBLES[notice['trouble']]}"
    instances = ", ".join(notice["instances"])
    prefix = f"incident {notice['incident']} {notice['event']}"
    if notice["event"] == "begins":
        return f"{first:%H:%M:%S} {prefix}: {affected} at {instances}"
    if notice["event"] == "withdrawn":
        return f"{last:%H:%M:%S} {prefix}: so long a wait is usual for {notice['kind']}"
    expired = f", {notice['expired']:,} expired" if notice["expired"] else ""
    suspects = notice["suspects"]
    suspect = suspects[0]["evidence"] if suspects else "no suspect"
    length = duration((last - first).total_seconds() * 1000)
    return f"{last:%H:%M:%S} {prefix} after {length}: {affected}{expired} at {instances}; {suspect}"
