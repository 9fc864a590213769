"""Start a Spark session for the pipeline: on a supported Java, in UTC, without logs, and only on loopback if local."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from abeyant.errors import AbeyantError
from abeyant.lazy import needs
from abeyant.pipeline.spark.archive import archive_options
from abeyant.pipeline.spark.java import JAVA_VARIABLES, Java, find_java
from abeyant.pipeline.spark.jvm import end_quietly, gateway_to_jvm, jvm_exit, last_error_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "BRIEF_COLLECTOR",
    "BRIEF_JAVA",
    "GENERATED",
    "INTERPRETED",
    "SHUFFLE_PARTITIONS",
    "adapts_partitions",
    "command_session",
    "default_partitions",
    "shuffle_partitions",
    "spark_session",
]

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"

# Options for jobs of a minute, where warming up costs more than it gains.
BRIEF_COLLECTOR: Final = "-XX:+UseSerialGC"
"""The garbage collector for jobs of a minute. Not in BRIEF_JAVA, as a JVM given two collectors does not start."""

# With the first compiler alone a JVM reserves 48 MB for compiled code. Spark fills that within minutes; then a task
# fails and Spark ends the JVM. Reserved memory is not used memory. The large metaspace avoids collections while Spark's
# classes are loaded.
BRIEF_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:MetaspaceSize=256m")
"""JVM options for jobs of a minute, besides the collector."""

INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings without generated code: to generate and compile it takes a seventh of a small command's processor time."""

GENERATED: Final = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Settings with generated code, Spark's default: to interpret costs 0.15 s more per megabyte of log."""

_LOG_OPTION: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
_CONNECT: Final = "sc://"
_TOKEN: Final = re.compile(r"(;token=)[^;]*")
_LOCAL = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,\d+)?\])?$")

# A local batch job gains from throughput, not from short pauses.
_LOCAL_COLLECTOR: Final = "-XX:+UseParallelGC"
_UNGUARDED: Final = "-Dio.netty.noUnsafe=false"

_NAMES_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")

# Settings that results depend on: the zone of timestamps without one, and Arrow for columns.
_MEANING: Final = {"spark.sql.session.timeZone": "UTC", "spark.sql.execution.arrow.pyspark.enabled": "true"}

# For its web page Spark keeps the plans of 1,000 executions, and 1,000 jobs and stages with their tasks. A stream's
# batch adds two plans of 0.1 MB and 0.05 MB of tasks. Running ones are kept in any case.
_NO_PAGE: Final = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
}

_CONTAINER_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),  # cgroup v2
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # v1
)

# Least and greatest driver memory of a local Spark, by default a quarter of the machine's: enough to analyze a log.
_LOCAL_MEMORY_MB: Final = (1024, 4096)


def spark_session(
    master: str = "local[*]",
    app_name: str = "abeyant",
    *,
    brief: bool = False,
    config: Mapping[str, str] | None = None,
    for_command: bool = False,
) -> SparkSession:
    """Return the active Spark session, or start one on `master`.

    Finds a Java (`NoJavaError` if there is none), makes the workers run this interpreter, sets the session's time zone
    to UTC, and keeps Spark's log off the terminal. `brief` is for jobs of seconds: a local Spark then spends little on
    compiling and optimizing. `config` adds to these settings or overrides them. With `for_command` a class archive may
    be written when the process ends, so that the next command starts faster (see `archive`).

    PySpark keeps one JVM, so the first session of a process decides its Java, memory and JVM options. `spark-submit`
    decides master, Java, Python and settings of a program that it runs. With `sc://HOST:PORT` the session is on that
    Spark Connect server, which decides all of these except `config`. Raises `AbeyantError` with Spark's last message if
    Spark does not start.
    """
    config = config or {}
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise needs("a Spark session", {"spark": ["pyspark"]}) from error

    exit_reason = jvm_exit(0)
    if exit_reason is not None:
        raise AbeyantError(f"this process cannot start another Spark session: {exit_reason}; start a new process")
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _with_our_meaning(SparkSession.builder)
    if master.startswith(_CONNECT):
        return _connected(master, config)
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    # Workers must run this Python: by default they run the first python3 on the PATH. On a cluster its path may
    # differ, and the user sets PYSPARK_PYTHON.
    if _LOCAL.match(master) or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = _java_options(java, config, brief=brief, write=for_command) if _LOCAL.match(master) else []
    settings = _settings(master, app_name, options, brief=brief, config=config)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    try:
        end_quietly(SparkContext(conf=conf, gateway=gateway_to_jvm(conf, silent=for_command)))
    except (PySparkRuntimeError, OSError) as error:
        raise AbeyantError(f"Spark did not start on {java}: {last_error_line() or error}") from error
    except Exception as error:
        from abeyant.pipeline.spark.errors import first_line

        raise AbeyantError(f"Spark did not start with master {master!r}: {first_line(error)}") from error
    return SparkSession.builder.getOrCreate()


command_session: Final = partial(spark_session, for_command=True)


def _connected(url: str, config: Mapping[str, str]) -> SparkSession:
    """Return a session of the Spark Connect server at `url`, which has its own Java, memory and Python."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return _with_our_meaning(SparkSession.builder.remote(url).config(map=dict(config)))
    except ImportError as error:  # PySpark's own, which lists all missing packages
        raise AbeyantError(f"Spark Connect needs more: pip install 'pyspark[connect]' ({error})") from error
    except PySparkException as error:
        from abeyant.pipeline.spark.errors import first_line

        masked_url = _TOKEN.sub(r"\1(hidden)", url)
        raise AbeyantError(f"no Spark Connect server answers at {masked_url}: {first_line(error)}") from error


def _with_our_meaning(builder: SparkSession.Builder) -> SparkSession:
    """Return the builder's session with the settings that our results depend on."""
    spark = builder.getOrCreate()
    for name, value in _MEANING.items():
        spark.conf.set(name, value)
    return spark


def shuffle_partitions(spark: SparkSession) -> int:
    """Return the number of partitions of a shuffle in this session."""
    return int(spark.conf.get(SHUFFLE_PARTITIONS) or 200)


def default_partitions(spark: SparkSession) -> int | None:
    """Return the shuffle partitions that `spark_session` would set for this local master; None on a cluster."""
    local = _LOCAL.match(spark.conf.get("spark.master", None) or "")
    return max(2 * _cores(local["cores"]), 4) if local else None


def adapts_partitions(spark: SparkSession) -> bool:
    """Return whether this session coalesces small shuffle partitions itself."""
    names = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
    return all(spark.conf.get(name) == "true" for name in names)


def _settings(
    master: str, app_name: str, java_options: list[str], *, brief: bool, config: Mapping[str, str]
) -> dict[str, str]:
    """Return all settings of a new session; `config` overrides the others."""
    local = _LOCAL.match(master)
    settings = {
        "spark.master": master,
        "spark.app.name": app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": " ".join([_LOG_OPTION, *java_options]),
        **_MEANING,
        # With a byte limit Spark measures each Arrow batch after every row, which takes as long as writing it. So limit
        # the rows instead.
        "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
        # Debugging costs a call into the JVM for every column expression.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
        # The default, INT96, is deprecated in Parquet, and slow to write and read.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    if config.get("spark.ui.enabled", "false").lower() != "true":
        settings |= _NO_PAGE
    return settings | (_local_settings(local["cores"], brief=brief) if local else {}) | dict(config)


def _cores(text: str | None) -> int:
    """Return the number of cores of a local master; `local` alone is 1."""
    return (os.cpu_count() or 1) if text == "*" else int(text or 1)


def _local_settings(text: str | None, *, brief: bool) -> dict[str, str]:
    cores = _cores(text)
    settings = {
        # Spark's default of 200 makes 200 tasks a shuffle even for a log of one megabyte.
        SHUFFLE_PARTITIONS: str(max(2 * cores, 4)),
        # Loopback only: a local run opens no port to the network, and needs no host name that resolves.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_local_memory_mb()}m",
        # After a pause of two minutes (a laptop's sleep) Spark takes its own executor for dead. It cannot replace it in
        # the same JVM, and ends itself minutes later with status 56.
        "spark.storage.blockManagerHeartbeatTimeoutMs": "365d",
    }
    if brief:
        # For a few megabytes, half of Spark's time would go into compilation and adaptive planning.
        settings |= {SHUFFLE_PARTITIONS: str(cores), "spark.sql.adaptive.enabled": "false", **INTERPRETED}
    return settings


def _java_options(java: Java, config: Mapping[str, str], *, brief: bool, write: bool) -> list[str]:
    """Return a local JVM's options: compiler, class archive, and a garbage collector unless the user named one.

    A JVM with options for two collectors does not start.
    """
    from abeyant.pipeline.spark.versions import needs_netty_unsafe, spark_home

    flags = [os.environ.get(name, "") for name in JAVA_VARIABLES] + [config.get("spark.driver.defaultJavaOptions", "")]
    options = list(BRIEF_JAVA) if brief else []
    if needs_netty_unsafe(java.version):
        options.append(_UNGUARDED)
    if not _NAMES_COLLECTOR.search(" ".join(flags)):
        options.append(BRIEF_COLLECTOR if brief else _LOCAL_COLLECTOR)
    return options + archive_options(java, spark_home() / "jars", " ".join(flags), write=write)


def _local_memory_mb() -> int:
    smallest, largest = _LOCAL_MEMORY_MB
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError):
        return smallest
    # A container may have less than the machine.
    for limit in _CONTAINER_LIMITS:
        with suppress(ValueError, OSError):  # "max", or no container
            sizes.append(int(limit.read_text()))
    return min(max((min(sizes) >> 20) // 4, smallest), largest)
