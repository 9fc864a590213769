"""Show outcomes below a notebook cell, as a page with the tables and plots of `abeyant resolve`'s report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from abeyant.pages.formatting import duration, escaped, percent
from abeyant.pipeline.notebooks.in_process import count_expired_keys, count_waits
from abeyant.pipeline.report.outcome_page import inline_page
from abeyant.pipeline.report.outcomes import Outcomes, named, ranked

__all__ = ["Plots", "plots"]


def plots(outcomes: Any, operations: Any = None) -> Plots:
    """Return outcomes of operations for a notebook to draw: how they ended by kind, and how long they waited.

    `outcomes` is a result of `pipeline.resolve` or `abeyant.tables.resolve`, or such a result read from a file: a Spark
    DataFrame, a table with an Arrow interface (pandas, Polars, DuckDB, pyarrow), or the path of a Parquet file or
    folder. If `operations` are given too, in one of these forms, the page shows the keys on which most expired.

    Spark counts the outcomes of a DataFrame in one job, and the keys in a second job: persist outcomes that are
    expensive to resolve twice. Only counts are collected, never rows. Percentiles are at most 0.5 % too long.

    Raises `SchemaError` for a table without the columns needed; `AbeyantError` for a stream, and for more than
    some hundred thousand different kinds; TypeError for an object that is not a table.
    """
    if _is_dataframe(outcomes):
        from abeyant.pipeline.notebooks import on_spark

        return Plots(on_spark.look(outcomes, operations))
    if _is_dataframe(operations):
        raise TypeError("operations are a Spark DataFrame, but outcomes are not: pass both in the same form")
    if operations is None:
        return Plots(Outcomes(waits=named(count_waits(outcomes)), keys=None, rejected={}, made={}))
    if isinstance(outcomes, pa.RecordBatchReader):  # which can be read once
        outcomes = outcomes.read_all()
    keys = ranked(count_expired_keys(outcomes, operations))
    return Plots(Outcomes(waits=named(count_waits(outcomes)), keys=keys, rejected={}, made={}))


class Plots:
    """Outcomes of operations, displayed as a page when they are the last value of a notebook cell."""

    def __init__(self, outcomes: Outcomes) -> None:
        """Called by `plots`, not by users."""
        self._found = outcomes

    @property
    def summary(self) -> pd.DataFrame:
        """Return the page's table, a row for each kind: counts, and percentiles in milliseconds."""
        return self._found.summary.drop(columns=["instance", "unknown"])

    def _repr_html_(self) -> str:
        page = inline_page(self._found, kicker="what completed in time, and what expired")
        # A frame keeps the notebook's styles and ours apart. Our script sets its height to that of its content.
        quoted = page.replace("&", "&amp;").replace('"', "&quot;")
        style = "display:block;width:100%;height:40rem;border:0"
        return f'<iframe srcdoc="{quoted}" title="{escaped(self._found.title)}" style="{style}"></iframe>'

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __repr__(self) -> str:
        rows = self.summary
        for name in rows.columns:
            show = percent if name.endswith("share") else duration if name.endswith("_ms") else None
            if show is not None:
                rows[name] = rows[name].map(show)
        return f"{self._found.title}\n{rows.to_string(index=False)}" if len(rows) else self._found.title


def _is_dataframe(table: Any) -> bool:
    """Return whether `table` is a Spark DataFrame, without importing Spark. In Spark 4.3 it has an Arrow interface."""
    spark: Any = sys.modules.get("pyspark.sql")
    return spark is not None and isinstance(table, spark.DataFrame)
