"""Where each row is resolved: a *place*, which is a key, or for a hot key one piece of it.

What an operation needs of its key is the first time at which progress reached `required` (see engine.resolve), so a key
may be cut along its progress. A hot key gets `CUTS` cuts, quantiles of a sample of its rows, and with them `CUTS` + 1
pieces: a row is in the piece whose number is how many cuts its progress (or `required`) has reached. Whatever is above
a piece sends it one row, the least `at` of all of it. A value that is as frequent as a whole piece makes cuts coincide:
operations that require just that value are spread over the pieces between the coinciding cuts, which are otherwise
empty, and an event with exactly a cut's progress is sent nowhere, for two rows tell each piece all of it:

    piece n holds   its operations; events with cut n < progress < cut n+1;
                    (progress cut n,   at the least of all events with progress >= cut n)
                    (progress "above", at the least of all events with progress >= cut n+1)

Cutting changes no outcome. So a sample is good enough to say which keys are hot; a key that it misses only makes one
task longer.

A key is known by two 64-bit hashes with different seeds. Two keys of one table with both the same would be mixed up;
the chance of that is below 10**-19 for a billion keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["DEFAULT_HEAT", "Heat", "HotKeys"]

CUTS: Final = 31
_MOST_HOT_KEYS: Final = 1000  # their cuts travel to every task
_ABOVE: Final = (1 << 63) - 1
_SEED: Final = 1


@dataclass(frozen=True)
class Heat:
    """When a key is hot: at least `least` of its rows are in a sample that takes `fraction` of all."""

    fraction: float
    least: int


DEFAULT_HEAT: Final = Heat(1 / 1024, 512)
"""Hot is from about half a million rows on."""


class HotKeys:
    """The hot keys of the tables `operations` and `events`, as they were given."""

    def __init__(self, operations: DataFrame, events: DataFrame, heat: Heat = DEFAULT_HEAT) -> None:
        # Sampled before anything is computed of a row: most are only skipped.
        few = (table.sample(fraction=heat.fraction, seed=1) for table in (operations, events))
        watched, happened = next(few).select("instance", F.inline("watches")), next(few)
        quantiles = F.percentile_approx("_value", [n / (CUTS + 1) for n in range(1, CUTS + 1)], 1000)
        found = (
            watched.select(_hash().alias("_key"), F.col("required").alias("_value"))
            .union(happened.select(_hash(), F.col("progress")))
            .groupBy("_key")
            .agg(F.count("_value").alias("_rows"), quantiles.alias("_cuts"))
            .where(F.col("_rows") >= heat.least)
            .orderBy(F.desc("_rows"))
            .limit(_MOST_HOT_KEYS)
        )
        self._cuts = F.broadcast(found.select("_key", "_cuts"))

    def place_operations(self, operations: DataFrame) -> DataFrame:
        """Add `place` and `identity` to operations of one watch a row: `op_id`, `instance`, `key`, `required`, ..."""
        reached, passed = _reached("required"), _passed("required")
        spread = F.when(reached > passed, F.pmod(F.hash("op_id"), reached - passed)).otherwise(0)
        return self._placed(operations, reached - spread).drop("_key", "_cuts")

    def place_events(self, events: DataFrame) -> DataFrame:
        """Return (`place`, `identity`, `progress`, `at_us`) of the events, and of what is told to pieces of hot keys.

        Takes `instance`, `key`, `progress` and `at_us`.
        """
        on_a_cut = F.get("_cuts", _passed("progress")) == F.col("progress")
        pieces = self._placed(events, _reached("progress")).where(~F.coalesce(on_a_cut, F.lit(False)))
        told = _told(events.join(self._cuts, _hash() == F.col("_key")))
        return pieces.select(*_PLACED).union(told.select(*_PLACED))

    def _placed(self, rows: DataFrame, piece: Column) -> DataFrame:
        joined = rows.join(self._cuts, _hash() == F.col("_key"), "left")
        place = _hash() + F.when(F.col("_cuts").isNotNull(), piece).otherwise(0)
        return joined.withColumns({"place": place, "identity": _identity()})


def _told(hot: DataFrame) -> DataFrame:
    """Return what each piece of a hot key is told of the events on its lower cut, and of those above it."""
    key = (_hash().alias("_hash"), _identity().alias("identity"), "_cuts")
    first = hot.groupBy(*key, _reached("progress").alias("_reached")).agg(F.min("at_us").alias("_first"))
    below = first.withColumn("_piece", F.explode(F.sequence(F.lit(0), F.col("_reached").cast("int"))))
    by_piece = below.groupBy("_hash", "identity", "_cuts", "_piece").agg(
        F.min("_first").alias("_here"),
        F.min(F.when(F.col("_reached") > F.col("_piece"), F.col("_first"))).alias("_above"),
    )
    lower_cut = F.get("_cuts", F.col("_piece") - 1)  # the lowest piece has none
    on_the_cut = F.struct(lower_cut.alias("progress"), F.col("_here").alias("at_us"))
    above_it = F.struct(F.lit(_ABOVE).alias("progress"), F.col("_above").alias("at_us"))
    rows = by_piece.select(
        (F.col("_hash") + F.col("_piece")).alias("place"), "identity", F.inline(F.array(on_the_cut, above_it))
    )
    return rows.dropna()


_PLACED: Final = ("place", "identity", "progress", "at_us")


def _hash() -> Column:
    # Two bits less, so that a piece's number can be added.
    return F.shiftrightunsigned(F.xxhash64("instance", "key"), 2)


def _identity() -> Column:
    return F.xxhash64(F.lit(_SEED), "instance", "key")


# Spark has no binary search in an array, and a lambda would not be compiled. Sorting one value more into the cuts is.


def _passed(value: str) -> Column:
    """Count the cuts below a value."""
    return _position(value, ascending=True)


def _reached(value: str) -> Column:
    """Count the cuts at or below a value."""
    return F.lit(CUTS) - _position(value, ascending=False)


def _position(value: str, *, ascending: bool) -> Column:
    among = F.sort_array(F.array_append("_cuts", F.col(value)), ascending)
    return F.array_position(among, F.col(value)) - 1
