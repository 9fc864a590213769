"""Seeded simulation of programs that speak Kafka: brokers, clients and faults from one seed, in virtual time.

Tests use it through the fixture `simulation` of the pytest plugin; docs/simulation.md is the manual.
"""

from abeyant.broker.simulation.faults import KINDS, Fault, PlannedFault
from abeyant.broker.simulation.search import (
    RunId,
    find_failure,
    parse_id,
    passing_beside,
    rerun,
    run_id,
    search,
    shrink,
)
from abeyant.broker.simulation.story import story
from abeyant.broker.simulation.timeline_page import timeline_page
from abeyant.broker.simulation.world import Failure, Options, Outcome, RunResult, Simulation, run_seed
from abeyant.simulation.errors import SimulationError

__all__ = [
    "KINDS",
    "Failure",
    "Fault",
    "Options",
    "Outcome",
    "PlannedFault",
    "RunId",
    "RunResult",
    "Simulation",
    "SimulationError",
    "find_failure",
    "parse_id",
    "passing_beside",
    "rerun",
    "run_id",
    "run_seed",
    "search",
    "shrink",
    "story",
    "timeline_page",
]
