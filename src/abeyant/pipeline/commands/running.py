"""Run a command's work: its Spark session, clean-up after an interrupt, and the final summary."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from abeyant.ending import end
from abeyant.pipeline.results.directory import read_marker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.results.sink import ResultWriter

__all__ = ["end_with", "result_held", "spark_for", "terminate_as_interrupt"]

_FIRST_RUN: Final = (
    "first run: when this command has returned, a Java process keeps running at the lowest priority for a minute or "
    "more, so that later runs start faster"
)


@contextmanager
def spark_for(
    args: argparse.Namespace,
    app_name: str,
    *,
    brief: bool = False,
    start: Callable[..., SparkSession] | None = None,
) -> Iterator[SparkSession]:
    """Yield a session on `args.master` with `args.conf`; stop it afterwards unless it existed before.

    `start` replaces `command_session`, which makes the session. A Spark failure becomes an `AbeyantError` of one line.
    Also holds the lease of the result, as `result_held` does.
    """
    from abeyant.pipeline.spark.errors import explained, silence_loggers

    # These enclose the session's start and stop: Ctrl-C may come at any time, and Py4J would log a traceback.
    with (
        result_held(args),
        silence_loggers(),
        _session(args, app_name, brief=brief, start=start) as spark,
        explained(),
    ):
        yield spark


@contextmanager
def result_held(args: argparse.Namespace) -> Iterator[None]:
    """Hold the lease of the result's directory (`--out`) during the block. A second command fails at once.

    SIGTERM raises KeyboardInterrupt, as Ctrl-C does; its message says whether `args.out` was written.
    """
    from abeyant.pipeline.results.registry import sink_of

    whole = "overwrite" in args
    before = _marker_of(args.out) if whole else {}
    try:
        with terminate_as_interrupt(), ExitStack() as stack:
            if "out" in args:
                stack.enter_context(sink_of(args.out).held(whole=whole))
            yield
    except KeyboardInterrupt as interrupt:
        if whole:
            after = _marker_of(args.out)
            complete = after and after != before  # else it is an earlier result
            raise KeyboardInterrupt(f"{args.out} {'is complete' if complete else 'was not written'}") from interrupt
        raise


def end_with(
    args: argparse.Namespace,
    result: ResultWriter,
    summary: Callable[[Path], None],
    found: Callable[[Path], Mapping[str, Any]],
) -> int:
    """Call `summary` with the result's folder, print where its report is, and return the exit status, 0.

    With `--json`, print the result's marker and what `found(folder)` returns instead.
    """
    marker = read_marker(result.folder)
    everything = {**marker, **found(result.folder)} if args.json else marker
    end(args, lambda: summary(result.folder), out=args.out, report=result.report, found=everything)
    return 0


def _marker_of(out: Path | str) -> Mapping[str, Any]:
    """Return the marker of the result in `out`; {} if it has no marker, or is on a store, which only Spark reads."""
    return read_marker(Path(out)) if isinstance(out, Path) else {}


def _java_options() -> str:
    """Return the options of the JVM of this process's session; "" if there is no JVM, as with Spark Connect."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return str(context.getConf().get("spark.driver.extraJavaOptions", "")) if context is not None else ""


@contextmanager
def _session(
    args: argparse.Namespace, app_name: str, *, brief: bool, start: Callable[..., SparkSession] | None
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from abeyant.pipeline.spark.archive import CLASS_ARCHIVE, class_list
    from abeyant.pipeline.spark.progress import Steps
    from abeyant.pipeline.spark.session import command_session

    is_new = SparkSession.getActiveSession() is None
    with Steps(quiet=args.quiet).step("starting Spark"):
        config = dict(args.conf)
        if start is not None:
            spark = start(args.master, app_name, config=config)
        else:
            spark = command_session(args.master, app_name, brief=brief, config=config)
    try:
        if is_new and not args.quiet and os.environ.get(CLASS_ARCHIVE) != "wait" and class_list(_java_options()):
            print(f"abeyant: {_FIRST_RUN} ({CLASS_ARCHIVE}=off turns this off)", file=sys.stderr)
        yield spark
    finally:
        if is_new:
            # Stopping removes Spark's temporary files; it fails if the JVM is gone already.
            with suppress(Exception):
                spark.stop()


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt, as Ctrl-C does, so that partial results are removed."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
