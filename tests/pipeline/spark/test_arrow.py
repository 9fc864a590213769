"""Our schemas in Arrow, beside what PySpark makes of them in the version that is here."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructType

from abeyant.pipeline import schemas
from abeyant.pipeline.spark.arrow import arrow_schema

OURS = {name: value for name, value in vars(schemas).items() if isinstance(value, StructType)}


def test_every_table_of_ours_is_as_pyspark_has_it(spark: SparkSession) -> None:
    every = StructType()
    for name, table in OURS.items():
        every = every.add(name, table)
    assert len(OURS) > 10
    assert arrow_schema(every) == spark.createDataFrame([], every).toArrow().schema


def test_another_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="no Arrow type for binary"):
        arrow_schema(StructType().add("bytes", BinaryType()))
