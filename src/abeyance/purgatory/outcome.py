"""How an operation stands: plain integers inside, because they are compared at every step; words outside."""

from __future__ import annotations

from typing import Final, Literal

Outcome = Literal["completed", "expired", "cancelled"]

PENDING: Final = 0
COMPLETED: Final = 1
EXPIRED: Final = 2
CANCELLED: Final = 3

OUTCOMES: Final[tuple[Outcome | None, ...]] = (None, "completed", "expired", "cancelled")
