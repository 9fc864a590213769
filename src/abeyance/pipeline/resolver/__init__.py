"""Complete or expire, as a Spark operator: operations and events in, one outcome an operation out (laws O1-O4)."""

from abeyance.pipeline.resolver.batch import resolve
from abeyance.pipeline.resolver.validity import invalid_events, invalid_operations

__all__ = ["invalid_events", "invalid_operations", "resolve"]
