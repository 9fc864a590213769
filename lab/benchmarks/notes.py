"""Read the explanations of missed targets, which are written by hand (`notes.md`, a heading per row)."""

from __future__ import annotations

import re
from pathlib import Path

NOTES = Path(__file__).parent / "notes.md"


def read(path: Path = NOTES) -> dict[str, str]:
    """Return the non-empty notes by row."""
    if not path.exists():
        return {}
    text = re.sub(r"<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    _, *sections = re.split(r"^## +(\w+)[ \t]*$", text, flags=re.MULTILINE)
    pairs = zip(sections[::2], sections[1::2], strict=True)
    return {row: note.strip() for row, note in pairs if note.strip()}
