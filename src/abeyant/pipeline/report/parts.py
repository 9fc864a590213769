"""Building blocks that the report's pages share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from abeyant.pages.places import redact_paths
from abeyant.pages.tables import facts
from abeyant.pipeline.results.directory import read_marker

__all__ = ["made", "plot_place", "read_table", "section"]


def read_table(directory: Path, name: str) -> pd.DataFrame:
    """Read a small table of a result's directory as a DataFrame."""
    found: pd.DataFrame = pq.read_table(directory / name).to_pandas()
    return found


def section(title: str, read: str, *, plot: str = "", nothing: str = "", tables: Sequence[str] = ()) -> str:
    """Return a section in HTML: an empty element for its figure, its caption `read`, and a table for each scope."""
    parts = [f"<h2>{title}</h2>"]
    if plot:
        parts.append(plot_place(plot, title, nothing))
    parts.append(f'<p class="read">{read}</p>')
    parts += [f'<div data-scope="{i}"{" hidden" if i else ""}>{shown}</div>' for i, shown in enumerate(tables)]
    return f"<section>{''.join(parts)}</section>"


def plot_place(name: str, title: str, nothing: str) -> str:
    """Return, in HTML, an empty element for a figure, and the text to show if there is no figure."""
    return (
        f'<div class="plot" id="{name}" role="img" aria-label="{title}" hidden></div>'
        f'<p class="nothing" id="{name}-nothing" hidden>{nothing}</p>'
    )


def made(directory: Path) -> str:
    """Return the settings in a result's marker, without the tool's name, as HTML."""
    entries: Mapping[str, Any] = {name: value for name, value in read_marker(directory).items() if name != "tool"}
    return facts(redact_paths(entries))
