"""What is told of rows that came too late, where they are many: how many, by how much, why probably, and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["Lateness"]

_SHARE: Final = 0.01
"""More than this share of a batch, or of a run, is told of."""

_UNITS: Final = (("d", 86_400, 2), ("h", 3600, 2), ("m", 60, 2), ("s", 1, 0))
"""How a duration is written, and from how many of the unit on."""


@dataclass(frozen=True)
class Lateness:
    """How far out of order a stream's rows may come, and where they come from."""

    seconds: float
    topics: bool = False
    """Whether rows come from Kafka only, so that files play no part."""

    def told(self, what: str, late: int, rows: int, late_by: float | None, *, any_share: bool = False) -> str | None:
        """Return a line for a batch, or a run, named `what`; None where few of its rows came too late.

        With `any_share` few are told of as well.
        `late_by`: by how many seconds the latest one was before the watermark; None after the end of input.
        """
        if not late or (late <= _SHARE * rows and not any_share):
            return None
        share = 100 * min(late / max(rows, 1), 1.0)
        said = f"{what}: {late:,} of {rows:,} rows read ({share:.1f} %) came too late and were rejected"
        if late_by is None:
            return f"{said}: the input had ended"
        needed = _rounded_up(self.seconds + late_by)
        return (
            f"{said}. They lie up to {_rounded_up(late_by)} before what counts as known. {self._cause()} "
            f"What is rejected stays so: begin anew with another --out and --lateness {needed}"
            f"{'' if self.topics else ', or take files that belong together in one batch (--files-per-batch)'}"
        )

    def _cause(self) -> str:
        allowed = f"--lateness {_rounded_up(self.seconds)}"
        if self.topics:
            return (
                f"Probably records are out of order by more than {allowed}, or one partition is read ahead of others."
            )
        return (
            f"Probably files were taken in another order than that of the times in them (they go by the time of their "
            f"last change, then by name), or rows are out of order by more than {allowed}."
        )


def _rounded_up(seconds: float) -> str:
    """Return a duration as --lateness takes it, at least as long: 90s, 3m, 26h."""
    unit, length, _ = next(each for each in _UNITS if seconds >= each[1] * each[2])
    return f"{math.ceil(seconds / length)}{unit}"
