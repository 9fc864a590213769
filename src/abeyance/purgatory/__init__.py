"""The purgatory: operations that complete when their condition holds, or expire when their time is over."""

from abeyance.purgatory.errors import OperationReusedError, PurgatoryClosedError, PurgatoryError
from abeyance.purgatory.operation import DelayedOperation, Outcome
from abeyance.purgatory.purgatory import Purgatory
from abeyance.purgatory.room import PurgatoryStats

__all__ = [
    "DelayedOperation",
    "OperationReusedError",
    "Outcome",
    "Purgatory",
    "PurgatoryClosedError",
    "PurgatoryError",
    "PurgatoryStats",
]
