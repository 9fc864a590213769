"""Signal the end of input by a file in a directory that the stream watches: all pending operations are resolved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.location import is_uri, location

__all__ = ["END_OF_INPUT", "end_of_input", "end_rows"]

END_OF_INPUT: Final = "end-of-input"
"""Name of the file that signals the end of input."""


def end_of_input(directory: str | Path) -> None:
    """Signal the end of input to the stream of `resolve_stream(..., end_of_input=directory)`.

    The next batch resolves all pending operations; rows after that batch are late. So call it when the sources are
    drained, for example after a run with `trigger(availableNow=True)`, and then run the query once more. Any file with
    a line of text in the directory has the same effect: on a remote file system, create it with the tools of that
    system. Raises `AbeyantError` if the directory does not exist or cannot be written.
    """
    home = Path(directory)
    temporary = home / f".{END_OF_INPUT}"  # Spark ignores such names; it is renamed once it is complete
    try:
        temporary.write_text("end of input\n", encoding="utf-8")
        os.replace(temporary, home / END_OF_INPUT)
    except OSError as error:
        raise AbeyantError(f"cannot mark the end of input in {home}: {error.strerror or error}") from error


def end_rows(spark: SparkSession, directory: str | Path) -> DataFrame:
    """Return the lines of files in the directory as a stream. Create the directory if it is local and missing."""
    text = str(directory)
    if not is_uri(text):
        Path(text).mkdir(parents=True, exist_ok=True)
    return spark.readStream.text(location(text))
