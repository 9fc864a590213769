"""The experiments by name, in the order of the report."""

from __future__ import annotations

from lab.experiment import Experiment
from lab.experiments import cost, enqueue, geometry, idle, precision, purge

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (enqueue, cost, precision, purge, geometry, idle)
}
