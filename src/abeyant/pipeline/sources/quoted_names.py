"""Refuse a mapping to a column's name in quotes: to Spark SQL that is a text, the same in every row.

Imports no PySpark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from abeyant.errors import AbeyantError

__all__ = ["check_quoted", "text_of"]

_TEXT: Final = re.compile(r"""'([^'\\]*)'|"([^"\\]*)\"""")
_LABELS: Final = ("instance", "kind", "condition")
"""The columns whose constant text may equal the name of one of the table's columns."""


def text_of(sql: str) -> str | None:
    """Return the text of an SQL literal of text; None for other SQL."""
    found = _TEXT.fullmatch(sql)
    return None if found is None else next(text for text in found.groups() if text is not None)


def check_quoted(mapped: Mapping[str, str], names: Iterable[str], table: str) -> None:
    """Raise `AbeyantError` for a column that is mapped to the name of one of the table's columns in quotes.

    Single quotes mean a text where it is a label, such as a kind.
    """
    columns = {name.lower(): name for name in names}
    for column, sql in mapped.items():
        name = columns.get((text_of(sql) or "").lower())
        if name is not None and (sql.startswith('"') or column not in _LABELS):
            raise AbeyantError(
                f"{table}: {column}={sql}: quotes make a text of it, the same in every row; put the column's name in "
                f"backticks: --{table.removesuffix('s')} '{column}=`{name}`'"
            )
