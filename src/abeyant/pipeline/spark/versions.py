"""Check the versions of Spark, Java and pyarrow. All that the pipeline does differently by version is decided here."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect

__all__ = [
    "check_arrow",
    "hadoop_version",
    "installed_spark",
    "minor_of",
    "needs_netty_unsafe",
    "spark_home",
    "versions_of",
    "works_with",
]

_FIRST: Final = (4, 1, 0)
_MENDED: Final = (4, 1, 4)
_STRICT_ARROW: Final = 26
"""pyarrow >= 26 rejects the float row count that PySpark from `_FIRST` to before `_MENDED` passes with states."""

_GUARDED_JAVA, _NETTY_TOLD = 24, (4, 2)
"""From Java 24 on, Netty needs an option to allow a class that Arrow's memory uses; Spark >= 4.2 sets it."""


def installed_spark() -> str:
    """Return the version of the installed PySpark."""
    return str(pyspark.__version__)


def minor_of(spark: SparkSession) -> str:
    """Return the minor version of a session's Spark, such as `4.1`."""
    return ".".join(spark.version.split(".")[:2])


def versions_of(spark: SparkSession) -> dict[str, str]:
    """Return the versions of abeyant, Spark and Python, for a result's marker."""
    from abeyant import __version__

    return {"abeyant": __version__, "spark": spark.version, "python": platform.python_version()}


def spark_home() -> Path:
    """Return the folder of the Spark installation that PySpark runs."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def hadoop_version() -> str:
    """Return the version of Hadoop in this Spark, or the placeholder "VERSION" if no jar shows it."""
    found = next((spark_home() / "jars").glob("hadoop-client-api-*.jar"), None)
    return found.stem.removeprefix("hadoop-client-api-") if found is not None else "VERSION"


def needs_netty_unsafe(java: int) -> bool:
    """Return whether this Spark on this Java needs an option to let Netty use `sun.misc.Unsafe`."""
    return java >= _GUARDED_JAVA and _numbers(installed_spark())[:2] < _NETTY_TOLD


def check_arrow(spark: SparkSession) -> None:
    """Raise `AbeyantError` for a pair of PySpark and pyarrow with which every batch of a stream fails.

    On Spark Connect nothing is checked: the server's pyarrow counts, and a client cannot see its version.
    """
    import pyarrow as pa

    if not is_connect(spark) and not works_with(spark.version, pa.__version__):
        raise AbeyantError(
            f"streams on PySpark {spark.version} need a pyarrow below {_STRICT_ARROW}, and this is {pa.__version__}: "
            f"pip install 'pyarrow<{_STRICT_ARROW}', or 'pyspark>={'.'.join(map(str, _MENDED))}'"
        )


def works_with(spark: str, arrow: str) -> bool:
    """Return whether streams on this PySpark work with this pyarrow."""
    return not _FIRST <= _numbers(spark) < _MENDED or _numbers(arrow)[0] < _STRICT_ARROW


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
