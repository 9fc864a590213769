"""What a simulation raises: a program that it cannot control, and one that spins."""

from __future__ import annotations

from abeyant.errors import AbeyantError


class SimulationError(AbeyantError):
    """A program did something that a simulation has no control over. The message names it, and what to do instead."""


class SpinningError(SimulationError):
    """A program runs on and on while no time passes. The message names the tasks that run."""
