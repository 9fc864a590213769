"""Which pyarrow the stateful streams of a PySpark work with."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.connect import is_connect

__all__ = ["check_arrow", "works_with"]

_FIRST: Final = (4, 1, 0)
_MENDED: Final = (4, 1, 4)
_STRICT_ARROW: Final = 26
"""From this one on, pyarrow takes no float for a number of rows: what these PySparks give it for those of a state."""


def check_arrow(spark: SparkSession) -> None:
    """Raise `AbeyantError` for a PySpark and a pyarrow with which no batch of a stream would end.

    On Spark Connect it is the server's pyarrow that counts, which cannot be asked for.
    """
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
