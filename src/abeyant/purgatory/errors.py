"""What a purgatory refuses, each with its own name; all are `RuntimeError`, as a closed timer's refusal is."""

from __future__ import annotations


class PurgatoryError(RuntimeError):
    """The common ancestor: catch it for whatever a purgatory refuses."""


class PurgatoryClosedError(PurgatoryError):
    """Raised by a submission to a purgatory that is closed; the operation was not accepted (law P7)."""


class OperationReusedError(PurgatoryError):
    """Raised by the second submission of an operation: one object is one wait, in one purgatory."""
