"""Read a stream's pending watches from the state of its checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.errors import AbeyantError
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.streams.columns import column
from abeyant.pipeline.resolver.streams.rules.pending import pending_by_rules
from abeyant.pipeline.resolver.streams.rules.state import decode_rules
from abeyant.pipeline.resolver.streams.shard import reached_by
from abeyant.pipeline.resolver.streams.state import RULES_VERSION, deadline_of, decode_shard
from abeyant.pipeline.schemas import PENDING_WATCHES
from abeyant.pipeline.spark.location import plain

__all__ = ["PENDING_WATCHES", "read_pending"]

_UNPACKED: Final = (
    "instance string, op_id string, kind string, key string, required long, start long, deadline long, combine int, "
    "reached boolean"
)
_NAMES: Final = tuple(part.split()[0] for part in _UNPACKED.split(", "))


def read_pending(spark: SparkSession, checkpoint: str | Path) -> DataFrame:
    """Return the watches pending after a checkpoint's last batch (`schemas.PENDING_WATCHES`); the query may be running.

    The command `abeyant pending` prints these watches.

    An operation is pending until the watermark has passed its outcome. In a stream with options, all watches that may
    complete the operation are returned; `required` is what is still required if events serve one operation each, and
    `deadline` leaves out pauses, extensions and the calendar. Raises `AbeyantError` if no state can be read, and
    `StateError` (through Spark, at the first action) for a state of another version.
    """
    place = plain(str(checkpoint))
    try:
        states = spark.read.format("statestore").load(place)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        # Spark's reader of states quotes a path, except for characters beyond ASCII, and never unquotes it.
        ascii_path = place.encode("ascii", "ignore").decode()
        if quote(ascii_path, safe="/:@!$&'()*+,;=~") != ascii_path:
            reason = "Spark cannot read state below a path with a space, or another character that URIs quote"
        raise AbeyantError(f"no state can be read from the checkpoint {checkpoint}: {reason}") from error
    if "groupState" not in states.select("value.*").columns:
        raise AbeyantError(f"the checkpoint {checkpoint} has no state of abeyant: name an abeyant stream's checkpoint")
    watches = states.select("value.groupState.*").mapInArrow(_unpacked, _UNPACKED)
    # With `any`, no watch is pending once one is reached. All rows pass this window, so that the state is read once.
    any_reached = F.max("reached").over(Window.partitionBy("instance", "op_id", "start"))
    finished = F.when(F.col("combine") < 0, F.col("_done")).otherwise(F.col("reached"))
    waiting = watches.withColumn("_done", any_reached).where(~finished).select(*_NAMES[:7])
    return waiting.withColumns({name: F.timestamp_micros(name) for name in ("start", "deadline")})


def _unpacked(states: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the watches in rows of `state.STATE`; `reached` says whether it is final that a watch was reached."""
    for batch in states:
        for row in batch.to_pylist():
            version, encoded = row.values()
            if version == RULES_VERSION:
                yield pending_by_rules(decode_rules(version, encoded, None), _NAMES)
                continue
            state = decode_shard(version, encoded, None)
            reached = reached_by(Staircases(state.steps.reshape(-1).data), state.watches, deadline_of(encoded))
            several = column(state.watches, "combine") != 0
            mask = several & state.clock.are_final(reached)
            columns = [state.watches.column(name) for name in _NAMES[:-1]]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(np.asarray(mask))], list(_NAMES))
