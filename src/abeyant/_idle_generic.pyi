"""`IdleDetector` as type checkers see it: generic in its peers, which a compiled class cannot be."""

from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any, Generic

from typing_extensions import TypeVar  # which type checkers bring

from abeyant import idle
from abeyant.timer.base import Timer

PeerT = TypeVar("PeerT", bound=Hashable, default=Any)

class IdleDetector(idle.IdleDetector, Generic[PeerT]):
    def __init__(
        self, timeout: float | timedelta, on_idle: Callable[[PeerT], object], timer: Timer | None = None
    ) -> None: ...
    def seen(self, peer: PeerT) -> None: ...
    def forget(self, peer: PeerT) -> bool: ...
    def idle_for(self, peer: PeerT) -> float | None: ...
    def close(self) -> list[PeerT]: ...
