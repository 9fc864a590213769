"""Protocol classes for the network and the loop, as connections and processes use them, without circular imports."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any, Protocol

from abeyant.simulation.chance import Chance
from abeyant.simulation.trace import Trace

Address = tuple[str, int]


class Life:
    """One life of a process, from a start to its end. It owns the tasks and connections begun in that time."""

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
        """Call back at a time on the loop's clock."""

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> object:
        """Call back in the next turn."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an error that has no caller to catch it."""

    def create_task(self, coro: Any, *, name: str, context: contextvars.Context) -> asyncio.Task[Any]:
        """Return a task of this coroutine."""

    def end_life(self, life: Life) -> None:
        """Discard the callbacks and timers of a process, and end its connections."""

    def process_failed(self, process: Any, error: BaseException | None) -> None:
        """Record that a process ended with an error."""


class Network(Protocol):
    """A simulation's network."""

    context: contextvars.Context

    @property
    def loop(self) -> Loop:
        """Return the loop."""

    def arrival(self, sender: Any) -> float:
        """Return when bytes that an endpoint sends now arrive, in seconds on the loop's clock."""

    def opened(self, endpoint: Any) -> None:
        """Register an endpoint with a transport."""

    def closed(self, endpoint: Any) -> None:
        """Unregister an endpoint."""

    def bind(self, listening: Any, address: Address) -> Address:
        """Let a socket listen at an address; return the address with its port."""

    def unbind(self, listening: Any) -> None:
        """Free the port of a listening socket."""
