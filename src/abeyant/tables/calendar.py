"""Business time: the calendar of `abeyant.Resolver`, which has whole columns too."""

from abeyant.resolver.calendar import Calendar

__all__ = ["Calendar"]
