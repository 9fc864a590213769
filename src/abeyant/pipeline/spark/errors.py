"""What Spark found wrong, in one line; and every message of Spark, Hadoop and Java that is matched by its text.

Such texts are no interface. So all that the pipeline looks for in them stands here, and is listed with the versions in
which it was seen in docs/dependencies.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.jvm import OUT_OF_MEMORY, how_it_ended
from abeyant.pipeline.spark.versions import hadoop_version

__all__ = [
    "explained",
    "in_one_line",
    "lacks_format",
    "lacks_packages",
    "logged_nowhere_else",
    "says_missing",
    "says_nanoseconds",
    "says_replaced",
    "why_a_query_ended",
]

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


_READING: Final = re.compile(
    r"Encountered error while reading file (?P<file>.+?)\.\s+"
    r"(?:Data type mismatches when reading Parquet column \[(?P<column>.+?)\]\. "
    r"Expected Spark type (?P<expected>.+?), actual Parquet type (?P<found>\w+)\.\s+)?"
    r"(?:Could not read footer\..*?\.\s+)?SQLSTATE",
    re.DOTALL,
)
_HEADER: Final = re.compile(
    r"CSV header does not conform to the schema\.\s+Header: (?P<found>.*?)\n\s*Schema: (?P<expected>.*?)\n"
    r".*?CSV file: (?P<file>[^\n]+)",
    re.DOTALL,
)
_LENGTH: Final = re.compile(
    r"Number of column in CSV header is not equal to number of fields in the schema.*?CSV file: (?P<file>[^\n]+)",
    re.DOTALL,
)
_CAUSED_BY: Final = re.compile(r"^\s*Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_NO_PARQUET: Final = ("is not a Parquet file", "footer is too large")
_PHYSICAL: Final = {
    "BINARY": "text",
    "BOOLEAN": "boolean",
    "INT32": "int",
    "INT64": "bigint",
    "INT96": "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
    "FIXED_LEN_BYTE_ARRAY": "bytes",
}
"""How Spark names what Parquet stores so."""

_UNRESOLVED: Final = ("unresolved dependency", "download failed", "not found in cache")
_MISSING: Final = "FileNotFoundException"
_REPLACED: Final = re.compile(f"{_MISSING}|RemoteFileChangedException|Status Code: 412|ConditionNotMet")
_QUERY_ENDED: Final = (
    ("kafka.common.errors.UnknownTopicOrPartitionException", "Kafka no longer has one of the topics"),
    ("OffsetOutOfRangeException", "Kafka has deleted records before they were read"),
    ("KAFKA_DATA_LOSS", "Kafka has deleted records before they were read"),
    ("kafka.common.errors.TimeoutException", "Kafka does not answer any more"),
)


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
        f"--conf spark.jars.packages=org.apache.hadoop:{package}:{hadoop_version()}"
    )


# -- single messages -----------------------------------------------------------------------------------------------


def says_missing(error: BaseException) -> bool:
    """Return whether Hadoop says that a file does not exist."""
    return _MISSING in str(error)


def says_replaced(error: BaseException) -> bool:
    """Return whether Hadoop says that a file was renamed, removed or replaced between its opening and its end."""
    return _REPLACED.search(str(error)) is not None


def says_nanoseconds(error: BaseException) -> bool:
    """Return whether Spark says that it does not read a Parquet column of times in nanoseconds."""
    return "TIMESTAMP(NANOS" in str(error)


def lacks_packages(error: BaseException) -> str | None:
    """Return why Spark's resolver (Ivy) could not fetch `spark.jars.packages`; None for any other error."""
    text = str(error)
    return text.rpartition("RuntimeException: ")[2] if any(sign in text for sign in _UNRESOLVED) else None


def lacks_format(spark: SparkSession, name: str) -> bool:
    """Return whether a session lacks a data source, such as `delta`. Runs no job."""
    try:
        _ = spark.read.format(name).load().schema
    except (PySparkException, Py4JError) as error:
        # Any other failure is the format's own, which misses a path: so it is there.
        return "DATA_SOURCE_NOT_FOUND" in str(error)
    return False


def why_a_query_ended(error: BaseException) -> str:
    """Return in one line why a streaming query failed, and what to do where that is known."""
    text = str(error)
    said = in_one_line(error).rpartition("terminated with exception: ")[2]
    if said == unread_file(text):
        return f"{said}; then the same command goes on"
    known = next((what for sign, what in _QUERY_ENDED if sign in text), None)
    return f"{known}: {said}" if known else said


def unread_file(text: str) -> str | None:
    """Return which file could not be read, why, and what mends it, from all that Spark said; None where it was no file.

    Spark's own first cause names a class of its own, and of several files not which.
    """
    header = _HEADER.search(text)
    if header is not None:
        return (
            f"{_plain(header['file'])} has other columns ({header['found']}) than the files before it "
            f"({header['expected']}): {_MEND}"
        )
    length = _LENGTH.search(text)
    if length is not None:
        return f"{_plain(length['file'])} has another number of columns than the files before it: {_MEND}"
    reading = _READING.search(text)
    if reading is None:
        return None
    file = _plain(reading["file"])
    if reading["column"] is not None:
        found = _PHYSICAL.get(reading["found"], reading["found"])
        return f"{file}: column {reading['column']!r} is {found} in it, expected {reading['expected']}: {_MEND}"
    if any(said in text for said in _NO_PARQUET):
        other = "" if file.endswith(".parquet") else "say what it is by --format, "
        return f"{file} is not a Parquet file, or not all of one: {other}{_MEND}"
    causes = _CAUSED_BY.findall(text)
    return f"{file} cannot be read{f' ({causes[-1].strip()})' if causes else ''}: {_MEND}"


_MEND: Final = "write it as the others, or take it away"


def _plain(uri: str) -> str:
    """Return the path of a local file as its user knows it, another's URI as it is."""
    return "/" + unquote(uri).removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri.strip()
