"""Sum up the incidents in at most three sentences: every suspect is named once before any is named twice.

Incidents of most operations come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from abeyant.pages.formatting import counted

__all__ = ["what_happened"]

_MOST_SENTENCES = 3


@dataclass
class _Deed:
    """A group of incidents that overlap in time and have the same suspect."""

    evidence: str
    worst: int
    operations: int
    incidents: int
    suspect: tuple[str, str]
    first: pd.Timestamp
    last: pd.Timestamp


def what_happened(incidents: pd.DataFrame, suspects: pd.DataFrame) -> list[str]:
    """Return at most three sentences on the incidents, each with its likeliest suspect; none without incidents."""
    if incidents.empty:
        return []
    rows = incidents.sort_values(["first", "kind", "trouble"], kind="stable").to_dict("records")
    likeliest = suspects.sort_values(["incident", "confidence"], ascending=[True, False], kind="stable")
    suspect_rows = likeliest.drop_duplicates("incident").sort_values("first", kind="stable").to_dict("records")
    deeds = _each_suspect_first(sorted(_deeds(rows, suspect_rows), key=lambda deed: -deed.operations))
    unknown = len(rows) - len(suspect_rows)
    selected = deeds[: _MOST_SENTENCES - bool(unknown)]
    several = rows[0]["first"].date() != rows[-1]["first"].date()  # evidence has times of day
    days = [f"{deed.first:%-d %B}: " if several else "" for deed in selected]
    seen = set[str]()
    suffixes = list[str]()
    for deed in selected:
        suffixes.append(_count_more(deed, deeds[len(selected) :] if deed.suspect[1] not in seen else ()))
        seen.add(deed.suspect[1])
    sentences = [
        f"{day}{deed.evidence[:1].upper()}{deed.evidence[1:]}{suffix}."
        for day, deed, suffix in zip(days, selected, suffixes, strict=True)
    ]
    if unknown:
        sentences.append(f"No suspect for {counted(unknown, 'incident')}.")
    return sentences


def _deeds(incidents: Sequence[dict[Any, Any]], suspect_rows: Sequence[dict[Any, Any]]) -> list[_Deed]:
    """Merge incidents that overlap in time and have the same suspect, named by the same rule."""
    deeds: list[_Deed] = []
    for row in suspect_rows:
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


def _each_suspect_first(deeds: Sequence[_Deed]) -> list[_Deed]:
    """Return the first deed (group of incidents) of each suspect, then all other deeds, both in the given order."""
    first = {suspect: deed for deed in reversed(deeds) for suspect in [deed.suspect[1]]}
    return sorted(deeds, key=lambda deed: deed is not first[deed.suspect[1]])


def _count_more(deed: _Deed, left_out: Sequence[_Deed]) -> str:
    """Return a phrase: how many more incidents have this suspect, at this time and in `left_out`; "" for none."""
    at_once = deed.incidents - 1
    later = sum(other.incidents for other in left_out if other.suspect[1] == deed.suspect[1])
    phrases = [f"{counted(at_once, 'more incident')} at the same time"] if at_once else []
    if later:
        phrases.append(f"{later:,} at other times" if phrases else f"{counted(later, 'more incident')} at other times")
    return f" ({deed.suspect[1]} is the suspect of {' and '.join(phrases)})" if phrases else ""
