"""Complete or expire on Structured Streaming: a shard is a purgatory (laws O1-O4 within the stated lateness)."""

from abeyance.pipeline.streaming.end import end_of_input
from abeyance.pipeline.streaming.parquet_sink import ParquetSink
from abeyance.pipeline.streaming.pending import PENDING_WATCHES, read_pending
from abeyance.pipeline.streaming.plan import ANSWERS, ASIDE, aside_of, outcomes_of, resolve_stream
from abeyance.pipeline.streaming.progress import BatchCounts, batch_counts
from abeyance.pipeline.streaming.state import StateError
from abeyance.pipeline.streaming.table_sink import TableSink

__all__ = [
    "ANSWERS",
    "ASIDE",
    "PENDING_WATCHES",
    "BatchCounts",
    "ParquetSink",
    "StateError",
    "TableSink",
    "aside_of",
    "batch_counts",
    "end_of_input",
    "outcomes_of",
    "read_pending",
    "resolve_stream",
]
