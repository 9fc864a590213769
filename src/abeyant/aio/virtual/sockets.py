"""Find a loop's open files that may become ready through something outside the loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from selectors import SelectorKey
from typing import Any, Final, NamedTuple

from abeyant.aio.virtual.connects import ATTEMPTS, is_this_machine

_Ends = tuple[object, object]  # addresses: this end's, the other end's

# Fields of Linux's `struct tcp_info`: state, bytes received, not yet sent, sent, and retransmitted.
_TCP_INFO: Final = struct.Struct("=B127xQ8xI52xQQ")
_UNACKNOWLEDGED: Final = struct.Struct("=24xI")  # segments
_ESTABLISHED: Final = 1
_FEW: Final = 200  # sockets: querying more takes longer than a moment


class Census(NamedTuple):
    """The files on which a loop waits, except the socket with which the loop wakes itself."""

    elsewhere: list[str]  # descriptions of files whose other end is not on this loop, or unknown
    listening: list[str]  # descriptions of listening sockets
    addresses: list[Any]  # of the listening sockets


class Sockets:
    """A list of the files on which a loop waits, as a `Census`. Set `changed` to True when these files change."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the files of `loop`."""
        self._loop: Any = loop
        self._census = Census([], [], [])
        self._pairs: list[tuple[int, int]] = []  # those whose both ends are on this loop
        self._nearby: list[int] = []  # those whose other end is on this machine, but not on this loop
        self._retried: dict[int, float] = {}  # of those: real seconds waited for retransmissions
        self.changed = True

    def look(self, registered: Mapping[Any, SelectorKey]) -> Census:
        """Return the census of the files in `registered`. O(1), or O(open files) after a change."""
        if self.changed:
            self._census = self._count({key.fd for key in registered.values()})
            self.changed = False
        return self._census

    def in_flight(self) -> bool:
        """Return whether data from one socket of the loop to another may still be in flight.

        Call it after `look`, and before polling the files: if it returns False, all data written before has arrived.
        Returns False only if the system, which has to be Linux, confirms this for each pair of sockets. O(open files),
        some 2 us each, up to `_FEW`.
        """
        if not hasattr(socket, "TCP_INFO") or len(self._pairs) > _FEW:
            return bool(self._pairs)
        return not all(_all_received(sender, receiver) for sender, receiver in self._pairs)

    def retries(self, waited: float) -> bool:
        """Return whether to wait for the kernel to retransmit data to another socket of this machine.

        The kernel does so after 0.2, 0.6, 1.4, 3 s if a full backlog has dropped a connection that its client thinks is
        open. Wait up to `ATTEMPTS` of real time; `waited` are the real seconds slept since the last call.
        """
        open_ = [fd for fd in self._nearby if _unacknowledged(fd)]
        self._retried = {fd: self._retried.get(fd, -waited) + waited for fd in open_}
        return any(seconds < ATTEMPTS for seconds in self._retried.values())

    def _count(self, waited_on: set[int]) -> Census:
        waker = getattr(self._loop, "_ssock", None)
        if waker is not None:
            waited_on.discard(waker.fileno())
        resting = set(getattr(self._loop, "_transports", ())) - waited_on  # those with paused reading
        ends = {fd: _ends(fd) for fd in waited_on | resting}
        by_addresses = {addresses: fd for fd, addresses in ends.items() if addresses is not None}
        self._pairs = [
            (fd, by_addresses[remote, local])
            for (local, remote), fd in by_addresses.items()
            if (remote, local) in by_addresses
        ]
        elsewhere, listening, addresses = [], [], []
        self._nearby = []
        for fd in sorted(waited_on):
            pair = ends[fd]
            if pair is None:
                elsewhere.append(f"file descriptor {fd}")
            elif pair[1] is None:
                listening.append(f"the listening socket {_address(pair[0])}")
                addresses.append(pair[0])
            elif (pair[1], pair[0]) not in by_addresses:
                if isinstance(pair[1], tuple) and is_this_machine(pair[1][0]):
                    self._nearby.append(fd)
                elsewhere.append(f"the socket {_address(pair[0])} to {_address(pair[1])}")
        return Census(elsewhere, listening, addresses)


def _ends(fd: int) -> _Ends | None:
    """Return both addresses of a connected TCP socket; (address, None) of a listening socket; None for other files."""
    try:
        sock = socket.socket(fileno=fd)
    except OSError:
        return None
    try:
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return sock.getsockname(), None
        if sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM:
            return sock.getsockname(), sock.getpeername()
    except OSError:  # not connected, or not yet
        pass
    finally:
        sock.detach()
    return None


def _all_received(sender: int, receiver: int) -> bool:
    """Return whether `receiver` has received all that was written to `sender`, and neither socket is closed."""
    try:
        sent_state, _, waiting, sent, retransmitted = _tcp_info(sender)
        received_state, received, *_ = _tcp_info(receiver)
    except (OSError, struct.error):  # closed by now, or an older Linux with fewer fields
        return False
    return sent_state == received_state == _ESTABLISHED and not waiting and sent - retransmitted == received


def _unacknowledged(fd: int) -> bool:
    try:
        return _tcp_info(fd, _UNACKNOWLEDGED)[0] > 0
    except (OSError, AttributeError, struct.error):  # closed by now, or not Linux
        return False


def _tcp_info(fd: int, fields: struct.Struct = _TCP_INFO) -> tuple[int, ...]:
    sock = socket.socket(fileno=fd)
    try:
        return fields.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, fields.size))
    finally:
        sock.detach()


def _address(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
