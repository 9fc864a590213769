"""A purgatory's errors; all are `RuntimeError`, as `TimerClosedError` is."""

from __future__ import annotations


class PurgatoryError(RuntimeError):
    """The base of all errors of a purgatory."""


class PurgatoryClosedError(PurgatoryError):
    """Raised by a submission to a purgatory that is closed; the operation was not accepted (law P7)."""


class OperationReusedError(PurgatoryError):
    """Raised by the second submission of an operation: one object is one wait, in one purgatory."""
