"""A PySpark for which both formats exist, and their jars: fetched once, pip's by pip and Maven's by Maven."""

from __future__ import annotations

import os
from pathlib import Path

import abeyant
from object_store.buckets import MissingError
from object_store.gateway import jars
from scripts.test_spark_versions import prepare

__all__ = ["POM", "SPARK", "MissingError", "environment", "fetched", "settings"]

SPARK = "4.1.4"
POM = Path(__file__).with_name("pom.xml")
SOURCE = Path(abeyant.__file__).parents[1]


def fetched() -> tuple[Path, ...]:
    """The jars of both formats. Raises `MissingError` where they cannot be had."""
    return jars(POM, exclude="")


def environment() -> dict[str, str]:
    """What a process needs to run on that PySpark. Raises `MissingError` where it cannot be had."""
    try:
        folder = prepare(SPARK)
    except RuntimeError as error:
        raise MissingError(str(error)) from error
    path = [folder, str(Path(__file__).parents[1]), str(SOURCE)]
    # Not one archive of classes (180 MB) for another Spark in the user's cache.
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "ABEYANT_CLASS_ARCHIVE": "off"}
    found.pop("SPARK_HOME", None)
    return found


def settings(home: Path) -> dict[str, str]:
    """A session's, with Delta tables in the session's own catalog and Iceberg's in `lake`, all of them below `home`."""
    return {
        "spark.jars": ",".join(map(str, fetched())),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(home / "lake"),
        "spark.sql.shuffle.partitions": "2",
    }
