"""Resolve operations live, as they start and events come, by the rules of `docs/design-resolve.md`.

All public names of this package are in `abeyant`, too.

key_state  the events of one key so far, and the operations that watch it
operation  one operation: its watches and its countdown
instant    operations and events of one instant, checked
serving    events that serve one operation each
resolver   all operations and keys, on a timer
rules      the options of a call, and which exclude each other
calendar   business hours
"""

from abeyant.resolver.calendar import Calendar
from abeyant.resolver.instant import Instant
from abeyant.resolver.operation import Decided, Resolution, ResolutionOutcome, ResolverStats, Watch
from abeyant.resolver.resolver import Resolver, ResolverClosedError

__all__ = [
    "Calendar",
    "Decided",
    "Instant",
    "Resolution",
    "ResolutionOutcome",
    "Resolver",
    "ResolverClosedError",
    "ResolverStats",
    "Watch",
]
