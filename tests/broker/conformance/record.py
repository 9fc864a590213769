"""What genuine Kafka answered, one file a family: a line for each question, so that a change can be read.

`make record-kafka` writes them anew: `python -m broker.conformance.record [FAMILY ...]`. It needs Java and Maven.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from abeyant.broker.genuine import ClusterError

from .answers import line
from .families import FAMILIES, all_scenarios
from .genuine import genuine_kafka
from .messages import Plain
from .scenario import Brokers, Scenario, Stage
from .settings import GUARDED_FAMILIES, PLUGIN_FAMILIES

FOLDER = Path(__file__).parent / "recorded"

Written = list[dict[str, Plain]]


def play(brokers: Brokers, scenario: Scenario) -> Written:
    """What these brokers answer in a scenario."""
    stage = Stage(brokers, scenario)
    with stage.playing():
        scenario.play(stage)
    # As it comes back from a file: tuples are lists there.
    played: Written = json.loads(line(stage.written))
    return played


def load(family: str) -> dict[str, Written]:
    """What is recorded of a family: what was written, by the scenario's title."""
    path = FOLDER / f"{family}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(family: str, played: Mapping[str, Written]) -> None:
    """Write a family's file."""
    parts = []
    for title in sorted(played):
        rows = ",\n".join(f"  {line(row)}" for row in played[title])
        parts.append(f"{line(title)}: [\n{rows}\n]" if rows else f"{line(title)}: []")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{family}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> int:
    """Play every scenario on genuine Kafka, and keep what it answered."""
    parser = argparse.ArgumentParser(prog="python -m broker.conformance.record", description=main.__doc__)
    parser.add_argument("family", nargs="*", help=f"only these of {', '.join(FAMILIES)}")
    chosen = parser.parse_args().family or FAMILIES
    if unknown := sorted(set(chosen) - set(FAMILIES)):
        parser.error(f"there is no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    try:
        for guarded, plugin in ((False, False), (True, False), (False, True)):
            families = [
                family
                for family in FAMILIES
                if family in chosen and (family in GUARDED_FAMILIES, family in PLUGIN_FAMILIES) == (guarded, plugin)
            ]
            if families:
                _record(families, guarded, plugin)
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _record(families: list[str], guarded: bool, plugin: bool) -> None:
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        genuine_kafka(Path(folder), guarded, plugin) as kafka,
    ):
        for family in families:
            ours = [scenario for scenario in all_scenarios() if scenario.family == family]
            save(family, {scenario.title: play(kafka, scenario) for scenario in ours})
            print(f"{family}: {len(ours)} scenarios, {time.monotonic() - began:.0f} s so far", flush=True)


if __name__ == "__main__":
    sys.exit(main())
