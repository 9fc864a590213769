"""Errors of a simulation: a program does what cannot be controlled, or runs for ever without waiting."""

from __future__ import annotations

from abeyant.errors import AbeyantError


class SimulationError(AbeyantError):
    """A program did what a simulation cannot control, or an argument is invalid. The message says what to do."""


class SpinningError(SimulationError):
    """A program runs for ever without waiting. The message names the running tasks."""
