"""What Spark found wrong, in one line."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.file_errors import unread_file
from abeyant.pipeline.spark.jvm import OUT_OF_MEMORY, how_it_ended

__all__ = ["explained", "in_one_line", "logged_nowhere_else"]

_OURS: Final = re.compile(r"\babeyant\.[\w.]*Error: (.+)")
_NO_FILE_SYSTEM: Final = re.compile(
    r'Class org\.apache\.hadoop\.fs\.([\w.]+) not found|No FileSystem for scheme "([\w+.-]+)"'
)
_PACKAGES: Final = {"s3a": "hadoop-aws", "azurebfs": "hadoop-azure", "azure": "hadoop-azure", "gs": "hadoop-gcp"}
_FULL: Final = ("No space left on device", "Disk quota exceeded")
_PREAMBLE: Final = "An error occurred while calling "
"""How Py4J begins; what Java said is below."""

_COLON: Final = re.compile(r"Relative path in absolute URI: (.+)")
_PYTHON: Final = re.compile(r"^(\w*(?:Error|Exception): .+)$", re.MULTILINE)
"""The last line of a traceback, of an exception of Python's own."""


@contextmanager
def explained() -> Iterator[None]:
    """Turn a failure of Spark into an `AbeyantError` of one line."""
    with logged_nowhere_else():
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError) as error:  # the last two also when the JVM is gone
            if isinstance(error, BrokenPipeError) and how_it_ended(0) is None:
                raise  # not the JVM's pipe: whoever read our output has gone
            raise AbeyantError(f"Spark failed: {in_one_line(error)}") from error


@contextmanager
def logged_nowhere_else() -> Iterator[None]:
    """Silence what Spark writes to the error stream as well, as a line of JSON, and Py4J as a traceback."""
    # Asked for as Spark does: whoever names a logger first decides of which class it is.
    own = [
        PySparkLogger.getLogger("SQLQueryContextLogger"),
        PySparkLogger.getLogger("DataFrameQueryContextLogger"),
        logging.getLogger("py4j.clientserver"),
    ]
    root = logging.getLogger()

    def not_py4js(record: logging.LogRecord) -> bool:
        return record.module != "java_gateway"  # what others log by the root logger goes on

    levels = [logger.level for logger in own]
    for logger in own:
        logger.setLevel(logging.CRITICAL)
    root.addFilter(not_py4js)
    try:
        yield
    finally:
        root.removeFilter(not_py4js)
        for logger, level in zip(own, levels, strict=True):
            logger.setLevel(level)


def in_one_line(error: BaseException) -> str:
    """Return what says most of a failure of Spark.

    How the JVM ended, where it did, or that it ran out of memory, or a disk of room; an error of ours, in a worker or
    the driver; the file that cannot be read; the end of another's traceback; the first cause that Java names; or the
    first line. Of a file system that this Spark lacks it says which package brings it.
    """
    text = str(error)
    # A Java error whose trace cannot be asked for any more is one line: the JVM was ending as it was told.
    answered = isinstance(error, Py4JJavaError) and "\n" in text.strip()
    if isinstance(error, Py4JError | ConnectionError) and not answered:
        ended = how_it_ended()
        if ended is not None:
            return ended
    if "java.lang.OutOfMemoryError" in text:
        return OUT_OF_MEMORY
    full = next((said for said in _FULL if said in text), None)
    if full is not None:
        return f"the disk is full, of the result or of Spark's temporary files ({full}): make room and start again"
    lacks = _NO_FILE_SYSTEM.search(text)
    if lacks is not None:
        return _package_of(lacks[1], lacks[2])
    colon = _COLON.search(text)
    if colon is not None:
        return (
            f"Hadoop reads no name with a colon in it, nor a folder that has one: {colon[1].strip()}: rename it, or "
            "move it elsewhere"
        )
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].startswith(_PREAMBLE):
        lines = [line.removeprefix(": ") for line in lines[1:]]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    unread = unread_file(text)
    told = (
        _OURS.findall(text)[-1:]
        or ([unread] if unread else [])
        or _PYTHON.findall(text)[-1:]
        or causes
        or lines
        or [type(error).__name__]
    )
    return told[0]


def _package_of(class_name: str | None, scheme: str | None) -> str:
    """Say which package brings a file system: of the class that was not found, or of a scheme that has none."""
    if scheme in ("s3", "s3n"):
        return f"Spark reads S3 as s3a://, not as {scheme}://"
    package = _PACKAGES.get(class_name.partition(".")[0] if class_name else scheme or "")
    what = f"scheme {scheme}://" if class_name is None else f"class {class_name.rpartition('.')[2]}"
    if package is None:
        return f"this Spark has no file system for {what}: give it the jar that brings it, as by --conf spark.jars=JAR"
    return (
        f"this Spark has no file system for {what}: start it with "
        f"--conf spark.jars.packages=org.apache.hadoop:{package}:{_hadoop()}"
    )


def _hadoop() -> str:
    """Return the version of Hadoop that this Spark comes with."""
    jars = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    found = next(iter(jars.glob("hadoop-client-api-*.jar")), None)
    return found.stem.removeprefix("hadoop-client-api-") if found is not None else "VERSION"
