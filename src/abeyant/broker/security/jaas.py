"""Read the options of a login module from `sasl.jaas.config`: `a.Module required name="value" other=value;`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["read_options"]

_WORD: Final = r'"(?:[^"\\]|\\.)*"|[^\s=;"]+'
_ENTRY: Final = re.compile(
    rf"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)((?:\s+[\w.]+\s*=\s*(?:{_WORD}))*)\s*;\s*", re.IGNORECASE
)
_OPTION: Final = re.compile(rf"([\w.]+)\s*=\s*({_WORD})")
_ESCAPED: Final = re.compile(r"\\(.)")


def read_options(text: str) -> dict[str, str]:
    """Return the options of the only login module in `text`. Raises ValueError, whose message shows no options."""
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise ValueError('the value must be one login module, such as: a.Module required name="value";')
    return {
        name: _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
        for name, value in _OPTION.findall(entry[1])
    }
