"""Explain failures of Spark in one line. All texts of Spark, Hadoop and Java by which errors are recognized are here.

Such texts are not an interface, so docs/dependencies.md lists the versions in which each text was seen.
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
from abeyant.pipeline.spark.jvm import OUT_OF_MEMORY, jvm_exit
from abeyant.pipeline.spark.versions import hadoop_version

__all__ = [
    "explained",
    "in_one_line",
    "is_missing_file",
    "is_nanoseconds_error",
    "is_replaced_file",
    "lacks_format",
    "lacks_packages",
    "query_error",
    "silence_loggers",
]

_OURS: Final = re.compile(r"\babeyant\.[\w.]*Error: (.+)")
_NO_FILE_SYSTEM: Final = re.compile(
    r'Class org\.apache\.hadoop\.fs\.([\w.]+) not found|No FileSystem for scheme "([\w+.-]+)"'
)
_PACKAGES: Final = {"s3a": "hadoop-aws", "azurebfs": "hadoop-azure", "azure": "hadoop-azure", "gs": "hadoop-gcp"}
_FULL: Final = ("No space left on device", "Disk quota exceeded")
_PREAMBLE: Final = "An error occurred while calling "
"""The beginning of Py4J's message, before Java's."""

_COLON: Final = re.compile(r"Relative path in absolute URI: (.+)")
_PYTHON: Final = re.compile(r"^(\w*(?:Error|Exception): .+)$", re.MULTILINE)
"""The last line of a Python traceback."""


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
"""Spark's names of Parquet's physical types."""

_SHUT_DOWN: Final = re.compile(
    r"SparkContext was shut down|stopped SparkContext"
    r"|return value of \"org\.apache\.spark\.SparkContext\.\w+\(\)\" is null"
)
"""Matches the error of a job that ended because the session was stopped or the JVM is ending."""

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
    with silence_loggers():
        try:
            yield
        except (PySparkException, Py4JError, ConnectionError) as error:  # the last two also when the JVM is gone
            if isinstance(error, BrokenPipeError) and jvm_exit(0) is None:
                raise  # not the JVM's pipe: the reader of our output has gone
            line = in_one_line(error)
            ours = _OURS.findall(_text(error))[-1:] == [line]  # raised by our code in a worker: not a failure of Spark
            raise AbeyantError(line if ours else f"Spark failed: {line}") from error


@contextmanager
def silence_loggers() -> Iterator[None]:
    """Silence the JSON lines of Spark's loggers and Py4J's tracebacks: the exception that is raised says the same.

    If the JVM has ended, the loggers stay silent until this process ends, as Py4J's own threads still call the JVM.
    """
    # Created as Spark does it: the first to name a logger decides its class.
    loggers = [
        PySparkLogger.getLogger("SQLQueryContextLogger"),
        PySparkLogger.getLogger("DataFrameQueryContextLogger"),
        logging.getLogger("py4j.clientserver"),
    ]
    root = logging.getLogger()

    def not_py4js(record: logging.LogRecord) -> bool:
        return record.module != "java_gateway"  # other modules' records on the root logger pass

    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    root.addFilter(not_py4js)
    try:
        yield
    finally:
        if jvm_exit(0) is None:
            root.removeFilter(not_py4js)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def in_one_line(error: BaseException) -> str:
    """Return the most useful line about a failure of Spark.

    The first of these that applies: how the JVM ended; that memory or a disk was full; the package of a missing file
    system; a name with a colon; an `AbeyantError` of a worker or the driver; the file that cannot be read; the end of
    another Python traceback; Java's first cause; the first line.
    """
    text = _text(error)
    # A Java error of one line has lost its trace: the JVM was ending.
    has_trace = isinstance(error, Py4JJavaError) and "\n" in text.strip()
    if _SHUT_DOWN.search(text) or (isinstance(error, Py4JError | ConnectionError) and not has_trace):
        exit_reason = jvm_exit()
        if exit_reason is not None:
            return exit_reason
    if "java.lang.OutOfMemoryError" in text:
        return OUT_OF_MEMORY
    disk_error = next((phrase for phrase in _FULL if phrase in text), None)
    if disk_error is not None:
        return f"the disk is full, for the result or Spark's temporary files ({disk_error}): make room and start again"
    file_system = _NO_FILE_SYSTEM.search(text)
    if file_system is not None:
        return _package_of(file_system[1], file_system[2])
    colon = _COLON.search(text)
    if colon is not None:
        return f"Hadoop cannot read names or folders with a colon: {colon[1].strip()}: rename it, or move it elsewhere"
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and lines[0].startswith(_PREAMBLE):
        lines = [line.removeprefix(": ") for line in lines[1:]]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    unread = unread_file(text)
    candidates = (
        _OURS.findall(text)[-1:]
        or ([unread] if unread else [])
        or _PYTHON.findall(text)[-1:]
        or causes
        or lines
        or [type(error).__name__]
    )
    return candidates[0]


def _text(error: BaseException) -> str:
    """Return the text of an error; "" for a Java error whose JVM has ended, as Py4J fetches the text from the JVM."""
    try:
        return str(error)
    except (Py4JError, ConnectionError):
        return ""


def first_line(error: BaseException) -> str:
    """Return the first line of the JVM's error, without Py4J's preamble."""
    java = getattr(error, "java_exception", None)
    text = str(java if java is not None else error)
    return text.strip().split("\n")[0]


def _package_of(class_name: str | None, scheme: str | None) -> str:
    """Return a message that names the package with the file system of a missing class or an unknown scheme."""
    if scheme in ("s3", "s3n"):
        return f"Spark reads S3 as s3a://, not as {scheme}://"
    package = _PACKAGES.get(class_name.partition(".")[0] if class_name else scheme or "")
    subject = f"scheme {scheme}://" if class_name is None else f"class {class_name.rpartition('.')[2]}"
    if package is None:
        return f"this Spark has no file system for {subject}: add the jar that has one, as by --conf spark.jars=JAR"
    return (
        f"this Spark has no file system for {subject}: start it with "
        f"--conf spark.jars.packages=org.apache.hadoop:{package}:{hadoop_version()}"
    )


# -- single messages -----------------------------------------------------------------------------------------------


def is_missing_file(error: BaseException) -> bool:
    """Return whether Hadoop says that a file does not exist."""
    return _MISSING in str(error)


def is_replaced_file(error: BaseException) -> bool:
    """Return whether Hadoop says that a file was renamed, removed or replaced between its opening and its end."""
    return _REPLACED.search(str(error)) is not None


def is_nanoseconds_error(error: BaseException) -> bool:
    """Return whether Spark says that it cannot read a Parquet column of times in nanoseconds."""
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
        # Any other failure is the format's own, which lacks a path: so the format exists.
        return "DATA_SOURCE_NOT_FOUND" in str(error)
    return False


def query_error(error: BaseException) -> str:
    """Return in one line why a streaming query failed, and what to do about it if that is known."""
    text = str(error)
    message = in_one_line(error).rpartition("terminated with exception: ")[2]
    if message == unread_file(text):
        return f"{message}; then start the same command again"
    explanation = next((reason for sign, reason in _QUERY_ENDED if sign in text), None)
    return f"{explanation}: {message}" if explanation else message


def unread_file(text: str) -> str | None:
    """Return which file could not be read, why, and what to do; None if the failure is not about a file.

    Spark's own first cause names an internal class, and not the file.
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
        data_type = _PHYSICAL.get(reading["found"], reading["found"])
        return f"{file}: column {reading['column']!r} is {data_type} in it, expected {reading['expected']}: {_MEND}"
    if any(phrase in text for phrase in _NO_PARQUET):
        advice = "" if file.endswith(".parquet") else "name its format by --format, "
        return f"{file} is not a Parquet file, or is truncated: {advice}{_MEND}"
    causes = _CAUSED_BY.findall(text)
    return f"{file} cannot be read{f' ({causes[-1].strip()})' if causes else ''}: {_MEND}"


_MEND: Final = "write this file like the other files, or remove it"


def _plain(uri: str) -> str:
    """Return a local file's path without `file:`, another URI unchanged."""
    return "/" + unquote(uri).removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri.strip()
