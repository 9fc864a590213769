"""Watch a running query until it ends, stop it between two batches, and report its failure in one line."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.errors import StreamingQueryException

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.errors import query_error

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from abeyant.pipeline.commands.stream_run.lines import Lines

__all__ = ["follow", "stop_on_signal"]

_LOOK_SECONDS: Final = 0.25


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets; the second raises KeyboardInterrupt."""
    stop_event = threading.Event()

    def ask(number: int, frame: object) -> None:
        if stop_event.is_set():
            raise KeyboardInterrupt
        stop_event.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(query: StreamingQuery, lines: Lines, stop_requested: threading.Event) -> None:
    """Watch a query until it ends. Once `stop_requested` is set, stop it after the current batch.

    Raises `AbeyantError` with one line when the query fails.
    """
    try:
        # The wait is in the JVM, so that a failure is noticed at once; signals are handled in between.
        while not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
            lines.look(query)
            if stop_requested.is_set():
                _stop_between_batches(query)
                break
    except StreamingQueryException as error:
        raise AbeyantError(f"the stream failed: {query_error(error)}") from error
    finally:
        lines.look(query)


def _stop_between_batches(query: StreamingQuery) -> None:
    """Stop the query after the current batch. A batch that begins meanwhile is aborted, and repeated at a restart."""
    latest = query.lastProgress
    before = latest.batchId if latest is not None else -1
    while query.isActive and query.status["isTriggerActive"]:
        latest = query.lastProgress
        if latest is not None and latest.batchId > before:
            break
        time.sleep(_LOOK_SECONDS / 5)
    query.stop()
