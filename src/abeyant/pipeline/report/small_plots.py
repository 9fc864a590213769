"""Small plots below one another on one x axis, each row with its own scale; the page's script lays them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

__all__ = ["axis", "layout_axis", "milliseconds", "small_plots", "whole_ticks"]

# In nanoseconds, the default of pandas, years before 1678 and after 2262 overflow, some of them silently.
_1970: Final = pd.Timestamp(0, tz="UTC").as_unit("us")
_MILLISECOND: Final = pd.Timedelta(milliseconds=1).as_unit("us")


def small_plots(
    kinds: list[str], titles: list[str], colour: Mapping[str, str], row_px: int = 84, *, by_kind: bool = True
) -> dict[str, Any]:
    """Return a figure's metadata for the page's script: its rows, and their height in pixels.

    With `by_kind` the script shows only the rows of the kind that the reader chose; without it, all rows.
    """
    return {
        "rows": [
            {"kind": kind, "title": title, "colour": colour[kind]} for kind, title in zip(kinds, titles, strict=True)
        ],
        "rowPixels": row_px,
        "byKind": by_kind,
    }


def axis(letter: str, number: int) -> str:
    """Return the name of a row's axis in a trace; rows count from 1."""
    return letter if number == 1 else f"{letter}{number}"


def layout_axis(letter: str, number: int) -> str:
    """Return the name of a row's axis in the layout."""
    return f"{letter}axis" if number == 1 else f"{letter}axis{number}"


def whole_ticks(highest: int) -> dict[str, int]:
    """Return plotly's settings for an axis of counts: few ticks, all at whole numbers."""
    return {"dtick": 1} if highest < 5 else {"nticks": 4}


def milliseconds(times: pd.Series[Any]) -> Any:
    """Return times in ms since 1970, which plotly's date axis accepts: a quarter of the size of text."""
    return (pd.to_datetime(times, utc=True).dt.as_unit("us") - _1970) / _MILLISECOND
