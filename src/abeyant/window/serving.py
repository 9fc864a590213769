"""Serve the window: what it shows, its routes, and the stream of events for a page."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from abeyant import aio
from abeyant.errors import AbeyantError
from abeyant.idle import IdleDetector
from abeyant.purgatory import Purgatory
from abeyant.purgatory.survey import timer_of
from abeyant.timer.base import Timer
from abeyant.web import Events, Request, Response, Site
from abeyant.window.loops import LoopView
from abeyant.window.page import page
from abeyant.window.waits import PurgatoryView, read_waits
from abeyant.window.wheels import TimerView

EVERY: Final = 0.25  # seconds between two events
_MANY: Final = 5_000  # pending operations from which on events are sent half as often
PARTS: Final = ("wheels", "waits", "cluster")


class Window:
    """An open window. `url` is its address; close it, or use it as a context manager."""

    def __init__(
        self, things: Mapping[str, object], host: str, port: int, token: str | None, hosts: Collection[str]
    ) -> None:
        """Not for users: `serve` makes windows."""
        self._began = time.time()
        self._timers: list[TimerView] = []
        self._purgatories: list[PurgatoryView] = []
        self._loops: list[LoopView] = []
        self._cluster: Any = None
        self._site = Site()
        self._site.get("/", _page)
        self._site.get("/state", self._state)
        self._site.get("/events", self._events)
        for name, item in things.items():
            self._add(name, item)
        advertised = () if self._cluster is None else (self._cluster._advertised[0],)
        self._server = self._site.serve(host, port, token=token, hosts=(*hosts, *advertised))
        self.url: str = self._server.url if token is None else f"{self._server.url}?token={token}"
        """The address of the window, with the token."""
        self.port: int = self._server.port
        """The port of the window."""

    def close(self) -> None:
        """Close the window and disconnect its pages. A second call does nothing."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Window at {self._server.url}{' closed' if self._server.closed else ''}>"

    # -- what it shows

    def _add(self, name: str, item: object) -> None:
        if isinstance(item, Timer):
            self._add_timer(name, item)
        elif isinstance(item, (Purgatory, aio.Purgatory)):
            self._purgatories.append(PurgatoryView(name, item))
            room = self._purgatories[-1].room
            timer = item._timer if isinstance(item, aio.Purgatory) else None if room is None else timer_of(room)
            self._add_timer(f"{name}'s timer", timer)
        elif isinstance(item, IdleDetector):
            raise AbeyantError(
                f"{name}: a window cannot show an IdleDetector: pass its timer, as in IdleDetector(..., timer=timer)"
            )
        elif isinstance(item, asyncio.AbstractEventLoop):
            self._add_loop(name, item)
        elif _is_cluster(item):
            self._add_cluster(name, item)
        else:
            raise AbeyantError(
                f"{name}: a window shows timers, purgatories, event loops and a broker cluster, not {item!r}"
            )

    def _add_timer(self, name: str, timer: object) -> None:
        if not isinstance(timer, Timer) or any(view.timer is timer for view in self._timers):
            return
        self._timers.append(TimerView(name, timer))
        if isinstance(timer, aio.Timer):
            self._add_loop(f"{name}'s loop", timer.loop)

    def _add_loop(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        if not any(view.loop is loop for view in self._loops):
            self._loops.append(LoopView(name, loop))

    def _add_cluster(self, name: str, cluster: Any) -> None:
        if self._cluster is not None:
            raise AbeyantError("a window shows only one broker cluster: open another window for the other cluster")
        if cluster._loop is None:
            raise AbeyantError("the cluster is not open: use it in a `with` statement, or call open()")
        from abeyant.broker.control.serving import add_control_routes

        self._cluster = cluster
        add_control_routes(cluster, self._site)
        self._add_timer("broker", cluster.clock.timer)
        self._add_loop("broker", cluster._loop)

    # -- what pages read

    async def _state(self, request: Request) -> dict[str, Any]:
        return await self._look(request.query)

    async def _events(self, request: Request) -> Events:
        return Events(self._looks(request.query))

    async def _looks(self, query: Mapping[str, str]) -> AsyncIterator[object]:
        while True:
            state = await self._look(query)
            yield state
            await asyncio.sleep(EVERY if state.get("waits", {}).get("total", 0) < _MANY else 2 * EVERY)

    async def _look(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the data for a page with this query, as JSON values."""
        parts = set(query.get("show", ",".join(PARTS)).split(","))
        state: dict[str, Any] = {
            "program": {
                "pid": os.getpid(),
                "name": _program(),
                "python": sys.version.split()[0],
            },
            "at": time.monotonic(),
            "loops": [loop.look() for loop in self._loops],
        }
        purgatories = list(self._purgatories)
        if self._cluster is not None:
            from abeyant.window import cluster

            purgatories += cluster.purgatories_of(self._cluster)
            if "cluster" in parts:
                internal = query.get("internal", "") == "1"
                state["cluster"] = await cluster.look(self._cluster, query.get("find", ""), internal)
        if "wheels" in parts:
            state["timers"] = [await timer.look() for timer in self._timers]
        state["purgatories"] = [purgatory.counts() for purgatory in purgatories]
        if "waits" in parts:
            state["waits"] = await read_waits(
                purgatories, query.get("q", ""), query.get("in", ""), query.get("client", "")
            )
        return state


def serve(
    *things: object,
    names: Mapping[str, object] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    hosts: Collection[str] = (),
) -> Window:
    """Open a window on timers, purgatories, event loops and a broker cluster; return it. `url` is its address.

    `things` are shown by their own names; `names` maps names to further things (unlike the `names` of
    `metrics.Collector`). The timer of a purgatory, the loop of an `aio.Timer`, and the event loop that runs in the
    calling thread are shown, too. `port` 0 picks a free one. `host` beyond loopback needs a `token`, which clients must
    send; `hosts` are further names by which clients reach this machine. Nothing is read while no page is open. Raises
    AbeyantError for other objects, and for a port that is taken.

    Examples:
        >>> with serve(SystemTimer("rpc")) as view:
        ...     print(view.url)
        http://127.0.0.1:.../
    """
    items: dict[str, object] = {}
    for item in things:
        items[_unused(_own_name(item), items)] = item
    for name, item in (names or {}).items():
        items[_unused(name, items)] = item
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        items[_unused("loop", items)] = loop
    if not items:
        raise AbeyantError("a window needs something to show: serve(timer, purgatory, ...)")
    return Window(items, host, port, token, hosts)


def _program() -> str:
    path = Path(sys.argv[0] if sys.argv else "")
    return path.parent.name if path.name == "__main__.py" else path.name


def _own_name(item: object) -> str:
    name = getattr(item, "name", None)
    if isinstance(name, str) and name:
        return name
    return "broker" if _is_cluster(item) else type(item).__name__


def _unused(name: str, names: Mapping[str, object]) -> str:
    number, candidate = 1, name
    while candidate in names:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def _is_cluster(item: object) -> bool:
    """Return whether `item` is a broker cluster, without importing the broker where the program has not."""
    module = sys.modules.get("abeyant.broker.cluster")
    return module is not None and isinstance(item, module.Cluster)


async def _page(request: Request) -> Response:
    return page()
