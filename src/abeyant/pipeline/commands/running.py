"""Around each command's work: Spark while it lasts, an interrupt that leaves nothing half-written, and the end."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from abeyant.ending import end
from abeyant.pipeline.results.directory import read_marker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.results.sink import ResultWriter

__all__ = ["end_with", "spark_for", "terminate_as_interrupt"]


@contextmanager
def spark_for(
    args: argparse.Namespace,
    app_name: str,
    *,
    brief: bool = False,
    start: Callable[..., SparkSession] | None = None,
) -> Iterator[SparkSession]:
    """Give a session on `args.master` with `args.conf`, and stop it unless it was there before.

    `start` starts one in place of `command_session`. A command with a result (`--out`) holds its place
    from before Spark starts, so that a second one there is refused at once. A failure of Spark becomes an
    `AbeyantError` of one line. SIGTERM interrupts as Ctrl-C does; the KeyboardInterrupt then says that `args.out` was
    not written.
    """
    from abeyant.pipeline.results.registry import sink_of
    from abeyant.pipeline.spark.errors import explained, logged_nowhere_else

    whole = "overwrite" in args
    try:
        with terminate_as_interrupt(), ExitStack() as held:
            if "out" in args:
                held.enter_context(sink_of(args.out).held(whole=whole))
            # From before it starts until it has stopped: Ctrl-C may come at any time, and Py4J would log where.
            held.enter_context(logged_nowhere_else())
            spark = held.enter_context(_session(args, app_name, brief=brief, start=start))
            with explained():
                yield spark
    except KeyboardInterrupt as interrupt:
        if whole:
            raise KeyboardInterrupt(f"{args.out} was not written") from interrupt
        raise


def end_with(
    args: argparse.Namespace,
    result: ResultWriter,
    summary: Callable[[Path], None],
    found: Callable[[Path], Mapping[str, Any]],
    *,
    reported: bool = True,
) -> int:
    """Print what `summary` prints of the result's folder, and where its report is; return the exit status, 0.

    `found` returns what `--json` has of the folder besides the result's marker.
    """
    report = result.report if reported else None
    marker = read_marker(result.folder)
    everything = {**marker, **found(result.folder)} if args.json else marker
    end(args, lambda: summary(result.folder), out=args.out, report=report, found=everything)
    return 0


@contextmanager
def _session(
    args: argparse.Namespace, app_name: str, *, brief: bool, start: Callable[..., SparkSession] | None
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.spark.progress import Steps
    from abeyant.pipeline.spark.session import command_session

    ours = SparkSession.getActiveSession() is None
    with Steps(quiet=args.quiet).step("starting Spark"):
        config = dict(args.conf)
        if start is not None:
            spark = start(args.master, app_name, config=config)
        else:
            spark = command_session(args.master, app_name, brief=brief, config=config)
    try:
        yield spark
    finally:
        if ours:
            # Spark removes its temporary files as it stops; if it is gone already there is nothing to stop.
            with suppress(Exception):
                spark.stop()


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does: what was half-written is removed."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
