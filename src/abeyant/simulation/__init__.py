"""Seeded simulation of asyncio programs: a seed determines all timing and randomness, so a run can be repeated.

    >>> import asyncio
    >>> from abeyant import simulation
    >>> async def main():
    ...     server = simulation.current().process("server", serve)
    ...     server.start()
    ...     await server.wait()
    >>> async def serve():
    ...     await asyncio.sleep(1.0)
    >>> simulation.search(main, seeds=range(20), any_hashes=True)
    20

Servers and clients run on one loop in virtual time, over a network in memory. docs/simulation.md is the manual.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.simulation.errors import SimulationError, SpinningError
    from abeyant.simulation.hashes import fix_hashes
    from abeyant.simulation.loop import SimulationLoop
    from abeyant.simulation.network import Latency
    from abeyant.simulation.process import Process
    from abeyant.simulation.running import Run, current, run, search
    from abeyant.simulation.trace import Event

__all__ = [
    "Event",
    "Latency",
    "Process",
    "Run",
    "SimulationError",
    "SimulationLoop",
    "SpinningError",
    "current",
    "fix_hashes",
    "run",
    "search",
]

_HOMES = {
    "SimulationError": "errors",
    "SpinningError": "errors",
    "SimulationLoop": "loop",
    "Event": "trace",
    "Latency": "network",
    "Process": "process",
    "Run": "running",
    "current": "running",
    "fix_hashes": "hashes",
    "run": "running",
    "search": "running",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
