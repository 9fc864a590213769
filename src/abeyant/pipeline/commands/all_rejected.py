"""Report an error if all rows of a table were rejected: the outcomes are then meaningless."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from abeyant.errors import AbeyantError
from abeyant.pages.formatting import visible, without_value
from abeyant.pipeline.results.outcome_counts import counted_reasons
from abeyant.tables.reasons import mend
from abeyant.tables.rejections import with_value

if TYPE_CHECKING:
    from abeyant.pipeline.sources.tables import Name

__all__ = ["AllRejectedError", "all_rejected", "all_rejected_by_stream"]

_BATCH_ROWS: Final = 1 << 16


class AllRejectedError(AbeyantError):
    """Raised when every row of a table was rejected. The result is complete and contains the rejected rows."""


def all_rejected(name: Name, files: Iterable[Path], out: Path | str) -> AllRejectedError:
    """Return the error: it gives the number of rows, the commonest reason and an example.

    `files` contain the rejected rows.
    """
    files = list(files)
    counts: Counter[str] = Counter()
    for reason, number in counted_reasons(files).items():
        counts[without_value(reason)] += number
    [(commonest, _)] = counts.most_common(1)
    return _error(name, counts.total(), _example(files, commonest), commonest, f"{out}/invalid_{name}")


def all_rejected_by_stream(name: Name, rejected: Path) -> AllRejectedError | None:
    """Return the error for a table of a drained stream in which no row was valid; None if no row was rejected.

    `rejected` is the folder with the rejected rows of both tables.
    """
    counts: Counter[str] = Counter()
    examples: dict[str, str] = {}
    if rejected.is_dir():
        rows = ds.dataset(rejected, format="parquet")
        for batch in rows.to_batches(columns=["reason"], filter=ds.field("table") == name):
            for reason in batch.column("reason").to_pylist():
                counts[without_value(reason)] += 1
                examples.setdefault(without_value(reason), reason)
    if not counts:
        return None
    [(commonest, _)] = counts.most_common(1)
    return _error(name, counts.total(), examples[commonest], commonest, str(rejected))


def _error(name: Name, rows: int, example: str, commonest: str, place: str) -> AllRejectedError:
    many = f"all {rows:,} rows were" if rows > 1 else "the only row was"
    return AllRejectedError(
        f"{name}: {many} rejected: {visible(example)}{mend(commonest)}. "
        f"The result is complete; the rows are in {visible(place)}"
    )


def _example(files: Iterable[Path], commonest: str) -> str:
    """Return the commonest reason, with the bad value of the first row that was rejected for it."""
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS):
            place = pc.index(pc.starts_with(batch.column("reason"), commonest), True).as_py()
            if place >= 0:
                reason = batch.column("reason")[place].as_py()
                return str(reason if reason != commonest else with_value(batch, place, reason))
    return commonest
