"""Measure how many seeds a second a small story takes: 20 records, three brokers, two faults, unmodified aiokafka.

    python -m examples.simulation.speed 200  # seeds of each of two processes

It counts processor time, so that other work on the machine matters little.
"""

from __future__ import annotations

import subprocess
import sys
import time

from abeyant import simulation
from abeyant.broker.simulation import Options, PlannedFault, run_seed
from abeyant.broker.simulation.search import planned
from abeyant.broker.simulation.world import Outcome
from examples.simulation.orders import careful_service
from examples.simulation.test_orders import story

OPTIONS = Options(faults=("kill", "pause", "lose answer", "leader moves", "clog"), converge=30.0)


def two_faults(seed: int) -> list[PlannedFault]:
    """Return the first two faults of this seed, and of the next ones where it has fewer."""
    faults: list[PlannedFault] = []
    while len(faults) < 2:
        faults += planned(seed, OPTIONS)
        seed += 1_000_003
    return sorted(faults[:2], key=lambda fault: fault.at)


def run(seed: int) -> Outcome:
    return run_seed(lambda one: story(one, careful_service), seed, OPTIONS, faults=two_faults(seed))


def main() -> None:
    simulation.fix_hashes()
    if len(sys.argv) < 3:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
        command = [sys.executable, "-m", "examples.simulation.speed", str(count)]
        both = [
            subprocess.Popen([*command, str(1000 * number)], stdout=subprocess.PIPE, text=True) for number in (0, 1)
        ]
        rates = [float(one.communicate()[0]) for one in both]
        print(f"{sum(rates):.1f} seeds a second on two processors ({rates[0]:.1f} and {rates[1]:.1f})")
        return
    first = int(sys.argv[2])
    run(first)  # what is imported and made once is not counted
    before = time.process_time()
    for seed in range(first, first + int(sys.argv[1])):
        run(seed)
    print(int(sys.argv[1]) / (time.process_time() - before))


if __name__ == "__main__":
    main()
