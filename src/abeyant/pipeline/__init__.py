"""Delayed operations on Apache Spark: what waited, for what, how long, and what expired.

Needs the extra `spark` (`pip install '.[spark]'`) and a Java, which the extra `java` can bring. Spark is
imported only when one of the names below is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.lazy import lazy_names
from abeyant.pipeline.spark.extra import BRINGS

if TYPE_CHECKING:
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
    from abeyant.pipeline.request_log.tables import KafkaRequestLog, read_kafka_request_log
    from abeyant.pipeline.resolver.either import resolve
    from abeyant.pipeline.resolver.reading import read_result
    from abeyant.pipeline.resolver.streams import (
        BatchCounts,
        DeltaSink,
        IcebergSink,
        ParquetSink,
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
    from abeyant.pipeline.resolver.tables import invalid_events, invalid_operations
    from abeyant.pipeline.spark.java import find_java
    from abeyant.pipeline.spark.notebook import notebook_progress
    from abeyant.pipeline.spark.session import spark_session

__all__ = [
    "AnalysisResult",
    "BatchCounts",
    "Configuration",
    "DeltaSink",
    "IcebergSink",
    "KafkaRequestLog",
    "ParquetSink",
    "Plots",
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
    "AnalysisResult": "analysis.job",
    "BatchCounts": "resolver.streams",
    "Configuration": "replayer",
    "DeltaSink": "resolver.streams",
    "IcebergSink": "resolver.streams",
    "KafkaRequestLog": "request_log.tables",
    "ParquetSink": "resolver.streams",
    "Plots": "notebooks.plots",
    "StateError": "resolver.streams",
    "TableSink": "resolver.streams",
    "acks_all_produces": "replication.produces",
    "analyze": "analysis.job",
    "aside_of": "resolver.streams",
    "batch_counts": "resolver.streams",
    "by_key": "analysis",
    "compare_with_kafka": "replication.comparison",
    "end_of_input": "resolver.streams",
    "find_java": "spark.java",
    "grid": "replayer",
    "high_watermarks": "replication.high_watermarks",
    "incidents": "analysis",
    "invalid_events": "resolver.tables",
    "invalid_operations": "resolver.tables",
    "notebook_progress": "spark.notebook",
    "outcomes_of": "resolver.streams",
    "pending_over_time": "analysis",
    "pending_plot": "analysis",
    "plots": "notebooks.plots",
    "read_kafka_replication": "replication.facts",
    "read_kafka_request_log": "request_log.tables",
    "read_pending": "resolver.streams",
    "read_result": "resolver.reading",
    "rejected_rows_of": "resolver.streams",
    "replay": "replayer",
    "replay_pending": "replayer",
    "resolve": "resolver.either",
    "resolve_stream": "resolver.streams",
    "spark_session": "spark.session",
    "summary": "analysis",
    "timeout_curve": "analysis",
    "waits": "analysis",
    "what_if": "replayer.what_if",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES, "spark", BRINGS)
