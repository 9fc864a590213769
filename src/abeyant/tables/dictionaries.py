"""Find the text columns that Parquet files store dictionary-encoded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

__all__ = ["dictionary_columns"]

_PLAIN_BYTES: Final = 4  # length prefix of each text in Parquet's plain encoding
_DELTA: Final = "DELTA_"  # encodings that Arrow does not read as a dictionary


def dictionary_columns(files: Iterable[Any], columns: Iterable[str]) -> list[str]:
    """Return the columns that begin with dictionary pages in every file; `files` has each file's Parquet metadata.

    Arrow reads such a column as a dictionary at almost no cost; to do so it would have to hash any other column first.
    """
    remaining = list(columns)
    for file in files:
        paths = [file.schema.column(number).path for number in range(file.num_columns)]
        places = {column: paths.index(column) for column in remaining if column in paths}
        for number in range(file.num_row_groups):
            group = file.row_group(number)  # touch only these columns: others may be encrypted
            plain = group.num_rows * _PLAIN_BYTES
            chunks = {column: group.column(place) for column, place in places.items()}
            places = {
                column: places[column]
                for column, chunk in chunks.items()
                if (number or chunk.total_uncompressed_size < plain)
                and not any(encoding.startswith(_DELTA) for encoding in chunk.encodings)
            }
        remaining = list(places)
    return remaining
