"""The calendar of business hours of `abeyant.Resolver`, which also takes whole columns of times."""

from abeyant.resolver.calendar import Calendar

__all__ = ["Calendar"]
