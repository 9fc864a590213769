"""Complete or expire, live: the words of `docs/design-resolve.md` for operations and events as they come.

line       what came for one key, and who waits there
operation  one operation: its watches and its countdown
instant    what is fed at one instant
resolver   all of them, on a timer
words      the words, and what does not go together
calendar   business time
"""

from abeyant.resolver.calendar import Calendar
from abeyant.resolver.operation import Decided, Resolution, Watch
from abeyant.resolver.resolver import Resolver, ResolverClosedError

__all__ = ["Calendar", "Decided", "Resolution", "Resolver", "ResolverClosedError", "Watch"]
