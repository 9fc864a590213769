"""All scenarios, by importing every module of them."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from .scenario import SCENARIOS, Scenario

FOLDER = Path(__file__).parent / "scenarios"
_LAST = "exhausted_epochs"
"""If it fails under load, genuine Kafka still works on its 32,766 requests, and what follows in that cluster fails."""
FAMILIES = sorted((found.name for found in pkgutil.iter_modules([str(FOLDER)])), key=lambda one: (one == _LAST, one))


def all_scenarios() -> list[Scenario]:
    if not SCENARIOS:
        for family in FAMILIES:
            importlib.import_module(f"{__package__}.scenarios.{family}")
    return SCENARIOS
