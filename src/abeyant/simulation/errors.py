"""Errors of a simulation: a program that it cannot control, and one that spins."""

from __future__ import annotations

from abeyant.errors import AbeyantError


class SimulationError(AbeyantError):
    """A program did something that a simulation cannot control. The message names it, and what to do instead."""


class SpinningError(SimulationError):
    """A program runs for ever without waiting. The message names the running tasks."""
