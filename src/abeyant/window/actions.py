"""What the window's buttons do with a broker cluster: each is a POST of JSON, and one call of `Cluster`'s."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from abeyant.errors import AbeyantError
from abeyant.web import HttpError, Request, Site

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

_STEP = 0.05  # seconds of real time between two steps of a held clock that goes on


class Actions:
    """The routes below /api, for one cluster."""

    def __init__(self, site: Site, cluster: Cluster) -> None:
        """Add the routes to `site`."""
        self.cluster = cluster
        self._running: threading.Event | None = None  # to set, so that the clock is held again
        for name in ("pause", "resume", "stop", "start"):
            site.post(f"/api/brokers/{{id}}/{name}", self._on_broker(name))
        site.post("/api/clock/advance", self._advance)
        site.post("/api/clock/next", self._next)
        site.post("/api/clock/run", self._run)
        site.post("/api/clock/hold", self._hold)
        site.post("/api/faults", self._fault)
        site.add("DELETE", "/api/faults/{id}", self._end_fault)
        site.post("/api/groups/{group}/expire", self._expire)
        site.post("/api/transactions/{id}/fence", self._fence)

    @property
    def runs(self) -> bool:
        """Whether a held clock goes on by itself."""
        return self._running is not None

    def close(self) -> None:
        """Hold the clock again where it goes on."""
        running, self._running = self._running, None
        if running is not None:
            running.set()

    def _on_broker(self, name: str) -> Any:
        def act(request: Request) -> dict[str, Any]:
            text = request.params["id"]
            if not text.isascii() or not text.isdigit():
                raise HttpError(404, f"a broker's id is a whole number, not {text!r}")
            getattr(self.cluster, name)(int(text))
            return {"broker": int(text), "done": name}

        return act

    def _clock(self) -> Any:
        clock = self.cluster.clock
        if not clock.held:
            raise HttpError(409, 'the clock is the machine\'s: a held one needs Cluster(clock="held")')
        return clock

    def _advance(self, request: Request) -> dict[str, Any]:
        seconds = _fields(request, "seconds")["seconds"]
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise AbeyantError(f"seconds is a number, not {seconds!r}")
        try:
            self._clock().advance(seconds)
        except ValueError as error:
            raise AbeyantError(str(error)) from None
        return {"now": self.cluster.clock.now()}

    def _next(self, request: Request) -> dict[str, Any]:
        passed = self._clock().advance_to_next()
        return {"passed": passed, "now": self.cluster.clock.now()}

    def _run(self, request: Request) -> dict[str, Any]:
        clock = self._clock()
        if self._running is None:
            self._running = threading.Event()
            threading.Thread(
                target=_go_on, args=(clock, self._running), name="abeyant-window-clock", daemon=True
            ).start()
        return {"runs": True}

    def _hold(self, request: Request) -> dict[str, Any]:
        self._clock()
        self.close()
        return {"runs": False, "now": self.cluster.clock.now()}

    def _fault(self, request: Request) -> dict[str, Any]:
        given = _fields(
            request, "do", api=None, error=None, seconds=None, answer=False, times=None, topic=None, partition=None,
            broker=None, client_id=None,
        )  # fmt: skip
        kind = given.pop("do")
        own = {"fail": {"error"}, "delay": {"seconds"}, "drop": {"answer"}}
        if kind not in own:
            raise AbeyantError(f"do is fail, delay or drop, not {kind!r}")
        for name in {"error", "seconds", "answer"} - own[kind]:
            if given.pop(name) not in (None, False):
                raise AbeyantError(f"{kind} takes no {name}")
        api = given.pop("api")
        made = getattr(self.cluster, kind)(api, **given)
        return {"id": f"{id(made):x}", "what": repr(made)[8:-1]}

    def _end_fault(self, request: Request) -> dict[str, Any]:
        for fault in list(self.cluster._faults.active):
            if f"{id(fault):x}" == request.params["id"]:
                fault.end()
                return {"ended": True, "hits": fault.hits}
        raise HttpError(404, "there is no such fault, or it has ended")

    def _expire(self, request: Request) -> dict[str, Any]:
        member = _fields(request, "member")["member"]
        self.cluster.expire_member(request.params["group"], member)
        return {"expired": member}

    def _fence(self, request: Request) -> dict[str, Any]:
        self.cluster.fence(request.params["id"])
        return {"fenced": request.params["id"]}


def _go_on(clock: Any, stop: threading.Event) -> None:
    """Advance a held clock by the real time that passes, until `stop` is set or the cluster is closed."""
    then = time.monotonic()
    while not stop.wait(_STEP):
        now = time.monotonic()
        try:
            clock.advance(now - then)
        except (AbeyantError, RuntimeError):
            return
        then = now


def _fields(request: Request, *required: str, **defaults: Any) -> dict[str, Any]:
    """Return the fields of a JSON object. Raises AbeyantError where one is missing or unknown."""
    given = request.json()
    if not isinstance(given, dict):
        raise AbeyantError(f"send a JSON object with {', '.join(required)}")
    for name in given.keys() - {*required, *defaults}:
        raise AbeyantError(f"there is no field {str(name)[:80]!r}: there are {', '.join([*required, *defaults])}")
    for name in required:
        if name not in given:
            raise AbeyantError(f"{name} is missing")
    return {**defaults, **given}
