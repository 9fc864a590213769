"""Seeded simulation of programs that speak Kafka: brokers, clients and faults from one seed, in virtual time.

The fixture `simulation` of the pytest plugin is its surface; docs/simulation.md is its manual.
"""

from abeyant.broker.simulation.faults import KINDS, Fault
from abeyant.broker.simulation.search import RunId, parse_id, run_id, search, shrink
from abeyant.broker.simulation.story import story
from abeyant.broker.simulation.world import Failure, Options, Outcome, Simulation, run_seed

__all__ = [
    "KINDS",
    "Failure",
    "Fault",
    "Options",
    "Outcome",
    "RunId",
    "Simulation",
    "parse_id",
    "run_id",
    "run_seed",
    "search",
    "shrink",
    "story",
]
