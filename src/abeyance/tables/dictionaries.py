"""Which columns of text Parquet files keep as dictionaries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["in_dictionary"]

_PLAIN_BYTES: Final = 4  # that Parquet takes for the length of a text where it is not in a dictionary
_DIFFERENCES: Final = "DELTA_"  # Arrow makes no dictionary of a column that is written so


def in_dictionary(files: Iterable[Any], columns: Iterable[str]) -> list[str]:
    """Return the columns of which each value is there once, in the first rows of each file; `files` are their metadata.

    Read as a dictionary, such a column costs next to nothing; any other has to be hashed to make one.
    """
    left = list(columns)
    for file in files:
        groups = [file.row_group(number) for number in range(file.num_row_groups)]
        for number, group in enumerate(groups):
            chunks = (group.column(place) for place in range(group.num_columns))
            about = {chunk.path_in_schema: chunk for chunk in chunks}
            plain = group.num_rows * _PLAIN_BYTES
            left = [
                column
                for column in left
                if column in about
                and (number or about[column].total_uncompressed_size < plain)
                and not any(encoding.startswith(_DIFFERENCES) for encoding in about[column].encodings)
            ]
    return left
