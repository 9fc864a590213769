"""Explanations of prediction errors, and the bins in which errors are counted. Without Spark, for reports."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BIN_MS",
    "CLOCK",
    "CLOCK_MS",
    "EDGE_MS",
    "EXPIRY",
    "HANDLING",
    "IN_SYNC",
    "LOG_ENDS",
    "OUTCOME",
    "UNEXPLAINED",
]

CLOCK: Final = "within the log's clock"
EXPIRY: Final = "expired early or late"
HANDLING: Final = "while the fetch was handled"
IN_SYNC: Final = "a change of the replicas in sync"
LOG_ENDS: Final = "the log ends first"
OUTCOME: Final = "another outcome"
UNEXPLAINED: Final = "unexplained"

CLOCK_MS: Final = 1.0
"""Resolution of the log's clock, in ms: the difference of two logged times may be wrong by this much."""

BIN_MS: Final = 0.25
EDGE_MS: Final = 5.0
"""Errors of more than this many ms, in either direction, are counted in the outermost bins."""
