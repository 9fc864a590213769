"""Cells on a virtual clock: a table of parameters that Spark distributes, and a table of measures that comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lab.experiment import Cell, Measure
from lab.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEASURED: Final = "number long, metric string, value double, unit string"
_CELLS_A_TASK: Final = 4


def measure_on_spark(spark: SparkSession, cells: Sequence[Cell]) -> list[tuple[Cell, list[Measure]]]:
    """Measure cells, as many at a time as Spark has cores; returns them in their order."""
    table = pa.Table.from_pylist([{"number": number, **cell._asdict()} for number, cell in enumerate(cells)])
    tasks = max(1, -(-len(cells) // _CELLS_A_TASK))
    came = spark.createDataFrame(table).repartition(tasks).mapInArrow(_measure, _MEASURED).toArrow()
    measures: list[list[Measure]] = [[] for _ in cells]
    for row in came.to_pylist():
        measures[row["number"]].append(Measure(row["metric"], row["value"], row["unit"]))
    return list(zip(cells, measures, strict=True))


def _measure(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its cells."""
    for batch in batches:
        for row in batch.to_pylist():
            cell = Cell(row["experiment"], row["design"], row["parameters"])
            measures = EXPERIMENTS[cell.experiment].measure(cell.design, cell.choices())
            yield pa.RecordBatch.from_pylist(
                [{"number": row["number"], **measure._asdict()} for measure in measures],
                schema=pa.schema(
                    [("number", pa.int64()), ("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
                ),
            )
