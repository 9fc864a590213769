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


def without_test(results: list[Result], known: list[tuple[re.Pattern[str], str]]) -> list[str]:
    """The patterns, or alternatives of one, that match no test of a whole run: what they named is gone."""
    every = [one for pattern, _ in known for one in pattern.pattern.split("|")]
    return [one for one in every if not any(re.search(one, result.test) for result in results)]


def summary(suite: str, results: list[Result], *, whole: bool) -> tuple[str, int]:
    """The page's text of a suite, and how many failures nobody has explained, with the reasons for no test of it.

    `whole` says that all its tests were run.
    """
    known = reasons(suite)
    counted = Counter(result.outcome for result in results)
    told = ", ".join(f"{counted[one]} {one}" for one in ("passed", "failed", "skipped") if counted[one])
    lines = [f"{suite}: {len(results)} ran: {told}"]
    failed = [(result, why(result, known)) for result in results if result.outcome == "failed"]
    for reason, count in Counter(reason for _, reason in failed if reason).most_common():
        lines.append(f"  {count} failed: {reason}")
    unexplained = [result for result, reason in failed if not reason]
    lines += [f"  FAILED {one.test} ({one.seconds:.0f} s): {' '.join(one.said.split())[-300:]}" for one in unexplained]
    gone = without_test(results, known) if whole else []
    lines += [f"  GONE {one}: no test has this name; take it out of {_REASONS.name}" for one in gone]
    skipped = Counter(result.said for result in results if result.outcome == "skipped")
    lines += [f"  {count} skipped by the suite: {said}" for said, count in skipped.most_common()]
    return "\n".join(lines), len(unexplained) + len(gone)
