"""What came of a suite: each test, and why it did not pass where that is known."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

_REASONS = Path(__file__).with_name("reasons.tsv")


class Result(NamedTuple):
    """One test of a suite."""

    test: str
    outcome: str
    """passed, skipped (by the suite itself) or failed."""
    seconds: float
    said: str = ""


def reasons(suite: str) -> list[tuple[re.Pattern[str], str]]:
    """Patterns of the tests that are known to fail, with the reason for each."""
    lines = [line.split("\t") for line in _REASONS.read_text(encoding="utf-8").splitlines()]
    return [(re.compile(pattern), why) for of, pattern, why in lines if of == suite]


def why(result: Result, known: list[tuple[re.Pattern[str], str]]) -> str:
    """The known reason why it failed, or an empty string."""
    return next((reason for pattern, reason in known if pattern.search(result.test)), "")


def summary(suite: str, results: list[Result]) -> tuple[str, int]:
    """The page's text of a suite, and how many failures nobody has explained."""
    known = reasons(suite)
    counted = Counter(result.outcome for result in results)
    told = ", ".join(f"{counted[one]} {one}" for one in ("passed", "failed", "skipped") if counted[one])
    lines = [f"{suite}: {len(results)} ran: {told}"]
    failed = [(result, why(result, known)) for result in results if result.outcome == "failed"]
    for reason, count in Counter(reason for _, reason in failed if reason).most_common():
        lines.append(f"  {count} failed: {reason}")
    unexplained = [result for result, reason in failed if not reason]
    lines += [f"  FAILED {one.test} ({one.seconds:.0f} s): {' '.join(one.said.split())[-300:]}" for one in unexplained]
    skipped = Counter(result.said for result in results if result.outcome == "skipped")
    lines += [f"  {count} skipped by the suite: {said}" for said, count in skipped.most_common()]
    return "\n".join(lines), len(unexplained)
