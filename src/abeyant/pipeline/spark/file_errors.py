"""Which file Spark could not read, and what it found there in place of what."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

__all__ = ["unread_file"]

_READING: Final = re.compile(
    r"Encountered error while reading file (?P<file>.+?)\.\s+"
    r"(?:Data type mismatches when reading Parquet column \[(?P<column>.+?)\]\. "
    r"Expected Spark type (?P<expected>.+?), actual Parquet type (?P<found>\w+)\.\s+)?"
    r"(?:Could not read footer\..*?\.\s+)?SQLSTATE",
    re.DOTALL,
)
_HEADER: Final = re.compile(
    r"CSV header does not conform to the schema\.\s+Header: (?P<found>.*?)\n\s*Schema: (?P<expected>.*?)\n"
    r".*?CSV file: (?P<file>[^\n]+)",
    re.DOTALL,
)
_LENGTH: Final = re.compile(
    r"Number of column in CSV header is not equal to number of fields in the schema.*?CSV file: (?P<file>[^\n]+)",
    re.DOTALL,
)
_CAUSED_BY: Final = re.compile(r"^\s*Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_NO_PARQUET: Final = ("is not a Parquet file", "footer is too large")
_PHYSICAL: Final = {
    "BINARY": "text",
    "BOOLEAN": "boolean",
    "INT32": "int",
    "INT64": "bigint",
    "INT96": "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
    "FIXED_LEN_BYTE_ARRAY": "bytes",
}
"""How Spark names what Parquet stores so."""


def unread_file(text: str) -> str | None:
    """Return which file could not be read, why, and what mends it, from all that Spark said; None where it was no file.

    Spark's own first cause names a class of its own, and of several files not which.
    """
    header = _HEADER.search(text)
    if header is not None:
        return (
            f"{_plain(header['file'])} has other columns ({header['found']}) than the files before it "
            f"({header['expected']}): {_MEND}"
        )
    length = _LENGTH.search(text)
    if length is not None:
        return f"{_plain(length['file'])} has another number of columns than the files before it: {_MEND}"
    reading = _READING.search(text)
    if reading is None:
        return None
    file = _plain(reading["file"])
    if reading["column"] is not None:
        found = _PHYSICAL.get(reading["found"], reading["found"])
        return f"{file}: column {reading['column']!r} is {found} in it, expected {reading['expected']}: {_MEND}"
    if any(said in text for said in _NO_PARQUET):
        other = "" if file.endswith(".parquet") else "say what it is by --format, "
        return f"{file} is not a Parquet file, or not all of one: {other}{_MEND}"
    causes = _CAUSED_BY.findall(text)
    return f"{file} cannot be read{f' ({causes[-1].strip()})' if causes else ''}: {_MEND}"


_MEND: Final = "write it as the others, or take it away"


def _plain(uri: str) -> str:
    """Return the path of a local file as its user knows it, another's URI as it is."""
    return "/" + unquote(uri).removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri.strip()
