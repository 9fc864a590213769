"""Measure the cost of group members: 10,000 members that heartbeat every 3 s, and a rebalance of 1,000 members.

Members speak the classic protocol, each over its own connection, and send what a client's coordinator thread sends.
Requests are encoded by hand, so that the client's share is small and the same for every peer.
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

INTERVAL = 3.0  # seconds between a member's heartbeats
GROUP = 100  # members per group in the heartbeat measurement
REBALANCES = 5
_SESSION, _REBALANCE = 120_000, 120_000  # ms
_JOIN, _SYNC, _HEARTBEAT, _LEAVE, _FIND = (11, 5), (14, 3), (12, 3), (13, 3), (10, 2)  # API key and version
_MEMBER_ID_REQUIRED, _REBALANCE_IN_PROGRESS, _UNKNOWN_MEMBER_ID = 79, 27, 25
_COORDINATOR_ERRORS = (14, 15, 16)  # loading, not available, not this broker
_TIMEOUT = 120.0  # seconds


class Costs(NamedTuple):
    """Cost of group members."""

    core: float
    """Brokers' CPU while members heartbeat, in percent of a core."""
    memory: float
    """Brokers' resident memory while members heartbeat, in MB."""
    rebalance: float
    """Seconds from a LeaveGroup to the last SyncGroup response."""
    cpu: float
    """Brokers' CPU seconds per rebalance."""

    def rows(self) -> list[tuple[str, float]]:
        """Return the figures as (row, value) pairs of the table."""
        return [
            ("members", self.core), ("members-memory", self.memory), ("rebalance", self.rebalance),
            ("rebalance-cpu", self.cpu),
        ]  # fmt: skip


def measure(peer: Serving, members: int, rebalanced: int, seconds: float) -> Costs:
    """Measure `members` members that heartbeat for `seconds`, in groups of 100; then rebalances of another group.

    That group has `rebalanced` members.
    """
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
        measured = [one.rebalance(group) for _ in range(REBALANCES)]
    finally:
        one.close()
    return Costs(core, memory, *(statistics.median(column) for column in zip(*measured, strict=True)))


class _Member:
    """A group member on its own connection; at most one request is in flight."""

    def __init__(self, group: str, address: tuple[str, int]) -> None:
        self.group = group
        self.id = ""
        self.generation = -1
        self.stable = False
        self.on_response: Callable[[Reader], None] | None = None
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def _send(self, api: tuple[int, int], body: Writer, on_response: Callable[[Reader], None]) -> None:
        assert self.on_response is None
        self.on_response = on_response
        self.socket.sendall(_request(api, body))

    def _identity(self, generation: int) -> Writer:
        """Return the fields that open most requests: group, generation, member id, no instance id."""
        return Writer().text(self.group).numbers("i", generation).text(self.id).text(None)

    def read(self) -> None:
        """Read from the socket; pass a complete response to the request's callback."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise PeerError(f"the broker closed the connection of a member of {self.group}")
        self._buffer += data
        if len(self._buffer) < 4 or len(self._buffer) < 4 + struct.unpack_from(">i", self._buffer)[0]:
            return
        response, self._buffer = Reader(self._buffer[8:]), b""
        on_response, self.on_response = self.on_response, None
        assert on_response is not None
        on_response(response)

    def join(self) -> None:
        """Send JoinGroup; the response's callback then sends SyncGroup."""
        self.stable = False
        body = Writer().text(self.group).numbers("ii", _SESSION, _REBALANCE).text(self.id).text(None)
        self._send(_JOIN, body.text("bench").numbers("i", 1).text("even").data(b""), self._on_join)

    def _on_join(self, response: Reader) -> None:
        response.number("i")
        error = response.number("h")
        self.generation = response.number("i")
        response.text()
        leader = response.text()
        self.id = response.text()
        if error == _MEMBER_ID_REQUIRED:
            self.join()
            return
        _check(error, "JoinGroup")
        count = response.number("i")
        body = self._identity(self.generation).numbers("i", count)
        for _ in range(count):
            body.text(response.text()).data(b"assignment")
            response.text()
            response.data()
        self._send(_SYNC, body, self._on_sync)
        assert bool(count) == (leader == self.id)

    def _on_sync(self, response: Reader) -> None:
        response.number("i")
        error = response.number("h")
        if error == _REBALANCE_IN_PROGRESS:
            self.join()
            return
        _check(error, "SyncGroup")
        self.stable = True

    def heartbeat(self) -> None:
        """Send a heartbeat; rejoin if the group rebalances."""
        self._send(_HEARTBEAT, self._identity(self.generation), self._on_heartbeat)

    def _on_heartbeat(self, response: Reader) -> None:
        response.number("i")
        error = response.number("h")
        if error == _REBALANCE_IN_PROGRESS:
            self.join()
        else:
            _check(error, "Heartbeat")

    def leave(self) -> None:
        """Send LeaveGroup and drop the member id."""
        body = self._identity(1)
        self.id, self.stable = "", False
        self._send(_LEAVE, body, lambda _: None)


class _Members:
    """All members, driven by one selector loop."""

    def __init__(self, peer: Serving) -> None:
        self._peer = peer
        self._members: list[_Member] = []
        self._selector = selectors.DefaultSelector()

    def join(self, group: str, count: int) -> list[_Member]:
        """Return the members of a new, stable group of `count`."""
        address = _coordinator(self._peer, group)
        members = [_Member(group, address) for _ in range(count)]
        for member in members:
            self._selector.register(member.socket, selectors.EVENT_READ, member)
        self._members += members
        members[0].join()
        self._run(lambda: members[0].stable)
        for member in members[1:]:
            member.join()
        self._wait_stable(members)
        return members

    def rebalance(self, members: list[_Member]) -> tuple[float, float]:
        """Remove one member; return the seconds until all others are stable, and the brokers' CPU seconds.

        Then let the member rejoin.
        """
        leaver, others = members[-1], members[:-1]
        cpu, begun = self._peer.cpu(), time.perf_counter()
        leaver.leave()
        self._run(lambda: leaver.on_response is None)
        self._wait_stable(others, begin=True)
        measured = time.perf_counter() - begun, self._peer.cpu() - cpu
        leaver.join()
        self._wait_stable(members, begin=True)
        return measured

    def _wait_stable(self, members: list[_Member], *, begin: bool = False) -> None:
        """Wait until all members are stable in one generation. Stable members heartbeat every 0.1 s (`begin`: now)."""

        def stable() -> bool:
            together = len({one.generation for one in members}) == 1
            return together and all(one.stable and one.on_response is None for one in members)

        checked = 0.0 if begin else time.monotonic()
        give_up = time.monotonic() + _TIMEOUT
        while begin or not stable():
            begin = False
            if time.monotonic() > give_up:
                raise PeerError(f"a rebalance took longer than {_TIMEOUT:.0f} s")
            if time.monotonic() - checked > 0.1 and not any(
                one.stable and one.on_response is not None for one in members
            ):
                checked = time.monotonic()
                for member in members:
                    if member.stable:
                        member.heartbeat()
            self._poll(0.1)

    def heartbeat(self, seconds: float) -> float:
        """Return the peer's CPU in percent of a core while each member heartbeats every `INTERVAL`."""
        step = INTERVAL / len(self._members)
        begun, before, sent = time.monotonic(), self._peer.cpu(), 0
        while (now := time.monotonic() - begun) < seconds:
            while sent * step <= now:
                member = self._members[sent % len(self._members)]
                if member.on_response is not None:
                    raise PeerError(f"no response to a heartbeat within {INTERVAL:.0f} s")
                member.heartbeat()
                sent += 1
            self._poll(0.002)
        measured = (self._peer.cpu() - before) / seconds * 100
        if not all(member.stable for member in self._members):
            raise PeerError("a group rebalanced during the heartbeat measurement")
        return measured

    def _run(self, until: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _TIMEOUT
        while not until():
            if time.monotonic() > give_up:
                raise PeerError(f"no response to a member's request within {_TIMEOUT:.0f} s")
            self._poll(0.1)

    def _poll(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            key.data.read()

    def close(self) -> None:
        """Close all connections."""
        for member in self._members:
            member.socket.close()
        self._selector.close()


def _coordinator(peer: Serving, group: str) -> tuple[str, int]:
    """Wait until the group's coordinator serves the group; return the coordinator's address."""
    host, _, port = peer.bootstrap.partition(",")[0].rpartition(":")
    address = host, int(port)
    nobody = Writer().text(group).numbers("i", 1).text("nobody").text(None)
    give_up = time.monotonic() + _TIMEOUT
    while time.monotonic() < give_up:
        coordinator_response = _call(address, _FIND, Writer().text(group).numbers("b", 0))
        coordinator_response.number("i")
        error = coordinator_response.number("h")
        if error not in _COORDINATOR_ERRORS:
            _check(error, "FindCoordinator")
            coordinator_response.text()
            coordinator_response.number("i")
            coordinator = coordinator_response.text(), coordinator_response.number("i")
            heartbeat = _call(coordinator, _HEARTBEAT, nobody)
            heartbeat.number("i")
            if heartbeat.number("h") == _UNKNOWN_MEMBER_ID:
                return coordinator
        time.sleep(0.1)
    raise PeerError(f"no coordinator for {group}")


def _call(address: tuple[str, int], api: tuple[int, int], body: Writer) -> Reader:
    """Send one request over a new connection. Return its response, which must fit one read."""
    with socket.create_connection(address) as connection:
        connection.sendall(_request(api, body))
        return Reader(connection.recv(1 << 16)[8:])


def _request(api: tuple[int, int], body: Writer) -> bytes:
    frame = Writer("hhi", *api, 0).text("bench").done() + body.done()
    return Writer().data(frame).done()


def _check(error: int, api: str) -> None:
    if error:
        raise PeerError(f"{api} failed with error code {error}")
