"""The stage of a scenario: its clock, its client processes, and the record of what happened."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from abeyant.broker.genuine import Cluster, die_with_parent, terminate

from .toolchain import HERE, CaptureError, Toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOOLS = "org.apache.kafka.tools."


@dataclass(frozen=True)
class Event:
    """Something that was done to the cluster or its clients, for the time line."""

    at: datetime
    what: str


class CutShortError(Exception):
    """The capture is as long as was asked for."""


class Stage:
    """Starts clients, keeps them to the scenario's clock and always ends them."""

    def __init__(self, tools: Toolchain, cluster: Cluster, folder: Path, seconds: float) -> None:
        self.cluster = cluster
        self.events: list[Event] = []
        self._tools = tools
        self._folder = folder
        self._seconds = seconds
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self._started = time.monotonic()
        self.ended: set[int] = set()
        """Brokers that have been ended on purpose."""
        folder.mkdir(parents=True)

    def until(self, seconds: float) -> None:
        """Wait for a moment of the scenario; complain if somebody died meanwhile."""
        end = self._started + min(seconds, self._seconds)
        while True:
            self.cluster.check_alive(but=self.ended)
            for name, process in self._clients.items():
                if process.poll() not in (None, 0):
                    log = (self._folder / f"{name}.log").read_text(errors="replace")
                    raise CaptureError(f"client {name} ended with {process.returncode}:\n{log[-1500:]}")
            if (wait := end - time.monotonic()) <= 0:
                break
            time.sleep(min(0.25, wait))
        if seconds > self._seconds:
            raise CutShortError

    def note(self, what: str) -> None:
        """Put an event on the time line."""
        event = Event(datetime.now(UTC), what)
        self.events.append(event)
        print(f"  {event.at:%H:%M:%S} {what}", flush=True)

    def python(self, name: str, role: str, *arguments: str | int | float, quiet: bool = False) -> None:
        """Start a client of clients.py under this name."""
        common = ("--bootstrap", self.cluster.bootstrap, "--name", name)
        command = [str(self._tools.python), str(HERE / "clients.py"), role, *common]
        self._start(name, [*command, *map(str, arguments)], quiet)

    def tool(self, name: str, main_class: str, *arguments: str | int, quiet: bool = False, main: str = TOOLS) -> None:
        """Start one of Kafka's own command-line tools."""
        command = self._tools.kafka.command(
            main + main_class, "--bootstrap-server", self.cluster.bootstrap,
            *map(str, arguments), options=("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        )  # fmt: skip
        self._start(name, command, quiet)

    def tool_delete_records(self, name: str, topic: str, partition: int) -> None:
        """Delete all records of a partition with Kafka's own tool, which reads them from a file."""
        ask = {"partitions": [{"topic": topic, "partition": partition, "offset": -1}], "version": 1}
        file = self._folder / f"{name}.json"
        file.write_text(json.dumps(ask))
        self.tool(name, "DeleteRecordsCommand", "--offset-json-file", str(file))

    def finish(self, name: str, seconds: float = 30.0) -> None:
        """Wait until a client has ended by itself, as one that asks only once does."""
        try:
            code = self._clients[name].wait(seconds)
        except subprocess.TimeoutExpired:
            raise CaptureError(f"client {name} did not end in {seconds:.0f} s") from None
        if code != 0:
            log = (self._folder / f"{name}.log").read_text(errors="replace")
            raise CaptureError(f"client {name} ended with {code}:\n{log[-1500:]}")

    def leave(self, *names: str) -> None:
        """End clients cleanly: consumers leave their group."""
        for name in names:
            self.note(f"client {name} ends")
            self._end(self._clients.pop(name))

    def kill(self, name: str) -> None:
        """Kill with signal 9: nobody is told."""
        process = self._clients.pop(name)
        process.kill()
        process.wait()
        self.note(f"client {name} killed with kill -9")

    def freeze_client(self, name: str, *, quiet: bool = False) -> None:
        """Let a client stand still; its connections stay open."""
        self._clients[name].send_signal(signal.SIGSTOP)
        if not quiet:
            self.note(f"client {name} frozen with SIGSTOP")

    def thaw_client(self, name: str, *, quiet: bool = False) -> None:
        """Let a frozen client go on."""
        self._clients[name].send_signal(signal.SIGCONT)
        if not quiet:
            self.note(f"client {name} resumed with SIGCONT")

    def freeze(self, broker: int) -> None:
        """Let a broker stand still; its connections stay open."""
        self.cluster.freeze(broker)
        self.note(f"broker {broker} frozen with SIGSTOP")

    def thaw(self, broker: int) -> None:
        """Let a frozen broker go on."""
        self.cluster.thaw(broker)
        self.note(f"broker {broker} resumed with SIGCONT")

    @contextlib.contextmanager
    def running(self) -> Iterator[Stage]:
        """Start the clock; in the end, end every client."""
        self._started = time.monotonic()
        try:
            yield self
        finally:
            for process in self._clients.values():
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                    process.terminate()
            for process in self._clients.values():
                self._end(process)

    def _start(self, name: str, command: list[str], quiet: bool) -> None:
        if not quiet:
            self.note(f"client {name} starts")
        with (self._folder / f"{name}.log").open("wb") as out:
            self._clients[name] = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        terminate(process, 8.0)
