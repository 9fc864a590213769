"""Java's consumer as a member of a group: a process of its own, that can be killed."""

from __future__ import annotations

import signal
import subprocess
import time
from types import TracebackType
from typing import Any, NamedTuple

from abeyant.broker.genuine import die_with_parent
from broker.groups.members import SOON, Member
from clients.java import Programs


class Told(NamedTuple):
    """What a rebalance listener was told: the partitions that it has more, or fewer."""

    what: str
    partitions: frozenset[int]
    at: float
    """`time.monotonic()`."""


class JavaMember(Member):
    """Runs `java/Member.java` until its block ends. The consumer's settings are given with _ in place of dots."""

    def __init__(self, programs: Programs, bootstrap: str, topic: str, group: str = "group", **config: Any) -> None:
        protocol, heartbeat = config.get("group_protocol", "classic"), config.pop("heartbeat", SOON)
        super().__init__(bootstrap, topic, group, session=config.pop("session", 30_000), **config)
        settings = {
            "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": "false", "metadata.max.age.ms": 60_000, **self.config,
        }  # fmt: skip
        if protocol == "classic":  # else the broker decides
            settings |= {"session.timeout.ms": self.session, "heartbeat.interval.ms": heartbeat}
        # By either protocol, Java's client does not heartbeat more often than this, which is 100 ms unless set.
        settings["retry.backoff.ms"] = heartbeat
        self._command = programs.command("Member", topic, *(f"{name}={value}" for name, value in settings.items()))
        self.told: list[Told] = []
        self.committed = 0
        """How many of the records that it read it has committed."""

    def __enter__(self) -> JavaMember:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=die_with_parent,
        )  # fmt: skip
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()

    def kill(self) -> None:
        """Signal 9: it cannot say that it leaves."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def consume(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._hear(*line.split())

    def _hear(self, what: str, *more: str) -> None:
        if what == "read":
            self.read.append((int(more[0]), int(more[1])))
        elif what == "committed":
            self.committed = len(self.read)
        elif what == "error":
            raise AssertionError(more[0])
        elif what != "over":
            partitions = frozenset(map(int, more))
            self.partitions = self.partitions | partitions if what == "assigned" else self.partitions - partitions
            self.told.append(Told(what, partitions, time.monotonic()))
