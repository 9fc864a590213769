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
        paths = [file.schema.column(number).path for number in range(file.num_columns)]
        places = {column: paths.index(column) for column in left if column in paths}
        for number in range(file.num_row_groups):
            group = file.row_group(number)  # of which no other column is looked at: it may be encrypted
            plain = group.num_rows * _PLAIN_BYTES
            about = {column: group.column(place) for column, place in places.items()}
            places = {
                column: places[column]
                for column, chunk in about.items()
                if (number or chunk.total_uncompressed_size < plain)
                and not any(encoding.startswith(_DIFFERENCES) for encoding in chunk.encodings)
            }
        left = list(places)
    return left
