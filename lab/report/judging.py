"""Judge a claim by a run: by the claim's rule, and by how far the run's times can be trusted."""

from __future__ import annotations

from lab.claim import Claim, Finding
from lab.experiments import EXPERIMENTS
from lab.run import Run


def judge(claim: Claim, run: Run) -> Finding:
    """Return the run's finding on the claim; it is "not decided" if the run lacks the claim's cells.

    Times of a quick run or a busy machine can support a claim but not refute it. Instead, they are "inconclusive".
    """
    try:
        finding = claim.judge(run)
    except (KeyError, IndexError, ValueError):
        return Finding("not decided", "the run lacks cells that decide it")
    fell_short = finding.verdict in ("held in part", "not held here")
    if fell_short and run.doubt is not None and EXPERIMENTS[run.experiment].clock == "real":
        return Finding("inconclusive", f"{finding.figure}; {run.doubt}")
    return finding
