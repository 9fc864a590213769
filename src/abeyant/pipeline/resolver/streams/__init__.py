"""Resolve operations on Structured Streaming: each shard is a purgatory (laws O1-O4 within the given lateness)."""

from abeyant.pipeline.resolver.rejected import REJECTED_ROWS, rejected_rows_of
from abeyant.pipeline.resolver.streams.end import end_of_input
from abeyant.pipeline.resolver.streams.lake_sinks import DeltaSink, IcebergSink
from abeyant.pipeline.resolver.streams.parquet_sink import ParquetSink
from abeyant.pipeline.resolver.streams.pending import PENDING_WATCHES, read_pending
from abeyant.pipeline.resolver.streams.plan import ANSWERS, outcomes_of, resolve_stream
from abeyant.pipeline.resolver.streams.progress import BatchCounts, batch_counts
from abeyant.pipeline.resolver.streams.sqlite_sink import SQLiteSink
from abeyant.pipeline.resolver.streams.state import StateError

__all__ = [
    "ANSWERS",
    "ASIDE",
    "PENDING_WATCHES",
    "REJECTED_ROWS",
    "BatchCounts",
    "DeltaSink",
    "IcebergSink",
    "ParquetSink",
    "SQLiteSink",
    "StateError",
    "TableSink",
    "aside_of",
    "batch_counts",
    "end_of_input",
    "outcomes_of",
    "read_pending",
    "rejected_rows_of",
    "resolve_stream",
]

# Their former names
ASIDE = REJECTED_ROWS
TableSink = SQLiteSink
aside_of = rejected_rows_of
