"""How a run decides a claim: by a stated figure, and by how far its times can be trusted."""

from __future__ import annotations

from lab.claim import Claim, Finding
from lab.experiments import EXPERIMENTS
from lab.run import Run


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
