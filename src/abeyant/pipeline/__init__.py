"""Delayed operations on Apache Spark: analyze, resolve and replay them.

Needs the extra `spark` (`pip install '.[spark]'`) and a Java runtime, which the extra `java` can bring. Spark is
imported only when one of the names below is first used. Arguments and columns in milliseconds are named `..._ms`; other
times are seconds, or timedelta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.lazy import lazy_names
from abeyant.pipeline.spark.extra import BRINGS

if TYPE_CHECKING:
    from abeyant.errors import RejectedRowsWarning, SchemaError
    from abeyant.pipeline.analysis import (
        by_key,
        incidents,
        pending_over_time,
        pending_plot,
        summary,
        timeout_curve,
        waits,
    )
    from abeyant.pipeline.analysis.job import AnalysisResult, analyze
    from abeyant.pipeline.notebooks.plots import Plots, plots
    from abeyant.pipeline.replayer import Configuration, grid, replay, replay_pending
    from abeyant.pipeline.replayer.what_if import what_if
    from abeyant.pipeline.replication.comparison import compare_with_kafka
    from abeyant.pipeline.replication.facts import read_kafka_replication
    from abeyant.pipeline.replication.high_watermarks import high_watermarks
    from abeyant.pipeline.replication.produces import acks_all_produces
    from abeyant.pipeline.report.analysis import ReportError
    from abeyant.pipeline.request_log.tables import KafkaRequestLog, read_kafka_request_log
    from abeyant.pipeline.resolver.either import resolve
    from abeyant.pipeline.resolver.reading import read_result
    from abeyant.pipeline.resolver.streams import (
        BatchCounts,
        DeltaSink,
        IcebergSink,
        ParquetSink,
        SQLiteSink,
        StateError,
        TableSink,
        aside_of,
        batch_counts,
        end_of_input,
        outcomes_of,
        read_pending,
        rejected_rows_of,
        resolve_stream,
    )
    from abeyant.pipeline.resolver.tables import (
        invalid_events,
        invalid_operations,
        rejected_events,
        rejected_operations,
    )
    from abeyant.pipeline.spark.java import Java, NoJavaError, find_java
    from abeyant.pipeline.spark.notebook import notebook_progress
    from abeyant.pipeline.spark.session import spark_session
    from abeyant.tables.calendar import Calendar

__all__ = [
    "AnalysisResult",
    "BatchCounts",
    "Calendar",
    "Configuration",
    "DeltaSink",
    "IcebergSink",
    "Java",
    "KafkaRequestLog",
    "NoJavaError",
    "ParquetSink",
    "Plots",
    "RejectedRowsWarning",
    "ReportError",
    "SQLiteSink",
    "SchemaError",
    "StateError",
    "TableSink",
    "acks_all_produces",
    "analyze",
    "aside_of",
    "batch_counts",
    "by_key",
    "compare_with_kafka",
    "end_of_input",
    "find_java",
    "grid",
    "high_watermarks",
    "incidents",
    "invalid_events",
    "invalid_operations",
    "notebook_progress",
    "outcomes_of",
    "pending_over_time",
    "pending_plot",
    "plots",
    "read_kafka_replication",
    "read_kafka_request_log",
    "read_pending",
    "read_result",
    "rejected_events",
    "rejected_operations",
    "rejected_rows_of",
    "replay",
    "replay_pending",
    "resolve",
    "resolve_stream",
    "spark_session",
    "summary",
    "timeout_curve",
    "waits",
    "what_if",
]

_HOMES: Final = {
    "analysis": "by_key incidents pending_over_time pending_plot summary timeout_curve waits",
    "analysis.job": "AnalysisResult analyze",
    "notebooks.plots": "Plots plots",
    "replayer": "Configuration grid replay replay_pending",
    "replayer.what_if": "what_if",
    "replication.comparison": "compare_with_kafka",
    "replication.facts": "read_kafka_replication",
    "replication.high_watermarks": "high_watermarks",
    "replication.produces": "acks_all_produces",
    "request_log.tables": "KafkaRequestLog read_kafka_request_log",
    "report.analysis": "ReportError",
    "resolver.either": "Calendar resolve",
    "resolver.reading": "read_result",
    "resolver.streams": (
        "BatchCounts DeltaSink IcebergSink ParquetSink SQLiteSink StateError TableSink aside_of "
        "batch_counts end_of_input outcomes_of read_pending rejected_rows_of resolve_stream"
    ),
    "resolver.tables": "invalid_events invalid_operations rejected_events rejected_operations",
    "schemas": "RejectedRowsWarning SchemaError",
    "spark.java": "Java NoJavaError find_java",
    "spark.notebook": "notebook_progress",
    "spark.session": "spark_session",
}

_NAMES: Final = {name: home for home, names in _HOMES.items() for name in names.split()}

__getattr__, __dir__ = lazy_names(__name__, _NAMES, "spark", BRINGS)
