"""Our schemas in Arrow, beside PySpark's own private function in the version that is here."""

from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StructType

from abeyance.pipeline import schemas
from abeyance.pipeline.spark.arrow import arrow_schema

OURS = {name: value for name, value in vars(schemas).items() if isinstance(value, StructType)}


@pytest.mark.parametrize("name", OURS)
def test_every_table_of_ours_is_as_pyspark_has_it(name: str) -> None:
    assert arrow_schema(OURS[name]) == to_arrow_schema(OURS[name], timezone="UTC")


def test_another_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="no Arrow type for binary"):
        arrow_schema(StructType().add("bytes", BinaryType()))
