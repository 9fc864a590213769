"""The configurations of a replay: ticks, wheel sizes, time-outs and purge intervals, in any combination."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Final

from pyspark.sql import DataFrame

from abeyant.engine.wheel import TimingWheel
from abeyant.errors import AbeyantError

__all__ = ["Configuration", "chosen", "grid"]

_MOST_MS: Final = 1 << 50  # 35,000 years: every deadline stays far inside 64 bits of microseconds


@dataclass(frozen=True, slots=True)
class Configuration:
    """A purgatory for `replay` to try: its tick, wheel, time-out and purging.

    The defaults are Kafka's wheel, and the operations' own time-outs. `grid` returns combinations.
    """

    tick_ms: float = 1.0
    """Tick in milliseconds; must be a whole number of microseconds."""
    wheel_size: int = 20
    timeout_ms: int | None = None
    """Time-out in milliseconds for every operation; None: each has its own."""
    purge_interval: int | None = None
    """Number of ended operations that Kafka's own purgatory leaves on watch lists until a purge; None: not replayed."""

    def __post_init__(self) -> None:
        """Raise ValueError for a value that a purgatory cannot have."""
        is_whole = not isinstance(self.tick_ms, bool) and abs(self.tick_us - self.tick_ms * 1000) < 1e-6
        if not is_whole or not 0 < self.tick_us < _MOST_MS:
            raise ValueError(f"tick_ms must be a positive number of whole microseconds, not {self.tick_ms!r}")
        TimingWheel(self.tick_us, self.wheel_size)  # raises ValueError for a size that a wheel cannot have
        _check("timeout_ms", self.timeout_ms, 0)
        _check("purge_interval", self.purge_interval, 1)

    @property
    def tick_us(self) -> int:
        """The tick in microseconds."""
        return round(self.tick_ms * 1000)


def _check(name: str, value: int | None, least: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_MS):
        raise ValueError(f"{name} must be a whole number from {least} to {_MOST_MS}, or None, not {value!r}")


def grid(
    *,
    tick_ms: Iterable[float] = (1.0,),
    wheel_size: Iterable[int] = (20,),
    timeout_ms: Iterable[int | None] = (None,),
    purge_interval: Iterable[int | None] = (None,),
) -> list[Configuration]:
    """Return every combination of the values, each once. Raises ValueError for a value that a purgatory cannot have."""
    return list(
        dict.fromkeys(Configuration(*choice) for choice in product(tick_ms, wheel_size, timeout_ms, purge_interval))
    )


def chosen(configurations: Iterable[Configuration] | DataFrame) -> Sequence[Configuration]:
    """Return the configurations without duplicates. Collect them if they are a table with a column for each field.

    A missing or null column means the default. Raises `AbeyantError` for an unknown column, an impossible value, or no
    configuration.
    """
    if isinstance(configurations, DataFrame):
        configurations = [_configuration(row.asDict()) for row in configurations.collect()]
    distinct = list(dict.fromkeys(configurations))
    if not distinct:
        raise AbeyantError("there is no configuration to replay: give at least one")
    return distinct


def _configuration(row: dict[str, Any]) -> Configuration:
    names = [field.name for field in fields(Configuration)]
    for name in row:
        if name not in names:
            raise AbeyantError(f"configurations: there is no setting {name!r}; the settings are {', '.join(names)}")
    try:
        return Configuration(**{name: value for name, value in row.items() if value is not None})
    except (TypeError, ValueError) as error:
        raise AbeyantError(f"configurations: {error}") from error
