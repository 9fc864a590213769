"""The claims of the literature, where each is made, and how a run decides it: by a stated figure.

A module for each experiment, of its name.
"""

from __future__ import annotations

from typing import Final

from lab.experiments import EXPERIMENTS
from lab.report.claims import cost, enqueue, geometry, idle, precision, purge
from lab.report.claims.claim import Claim, Finding
from lab.report.run import Run

__all__ = ["CLAIMS", "Claim", "Finding", "judged"]

CLAIMS: Final[dict[str, list[Claim]]] = {
    "enqueue": enqueue.CLAIMS,
    "cost": cost.CLAIMS,
    "precision": precision.CLAIMS,
    "purge": purge.CLAIMS,
    "geometry": geometry.CLAIMS,
    "idle": idle.CLAIMS,
}


def judged(claim: Claim, run: Run) -> Finding:
    """The finding; not decided where the run lacks what the claim is about.

    Times of a quick run or a busy machine may speak for a claim, never against it: that is inconclusive.
    """
    try:
        found = claim.judge(run)
    except (KeyError, IndexError, ValueError):
        return Finding("not decided", "the run lacks cells that decide it")
    fell_short = found.verdict in ("held in part", "not held here")
    if fell_short and run.doubt is not None and EXPERIMENTS[run.experiment].clock == "real":
        return Finding("inconclusive", f"{found.figure}; {run.doubt}")
    return found
