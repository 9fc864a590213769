"""What happened, in at most three sentences: the suspects of the incidents, those of most operations first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from abeyant.pages.words import counted

__all__ = ["what_happened"]

_MOST_SENTENCES = 3


@dataclass
class _Deed:
    """Incidents at one time that are put down to one suspect."""

    evidence: str
    worst: int
    operations: int
    incidents: int
    suspect: tuple[str, str]
    first: pd.Timestamp
    last: pd.Timestamp


def what_happened(incidents: pd.DataFrame, suspects: pd.DataFrame) -> list[str]:
    """Return at most three sentences; none where there is no incident.

    Of each incident the likeliest suspect counts.
    """
    if incidents.empty:
        return []
    rows = incidents.sort_values(["first", "kind", "trouble"], kind="stable").to_dict("records")
    likeliest = suspects.sort_values(["incident", "confidence"], ascending=[True, False], kind="stable")
    named = likeliest.drop_duplicates("incident").sort_values("first", kind="stable").to_dict("records")
    deeds = sorted(_deeds(rows, named), key=lambda deed: -deed.operations)
    unknown = len(rows) - len(named)
    kept = deeds[: _MOST_SENTENCES - bool(unknown)]
    several = rows[0]["first"].date() != rows[-1]["first"].date()  # evidence has times of day
    days = [f"{deed.first:%-d %B}: " if several else "" for deed in kept]
    said = [
        f"{day}{deed.evidence[:1].upper()}{deed.evidence[1:]}{_more(deed)}."
        for day, deed in zip(days, kept, strict=True)
    ]
    if unknown:
        said.append(f"No suspect for {counted(unknown, 'incident')}.")
    return said


def _deeds(incidents: Sequence[dict[Any, Any]], named: Sequence[dict[Any, Any]]) -> list[_Deed]:
    """Put incidents together that overlap in what one suspect is suspected of."""
    deeds: list[_Deed] = []
    for row in named:
        number = int(incidents[int(row["incident"]) - 1]["operations"])
        suspect = str(row["kind"]), str(row["suspect"])
        same = next((deed for deed in deeds if deed.suspect == suspect and row["first"] <= deed.last), None)
        if same is None:
            deeds.append(_Deed(str(row["evidence"]), number, number, 1, suspect, row["first"], row["last"]))
            continue
        if number > same.worst:
            same.evidence, same.worst = str(row["evidence"]), number
        same.operations += number
        same.incidents += 1
        same.last = max(same.last, row["last"])
    return deeds


def _more(deed: _Deed) -> str:
    return f" (and {counted(deed.incidents - 1, 'more incident')})" if deed.incidents > 1 else ""
