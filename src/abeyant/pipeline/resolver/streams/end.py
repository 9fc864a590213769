"""The end of input: a file in a directory that the stream watches. Then nothing more is waited for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.location import is_uri, location

__all__ = ["END_OF_INPUT", "end_of_input", "end_rows"]

END_OF_INPUT: Final = "end-of-input"
"""What the file is called."""


def end_of_input(directory: str | Path) -> None:
    """Signal the end of input to a stream: to the one with `resolve_stream(..., end_of_input=directory)`.

    Its next batch resolves all that is pending; rows that come after it are late. So call it when the sources are
    drained, after a run with `trigger(availableNow=True)`, say, and then run that once more. Any file with a line of
    text in the directory does the same: on another file system than the local one, put it there with that one's tools.
    Raises `AbeyantError` when the directory is not there.
    """
    home = Path(directory)
    aside = home / f".{END_OF_INPUT}"  # hidden from Spark until it is whole
    try:
        aside.write_text("end of input\n", encoding="utf-8")
        os.replace(aside, home / END_OF_INPUT)
    except OSError as error:
        raise AbeyantError(f"cannot mark the end of input in {home}: {error.strerror or error}") from error


def end_rows(spark: SparkSession, directory: str | Path) -> DataFrame:
    """Return the stream of lines in the directory, which is made if it is local and not there."""
    text = str(directory)
    if not is_uri(text):
        Path(text).mkdir(parents=True, exist_ok=True)
    return spark.readStream.text(location(text))
