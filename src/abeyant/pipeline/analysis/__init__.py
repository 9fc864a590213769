"""Analyses of operations: waits, outcomes, keys and incidents. Each takes a DataFrame and returns a DataFrame.

All analyses are exact. They compute with Arrow columns in Spark's Python workers: each task counts its own operations,
Spark shuffles the counts, and a task gets all counts of a group (`columns`, `shards`, `ranked`).
"""

from abeyant.pipeline.analysis.incidents import incidents
from abeyant.pipeline.analysis.keys import by_key
from abeyant.pipeline.analysis.pending import pending_over_time, pending_plot
from abeyant.pipeline.analysis.summary import summary, waits
from abeyant.pipeline.analysis.timeout_curve import timeout_curve

__all__ = ["by_key", "incidents", "pending_over_time", "pending_plot", "summary", "timeout_curve", "waits"]
