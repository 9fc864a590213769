"""The errors of a purgatory. Each is a `RuntimeError`, like `TimerClosedError`, and an `AbeyantError`."""

from __future__ import annotations

from abeyant.errors import AbeyantError


class PurgatoryError(AbeyantError, RuntimeError):
    """The base class of all errors of a purgatory."""


class PurgatoryClosedError(PurgatoryError):
    """Raised by a submission to a purgatory that is closed; the operation was not accepted (law P7)."""


class OperationReusedError(PurgatoryError):
    """Raised by the second submission of an operation: one object is one wait, in one purgatory."""
