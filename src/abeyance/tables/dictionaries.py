"""Which columns of text a Parquet file keeps as dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["in_dictionary"]

_PLAIN_BYTES: Final = 4  # that Parquet takes for the length of a text where it is not in a dictionary


def in_dictionary(file: Any, columns: Iterable[str]) -> list[str]:
    """Return those columns of which the file keeps each value once, in its first rows; `file` is its metadata.

    Read as a dictionary, such a column costs next to nothing; any other has to be hashed to make one.
    """
    if not file.num_row_groups:
        return []
    group = file.row_group(0)
    there = (group.column(number) for number in range(group.num_columns))
    sizes = {chunk.path_in_schema: chunk.total_uncompressed_size for chunk in there}
    plain = group.num_rows * _PLAIN_BYTES
    return [column for column in columns if sizes.get(column, plain) < plain]
