"""Refuse to map a column to another column's name in quotes: Spark SQL reads it as a text, the same in every row.

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
    """Return the text if the SQL is a string literal; None for other SQL."""
    found = _TEXT.fullmatch(sql)
    return None if found is None else next(text for text in found.groups() if text is not None)


def check_quoted(mapped: Mapping[str, str], names: Iterable[str], table: str) -> None:
    """Raise `AbeyantError` for a column that is mapped to a name in quotes which one of the table's columns has.

    Accepts single quotes for labels, such as a kind: there a constant text may be meant.
    """
    columns = {name.lower(): name for name in names}
    for column, sql in mapped.items():
        name = columns.get((text_of(sql) or "").lower())
        if name is not None and (sql.startswith('"') or column not in _LABELS):
            raise AbeyantError(
                f"{table}: {column}={sql}: in quotes it is a text, the same in every row; put the column's name in "
                f"backticks: --{table.removesuffix('s')} '{column}=`{name}`'"
            )
