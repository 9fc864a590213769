"""One cell of an experiment in a process of its own: `python -m abeyance.lab.worker EXPERIMENT DESIGN PARAMETERS`.

Prints one line a measure: its name, value and unit, with tabs between them.
"""

from __future__ import annotations

import json
import sys

from abeyance.lab.experiments import EXPERIMENTS


def main(experiment: str, design: str, parameters: str) -> None:
    """Measure and print."""
    for metric, value, unit in EXPERIMENTS[experiment].measure(design, json.loads(parameters)):
        print(f"{metric}\t{value!r}\t{unit}")


if __name__ == "__main__":
    main(*sys.argv[1:])
