"""The engine: pure data structures in which time is an argument. No thread, no clock, no I/O, no lock."""

from abeyant.engine import wheel as _wheel
from abeyant.engine.wheel import MAX_TIME, Bucket, TimingWheel, WheelStats

__all__ = ["MAX_TIME", "Bucket", "TimingWheel", "WheelStats", "is_compiled"]


def is_compiled() -> bool:
    """Return whether the engine runs as compiled code (True) or as interpreted Python of the same source (False)."""
    return not _wheel.__file__.endswith(".py")
