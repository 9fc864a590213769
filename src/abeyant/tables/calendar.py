"""Business hours: the calendar of `abeyant.Resolver`, which also computes whole columns."""

from abeyant.resolver.calendar import Calendar

__all__ = ["Calendar"]
