"""What Spark found wrong, in one line."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from abeyance.errors import AbeyanceError

__all__ = ["explained", "in_one_line"]

_OURS: Final = re.compile(r"\babeyance\.[\w.]*Error: (.+)")
_PYTHON: Final = re.compile(r"^(\w*(?:Error|Exception): .+)$", re.MULTILINE)
"""The last line of a traceback, of an exception of Python's own."""


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
    """Return what says most of a failure of Spark.

    An error of ours, in a worker or the driver; the end of another's traceback; the first cause that Java names; or the
    first line.
    """
    text = str(error)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = _OURS.findall(text)[-1:] or _PYTHON.findall(text)[-1:] or causes or lines or [type(error).__name__]
    return told[0]
