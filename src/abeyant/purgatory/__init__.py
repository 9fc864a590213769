"""The purgatory: operations that complete when their condition holds, or expire at their deadline."""

from abeyant.purgatory.errors import OperationReusedError, PurgatoryClosedError, PurgatoryError
from abeyant.purgatory.operation import DelayedOperation, Outcome
from abeyant.purgatory.purgatory import Purgatory
from abeyant.purgatory.room import PurgatoryStats

__all__ = [
    "DelayedOperation",
    "OperationReusedError",
    "Outcome",
    "Purgatory",
    "PurgatoryClosedError",
    "PurgatoryError",
    "PurgatoryStats",
]
