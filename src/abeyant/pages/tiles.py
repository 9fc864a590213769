"""The tiles at the top of a page: key figures, each with a name, a value and a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from abeyant.pages.formatting import escaped

__all__ = ["Tile", "tiles"]


@dataclass(frozen=True)
class Tile:
    """One key figure of a page, in plain text."""

    name: str
    value: str
    note: str = ""
    alarm: bool = False
    """Whether to highlight the value as a problem."""
    link: str = ""
    """The id of the section about the figure; "" for no link."""


def tiles(some: Sequence[Tile]) -> str:
    """Return the tiles as an HTML list."""
    return f'<dl class="tiles">{"".join(map(_tile, some))}</dl>' if some else ""


def _tile(tile: Tile) -> str:
    value, alarm = escaped(tile.value), ' class="alarm"' if tile.alarm else ""
    shown = f'<a href="#{escaped(tile.link)}">{value}</a>' if tile.link else value
    note = f"<dd>{escaped(tile.note)}</dd>" if tile.note else ""
    return f"<div><dt>{escaped(tile.name)}</dt><dd{alarm}>{shown}</dd>{note}</div>"
