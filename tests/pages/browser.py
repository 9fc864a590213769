"""A real browser for tests: headless Chromium over its own DevTools pipe, with no network to go to.

The pipe (file descriptors 3 and 4, messages ended by NUL) needs neither a driver of the browser's own version nor
a port, and DevTools is where requests, console and exceptions are seen exactly.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_S = 60.0
_SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a server that the test has started
    "--proxy-server=127.0.0.1:9",
    "--remote-debugging-pipe",
)


def installed() -> str | None:
    """Return the path of a browser that is on this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page in the browser: what it did, what it shows, and a hand on its mouse."""

    def __init__(self, pipe: _Pipe, session: str) -> None:
        self._pipe, self._session = pipe, session

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [e["params"]["request"]["url"] for e in self._events("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """Exceptions, dialogs, and whatever the console holds of warnings and errors."""
        said = [
            json.dumps(e["params"]) for e in self._events("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
        ]
        logged = [e["params"]["entry"] for e in self._events("Log.entryAdded")]
        said += [json.dumps(e) for e in logged if e["level"] in {"warning", "error"}]
        printed = [e["params"] for e in self._events("Runtime.consoleAPICalled")]
        return said + [json.dumps(p) for p in printed if p["type"] in {"warning", "error", "assert"}]

    def forget(self) -> None:
        """Begin anew with what the page asked for and said."""
        self._pipe.events.clear()

    def show(self, width: int = 1100, height: int = 900, scheme: str = "light") -> None:
        """Set the window's size and the reader's colour scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path: Path) -> None:
        """Load a file and wait until its scripts have run."""
        self.visit(path.absolute().as_uri())

    def visit(self, address: str) -> None:
        """Load what is at an address and wait until its scripts have run."""
        before = len(self._events("Page.loadEventFired"))
        self.call("Page.navigate", url=address)
        self._pipe.until(lambda: len(self._events("Page.loadEventFired")) > before)

    def run(self, expression: str) -> Any:
        """Evaluate JavaScript (a promise is awaited) and return its value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str, seen: str = "null", patience_s: float = _PATIENCE_S) -> Any:
        """Evaluate JavaScript until it is truthy. Where it never is, tell what `seen` gives, and what the page said."""
        end = time.monotonic() + patience_s
        while not (value := self.run(expression)):
            if time.monotonic() >= end:
                raise AssertionError(f"never true: {expression}; seen: {self.run(seen)}; said: {self.complaints}")
            time.sleep(0.02)
        return value

    def point(self, x: float, y: float) -> None:
        """Move the mouse to a place in the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> None:
        """Save the whole page, from top to bottom, as a PNG."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol on this page."""
        return self._pipe.call(method, params, self._session)

    def _events(self, *methods: str) -> list[dict[str, Any]]:
        return [e for e in self._pipe.events if e["method"] in methods and e.get("sessionId") == self._session]


@contextlib.contextmanager
def browse(program: str) -> Iterator[Page]:
    """Start the browser with a profile of its own, hand out one page, and leave nothing behind."""
    with tempfile.TemporaryDirectory(prefix="abeyant-browser-", ignore_cleanup_errors=True) as profile:
        pipe = _Pipe([program, *_SWITCHES, f"--user-data-dir={profile}", "about:blank"])
        try:
            targets = pipe.call("Target.getTargets", {})["targetInfos"]
            target = next(t["targetId"] for t in targets if t["type"] == "page")
            session = pipe.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            page = Page(pipe, session)
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            yield page
        finally:
            pipe.close()


class _Pipe:
    """The DevTools protocol over two pipes to a browser that this object started and ends."""

    def __init__(self, command: list[str]) -> None:
        self.events: list[dict[str, Any]] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._last, self._rest = 0, b""
        theirs_in, self._out = (_high(fd) for fd in os.pipe())
        self._in, theirs_out = (_high(fd) for fd in os.pipe())
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 3),
            (os.POSIX_SPAWN_DUP2, theirs_out, 4),
            *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        ]
        self._pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)

    def call(self, method: str, params: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        self.until(lambda: number in self._answers)
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def until(self, done: Any) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not done():
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser fell silent"
            block = os.read(self._in, 1 << 20)
            assert block, "the browser ended"
            *messages, self._rest = (self._rest + block).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if "id" in message:
                    self._answers[message["id"]] = message
                else:
                    self.events.append(message)

    def close(self) -> None:
        os.close(self._out)  # the browser ends with its pipe
        end = time.monotonic() + 5
        while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.killpg(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                break
            time.sleep(0.02)
        os.close(self._in)


def _high(descriptor: int) -> int:
    """Move a descriptor out of the way of 0 to 4, where the browser's own will be put."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
