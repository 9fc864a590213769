"""Make outcomes from the times at which operations' conditions first held."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from abeyant.kernels.resolve import NEVER
from abeyant.pipeline.resolver.streams.columns import Longs, column
from abeyant.pipeline.resolver.streams.layout import OUTCOMES

__all__ = ["outcomes_at"]


def outcomes_at(operations: pa.RecordBatch, reached: Longs) -> pa.RecordBatch:
    """Return the outcomes (`layout.OUTCOMES`) of operations, given when each condition first held, or `NEVER`."""
    in_time = reached != NEVER
    at = np.where(in_time, reached, column(operations, "deadline"))
    return pa.RecordBatch.from_arrays(
        [
            *(operations.column(name) for name in ("instance", "op_id", "kind")),
            _WORDS.take(pa.array(in_time.astype(np.int8))),
            pa.array(at).cast(OUTCOMES.field("at").type),
            pa.array((at - column(operations, "start")) / 1000),
        ],
        schema=OUTCOMES,
    )


_WORDS = pa.array(["expired", "completed"])
