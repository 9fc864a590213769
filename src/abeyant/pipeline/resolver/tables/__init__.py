"""Resolve whole tables: one outcome for each operation, by its events (laws O1-O4)."""

from abeyant.pipeline.resolver.tables.batch import resolve
from abeyant.pipeline.resolver.tables.validity import (
    invalid_events,
    invalid_operations,
    rejected_events,
    rejected_operations,
)

__all__ = ["invalid_events", "invalid_operations", "rejected_events", "rejected_operations", "resolve"]
