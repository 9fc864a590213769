"""Raised where only Spark gives the same result."""

from __future__ import annotations

__all__ = ["NeedsSparkError"]


class NeedsSparkError(Exception):
    """What was asked needs Spark; the message says why, as part of a sentence."""
