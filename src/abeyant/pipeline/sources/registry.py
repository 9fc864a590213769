"""All kinds of sources. To add a kind, write a module in this folder and add its class to `SOURCES`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from abeyant.pipeline.sources.catalog import CatalogTable
from abeyant.pipeline.sources.csv import Csv
from abeyant.pipeline.sources.files import Orc, Parquet, expand
from abeyant.pipeline.sources.json_lines import JsonLines
from abeyant.pipeline.sources.kafka import Topic
from abeyant.pipeline.sources.source import Input, Source

__all__ = ["SOURCES", "source_of"]

SOURCES: Final[tuple[type[Source], ...]] = (Topic, CatalogTable, Csv, JsonLines, Orc, Parquet)
"""All kinds of sources, in the order in which `takes` is called for a name; the first that returns True reads it."""


def source_of(value: Input) -> Source:
    """Return the source for a name; Parquet if neither the name nor a file in the directory shows the format."""
    kinds = (kind for name in _names(value.name) for kind in SOURCES if kind.takes(name, value))
    return next(kinds, Parquet)(value)


def _names(name: str) -> Iterator[str]:
    """Yield a name, the local files and directories that it matches, and the files in these directories."""
    yield name
    yield from (paths := expand(name))
    yield from (str(file) for folder in map(Path, paths) if folder.is_dir() for file in sorted(folder.iterdir()))
