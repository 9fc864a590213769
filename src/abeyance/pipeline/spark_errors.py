"""What Spark found wrong, in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from abeyance.errors import AbeyanceError

__all__ = ["explained", "in_one_line"]


@contextmanager
def explained() -> Iterator[None]:
    """Turn a failure of Spark into an `AbeyanceError` of one line."""
    # Spark writes what it found wrong to the error stream as well, as a line of JSON, and Py4J as a traceback: once is
    # enough.
    for logger in ("SQLQueryContextLogger", "py4j.clientserver"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise AbeyanceError(f"Spark failed: {in_one_line(error)}") from error


def in_one_line(error: BaseException) -> str:
    """Return the first cause that Spark names, else the first line of what it says."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[0]
