"""What connections and processes need of their network and loop, so that nothing here imports in a circle."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, Protocol

from abeyant.simulation.chance import Chance
from abeyant.simulation.trace import Trace

Address = tuple[str, int]


class Life:
    """A process from one start to its end: what owns tasks and connections."""

    __slots__ = ("clock_ahead", "dead", "name", "number")

    def __init__(self, name: str, number: int, clock_ahead: float) -> None:
        self.name = name
        self.number = number
        self.clock_ahead = clock_ahead  # seconds
        self.dead = False

    def __repr__(self) -> str:
        return f"<{self.name}, start {self.number}{', killed' if self.dead else ''}>"


OWNER: contextvars.ContextVar[Life | None] = contextvars.ContextVar("abeyant_process", default=None)


class Loop(Protocol):
    """A simulation's loop."""

    now: float
    chance: Chance
    trace: Trace

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> object:
        """Call back at a time of the loop's clock."""

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> object:
        """Call back in the next turn."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an error that has no caller to catch it."""

    def create_task(self, coro: Any, *, name: str, context: contextvars.Context) -> asyncio.Task[Any]:
        """Return a task of this coroutine."""

    def end_life(self, life: Life) -> None:
        """Let nothing of a process run again."""

    def process_failed(self, process: Any, error: BaseException | None) -> None:
        """Note that an error has ended a process."""


class Network(Protocol):
    """A simulation's network."""

    context: contextvars.Context

    @property
    def loop(self) -> Loop:
        """Return the loop."""

    def arrival(self, sender: Any) -> float:
        """Return when bytes that an endpoint sends now arrive."""

    def opened(self, endpoint: Any) -> None:
        """Note an end that a transport has taken over."""

    def closed(self, endpoint: Any) -> None:
        """Forget an end."""

    def bind(self, listening: Any, address: Address) -> Address:
        """Let a socket listen; return its address."""

    def unbind(self, listening: Any) -> None:
        """Free the port of a socket that listened."""
