"""Complete or expire, over whole tables in this process: without Spark, without Java.

    from abeyance import tables

    outcomes = tables.resolve(operations, events)

Tables are whatever speaks Arrow: pandas, Polars, DuckDB, pyarrow, or the path of a Parquet file or folder. Outcomes,
columns and laws are those of `abeyance.pipeline.resolve`, which does the same on Spark.

    operations ── valid ── watches by key ──────────────────────┐
                                                                ├── reached ── combined ── outcomes
    events ────── valid ── rows by key ── piles ── staircases ──┘

Keys are known by hashes, see `keys`. A *pile* holds the events of one key in 256, and reduces them to staircases (see
`engine.resolve`) as they come. So memory grows with the steps of the staircases, and not with the events. Chunks of
rows, and then piles, are worked on by several threads; the engine and Arrow leave the interpreter's lock to the others.

Needs the extra `tables` (`pip install 'abeyance[tables]'`): pyarrow and NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from abeyance.errors import AbeyanceError, SchemaError

if TYPE_CHECKING:
    from abeyance.tables.resolving import resolve, resolve_batches
    from abeyance.tables.validity import invalid_events, invalid_operations

__all__ = ["SchemaError", "invalid_events", "invalid_operations", "resolve", "resolve_batches"]

_HOMES: Final = {
    "invalid_events": "validity",
    "invalid_operations": "validity",
    "resolve": "resolving",
    "resolve_batches": "resolving",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("pyarrow", "numpy"):
            raise AbeyanceError(f"{name} needs {missing}: pip install 'abeyance[tables]'") from error
        raise
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
