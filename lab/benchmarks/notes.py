"""What is written by hand: why a target is missed (`notes.md`, a heading a row)."""

from __future__ import annotations

import re
from pathlib import Path

NOTES = Path(__file__).parent / "notes.md"


def read(path: Path = NOTES) -> dict[str, str]:
    """The notes by row; only those that say something."""
    if not path.exists():
        return {}
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    _, *sections = re.split(r"^## +(\w+)[ \t]*$", text, flags=re.MULTILINE)
    found = zip(sections[::2], sections[1::2], strict=True)
    return {row: said.strip() for row, said in found if said.strip()}
