"""What members of groups cost: ten thousand that heartbeat every 3 s, and a rebalance of a thousand.

Members speak the classic protocol, each over a connection of its own, and do what a client's coordinator thread does,
with requests that are laid out by hand: so the client's part is small, and the same for every peer.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from lab.broker.peers import PeerError, Serving
from lab.broker.primitives import Reader, Writer

INTERVAL = 3.0  # seconds between two heartbeats of a member
GROUP = 100  # members of each group, where ten thousand heartbeat
REBALANCES = 5
_SESSION, _REBALANCE = 120_000, 120_000  # ms
_JOIN, _SYNC, _HEARTBEAT, _LEAVE, _FIND = (11, 5), (14, 3), (12, 3), (13, 3), (10, 2)  # the API and its version
_MEMBER_ID_REQUIRED, _REBALANCE_IN_PROGRESS, _UNKNOWN_MEMBER_ID = 79, 27, 25
_NOT_YET = (14, 15, 16)  # a coordinator that loads, is not there yet, or is another
_PATIENCE = 120.0  # seconds


class Costs(NamedTuple):
    """What members cost."""

    core: float
    """Percent of a core while they heartbeat."""
    memory: float
    """Megabytes that are resident meanwhile."""
    rebalance: float
    """Seconds from a LeaveGroup to the last answer to a SyncGroup."""
    cpu: float
    """Seconds of the brokers' processor time for it."""

    def rows(self) -> list[tuple[str, float]]:
        """Its figures as rows of the table."""
        return [
            ("members", self.core), ("members-memory", self.memory), ("rebalance", self.rebalance),
            ("rebalance-cpu", self.cpu),
        ]  # fmt: skip


def measure(peer: Serving, members: int, rebalanced: int, seconds: float) -> Costs:
    """Let `members` heartbeat for `seconds`, in groups of a hundred; then let a group of `rebalanced` rebalance."""
    many = _Members(peer)
    try:
        for number in range(members // GROUP):
            many.join(f"bench-{time.time_ns()}-{number}", GROUP)
        core = many.heartbeat(seconds)
        memory = peer.memory()
    finally:
        many.close()
    one = _Members(peer)
    try:
        group = one.join(f"bench-{time.time_ns()}", rebalanced)
        taken = [one.rebalance(group) for _ in range(REBALANCES)]
    finally:
        one.close()
    return Costs(core, memory, *(statistics.median(column) for column in zip(*taken, strict=True)))


class _Member:
    """One, and what it does with an answer."""

    def __init__(self, group: str, address: tuple[str, int]) -> None:
        self.group = group
        self.id = ""
        self.generation = -1
        self.stable = False
        self.heard: Callable[[Reader], None] | None = None
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._kept = b""

    def _ask(self, api: tuple[int, int], body: Writer, heard: Callable[[Reader], None]) -> None:
        assert self.heard is None
        self.heard = heard
        self.socket.sendall(_request(api, body))

    def _told(self, generation: int) -> Writer:
        """Who it is, as most requests begin."""
        return Writer().text(self.group).numbers("i", generation).text(self.id).text(None)

    def read(self) -> None:
        """Take what has come; once it is whole, go on."""
        came = self.socket.recv(1 << 20)
        if not came:
            raise PeerError(f"a broker has closed the connection of a member of {self.group}")
        self._kept += came
        if len(self._kept) < 4 or len(self._kept) < 4 + struct.unpack_from(">i", self._kept)[0]:
            return
        answer, self._kept = Reader(self._kept[8:]), b""
        heard, self.heard = self.heard, None
        assert heard is not None
        heard(answer)

    def join(self) -> None:
        """Join, or join again."""
        self.stable = False
        body = Writer().text(self.group).numbers("ii", _SESSION, _REBALANCE).text(self.id).text(None)
        self._ask(_JOIN, body.text("bench").numbers("i", 1).text("even").data(b""), self._joined)

    def _joined(self, answer: Reader) -> None:
        answer.number("i")
        error = answer.number("h")
        self.generation = answer.number("i")
        answer.text()
        leader = answer.text()
        self.id = answer.text()
        if error == _MEMBER_ID_REQUIRED:
            self.join()
            return
        _expect(error, "JoinGroup")
        count = answer.number("i")
        body = self._told(self.generation).numbers("i", count)
        for _ in range(count):
            body.text(answer.text()).data(b"its part")
            answer.text()
            answer.data()
        self._ask(_SYNC, body, self._synced)
        assert bool(count) == (leader == self.id)

    def _synced(self, answer: Reader) -> None:
        answer.number("i")
        error = answer.number("h")
        if error == _REBALANCE_IN_PROGRESS:
            self.join()
            return
        _expect(error, "SyncGroup")
        self.stable = True

    def heartbeat(self) -> None:
        """Be alive; join again when told to."""
        self._ask(_HEARTBEAT, self._told(self.generation), self._beaten)

    def _beaten(self, answer: Reader) -> None:
        answer.number("i")
        error = answer.number("h")
        if error == _REBALANCE_IN_PROGRESS:
            self.join()
        else:
            _expect(error, "Heartbeat")

    def leave(self) -> None:
        """Leave, and be nobody."""
        body = self._told(1)
        self.id, self.stable = "", False
        self._ask(_LEAVE, body, lambda _: None)


class _Members:
    """Many, one loop for all."""

    def __init__(self, peer: Serving) -> None:
        self._peer = peer
        self._members: list[_Member] = []
        self._selector = selectors.DefaultSelector()

    def join(self, group: str, count: int) -> list[_Member]:
        """A stable group of so many."""
        address = _coordinator(self._peer, group)
        members = [_Member(group, address) for _ in range(count)]
        for member in members:
            self._selector.register(member.socket, selectors.EVENT_READ, member)
        self._members += members
        members[0].join()
        self._run(lambda: members[0].stable)
        for member in members[1:]:
            member.join()
        self._settle(members)
        return members

    def rebalance(self, members: list[_Member]) -> tuple[float, float]:
        """Seconds from a leave until the others are stable again, and of processor time; then the one comes back."""
        leaves, others = members[-1], members[:-1]
        cpu, begun = self._peer.cpu(), time.perf_counter()
        leaves.leave()
        self._run(lambda: leaves.heard is None)
        self._settle(others, begin=True)
        taken = time.perf_counter() - begun, self._peer.cpu() - cpu
        leaves.join()
        self._settle(members, begin=True)
        return taken

    def _settle(self, members: list[_Member], *, begin: bool = False) -> None:
        """Until all are stable in one generation. Who is asks if it still is, with `begin` at once, then at times."""

        def settled() -> bool:
            together = len({one.generation for one in members}) == 1
            return together and all(one.stable and one.heard is None for one in members)

        asked = 0.0 if begin else time.monotonic()
        give_up = time.monotonic() + _PATIENCE
        while begin or not settled():
            begin = False
            if time.monotonic() > give_up:
                raise PeerError("a rebalance has come to no end")
            if time.monotonic() - asked > 0.1 and not any(one.stable and one.heard is not None for one in members):
                asked = time.monotonic()
                for member in members:
                    if member.stable:
                        member.heartbeat()
            self._hear(0.1)

    def heartbeat(self, seconds: float) -> float:
        """Percent of a core that the peer takes while each member heartbeats every `INTERVAL`."""
        step = INTERVAL / len(self._members)
        begun, before, sent = time.monotonic(), self._peer.cpu(), 0
        while (now := time.monotonic() - begun) < seconds:
            while sent * step <= now:
                member = self._members[sent % len(self._members)]
                if member.heard is not None:
                    raise PeerError(f"a heartbeat has had no answer for {INTERVAL} s")
                member.heartbeat()
                sent += 1
            self._hear(0.002)
        taken = (self._peer.cpu() - before) / seconds * 100
        if not all(member.stable for member in self._members):
            raise PeerError("a group has rebalanced while it was to be stable")
        return taken

    def _run(self, until: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _PATIENCE
        while not until():
            if time.monotonic() > give_up:
                raise PeerError("a member has had no answer")
            self._hear(0.1)

    def _hear(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            key.data.read()

    def close(self) -> None:
        """Let go of all connections."""
        for member in self._members:
            member.socket.close()
        self._selector.close()


def _coordinator(peer: Serving, group: str) -> tuple[str, int]:
    """Where the group is coordinated, once that broker has begun to."""
    host, _, port = peer.bootstrap.partition(",")[0].rpartition(":")
    address = host, int(port)
    nobody = Writer().text(group).numbers("i", 1).text("nobody").text(None)
    give_up = time.monotonic() + _PATIENCE
    while time.monotonic() < give_up:
        found = _asked(address, _FIND, Writer().text(group).numbers("b", 0))
        found.number("i")
        error = found.number("h")
        if error not in _NOT_YET:
            _expect(error, "FindCoordinator")
            found.text()
            found.number("i")
            coordinator = found.text(), found.number("i")
            said = _asked(coordinator, _HEARTBEAT, nobody)
            said.number("i")
            if said.number("h") == _UNKNOWN_MEMBER_ID:
                return coordinator
        time.sleep(0.1)
    raise PeerError(f"no coordinator for {group}")


def _asked(address: tuple[str, int], api: tuple[int, int], body: Writer) -> Reader:
    """Ask over a connection of its own, and wait for the answer, a short one."""
    with socket.create_connection(address) as connection:
        connection.sendall(_request(api, body))
        return Reader(connection.recv(1 << 16)[8:])


def _request(api: tuple[int, int], body: Writer) -> bytes:
    frame = Writer("hhi", *api, 0).text("bench").done() + body.done()
    return Writer().data(frame).done()


def _expect(error: int, what: str) -> None:
    if error:
        raise PeerError(f"{what} was answered with error {error}")
