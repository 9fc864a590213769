"""The numbers that a page opens with, each in a tile: its name, the number, and a few words on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from abeyant.pages.words import escaped

__all__ = ["Tile", "tiles"]


@dataclass(frozen=True)
class Tile:
    """One number of a page, in plain text."""

    name: str
    value: str
    note: str = ""
    alarm: bool = False
    """Whether it is drawn as trouble is."""
    link: str = ""
    """The anchor on the page that says more."""


def tiles(some: Sequence[Tile]) -> str:
    """Return the tiles side by side; HTML."""
    return f'<dl class="tiles">{"".join(map(_tile, some))}</dl>' if some else ""


def _tile(tile: Tile) -> str:
    value, alarm = escaped(tile.value), ' class="alarm"' if tile.alarm else ""
    shown = f'<a href="#{escaped(tile.link)}">{value}</a>' if tile.link else value
    note = f"<dd>{escaped(tile.note)}</dd>" if tile.note else ""
    return f"<div><dt>{escaped(tile.name)}</dt><dd{alarm}>{shown}</dd>{note}</div>"
