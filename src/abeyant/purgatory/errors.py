"""A purgatory's errors; all are `RuntimeError`, as `TimerClosedError` is, and `AbeyantError`."""

from __future__ import annotations

from abeyant.errors import AbeyantError


class PurgatoryError(AbeyantError, RuntimeError):
    """The base of all errors of a purgatory."""


class PurgatoryClosedError(PurgatoryError):
    """Raised by a submission to a purgatory that is closed; the operation was not accepted (law P7)."""


class OperationReusedError(PurgatoryError):
    """Raised by the second submission of an operation: one object is one wait, in one purgatory."""
