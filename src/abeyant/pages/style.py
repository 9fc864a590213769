"""The style of all figures: one colour per kind, little ink, units on the axes. The page sets light or dark."""

from __future__ import annotations

import math
from typing import Any, Final

from abeyant.pages.formatting import duration, tick_values

# Mid-tones with a contrast of at least 3:1 on the page's light and dark backgrounds.
PALETTE: Final = ("#3f80d6", "#c8741c", "#1f968a", "#9166cf", "#c460a2", "#85881f", "#a0694c", "#74818f")
FURTHER: Final = ("#4c9a3f", "#2f93b8", "#b0606a", "#6d72d8", "#a8789b", "#5f8f6e", "#9a7f2e", "#7c7a6a")
"""Further colours of the same contrast, less distinct from each other."""
EXPIRED: Final = "#d8433c"
LONG_WAIT: Final = "#c8741c"
NEUTRAL: Final = PALETTE[7]
"""The colour of anything that is neither a kind nor an alarm."""
SHORTEST_MS: Final = 0.1
"""The lowest value, in ms, at which a logarithmic axis of waits starts. Shorter waits are drawn at its edge."""


def faint(colour: str, opacity: float) -> str:
    """Return a colour such as "#3f80d6" as CSS with an opacity from 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def wait_axis(low: float, high: float, title: str) -> dict[str, Any]:
    """Return a logarithmic axis of durations from `low` to `high` milliseconds, with ticks in readable units."""
    values, texts = tick_values(low, max(high, low * 10))
    return {
        "type": "log",
        "title": {"text": title},
        "tickvals": values,
        "ticktext": texts,
        "range": [math.log10(low), math.log10(max(high, low * 10))],
    }


def tick_durations(highest: float) -> dict[str, Any]:
    """Return two ticks for a short linear axis of durations from 0 to `highest` milliseconds."""
    step = 10.0 ** math.floor(math.log10(highest))
    most = max(step * n for n in (1, 2, 5) if step * n <= highest)
    return {"tickvals": [0, most], "ticktext": ["0", duration(most)]}
