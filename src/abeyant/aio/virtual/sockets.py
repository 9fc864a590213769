"""Which of a loop's open files may be written to from elsewhere."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from selectors import SelectorKey
from typing import Any, Final, NamedTuple

from abeyant.aio.virtual.connects import ATTEMPTS, is_this_machine

_Ends = tuple[object, object]  # addresses: this end's, the other end's

# Linux's `struct tcp_info`, of which we need: state, bytes received, not yet sent, sent, and sent again.
_TCP_INFO: Final = struct.Struct("=B127xQ8xI52xQQ")
_UNACKNOWLEDGED: Final = struct.Struct("=24xI")  # segments
_ESTABLISHED: Final = 1
_FEW: Final = 200  # sockets that are asked sooner than a moment is over


class Census(NamedTuple):
    """Of the files on which a loop waits, other than those it wakes itself with."""

    elsewhere: list[str]  # descriptions of those whose other end is not on this loop, or not known
    listening: list[str]
    places: list[Any]  # the addresses of those


class Sockets:
    """The census, counted anew after `changed` has been set to True."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Of `loop`."""
        self._loop: Any = loop
        self._census = Census([], [], [])
        self._pairs: list[tuple[int, int]] = []  # those whose both ends are on this loop
        self._nearby: list[int] = []  # those whose other end is on this machine, but not on this loop
        self._retried: dict[int, float] = {}  # of those: real seconds waited for what the kernel sends again
        self.changed = True

    def look(self, registered: Mapping[Any, SelectorKey]) -> Census:
        """O(1), or O(open files) after a change."""
        if self.changed:
            self._census = self._count({key.fd for key in registered.values()})
            self.changed = False
        return self._census

    def in_flight(self) -> bool:
        """Return whether something that one socket of the loop has written to another may not be there yet.

        To be asked after `look`, and before what is ready: whatever was written then has come. False only where the
        system says so of each, which is Linux. O(open files), some 2 us each, but for so many that it is not asked.
        """
        if not hasattr(socket, "TCP_INFO") or len(self._pairs) > _FEW:
            return bool(self._pairs)
        return not all(_is_there(one, other) for one, other in self._pairs)

    def retries(self, waited: float) -> bool:
        """Return whether the kernel sends again what another socket of this machine has not confirmed.

        As it does after 0.2, 0.6, 1.4, 3 s where a full backlog did not take a connection that its client believes in.
        `ATTEMPTS` of real time are waited for; `waited` is how much has been slept since the last call.
        """
        open_ = [fd for fd in self._nearby if _unacknowledged(fd)]
        self._retried = {fd: self._retried.get(fd, -waited) + waited for fd in open_}
        return any(seconds < ATTEMPTS for seconds in self._retried.values())

    def _count(self, waited_on: set[int]) -> Census:
        waker = getattr(self._loop, "_ssock", None)
        if waker is not None:
            waited_on.discard(waker.fileno())
        resting = set(getattr(self._loop, "_transports", ())) - waited_on  # whose reading is paused
        ends = {fd: _ends(fd) for fd in waited_on | resting}
        both = {addresses: fd for fd, addresses in ends.items() if addresses is not None}
        self._pairs = [(fd, both[theirs, mine]) for (mine, theirs), fd in both.items() if (theirs, mine) in both]
        elsewhere, listening, places = [], [], []
        self._nearby = []
        for fd in sorted(waited_on):
            mine = ends[fd]
            if mine is None:
                elsewhere.append(f"file descriptor {fd}")
            elif mine[1] is None:
                listening.append(f"the listening socket {_address(mine[0])}")
                places.append(mine[0])
            elif (mine[1], mine[0]) not in both:
                if isinstance(mine[1], tuple) and is_this_machine(mine[1][0]):
                    self._nearby.append(fd)
                elsewhere.append(f"the socket {_address(mine[0])} to {_address(mine[1])}")
        return Census(elsewhere, listening, places)


def _ends(fd: int) -> _Ends | None:
    """Return both addresses of a connected TCP socket; of a listening one (address, None); None for anything else."""
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


def _is_there(sender: int, receiver: int) -> bool:
    """Return whether all that has been written to one end has come to the other, and neither has been closed."""
    try:
        sent_state, _, waiting, sent, again = _tcp_info(sender)
        received_state, received, *_ = _tcp_info(receiver)
    except (OSError, struct.error):  # closed by now, or an older Linux, which tells less
        return False
    return sent_state == received_state == _ESTABLISHED and not waiting and sent - again == received


def _unacknowledged(fd: int) -> bool:
    try:
        return _tcp_info(fd, _UNACKNOWLEDGED)[0] > 0
    except (OSError, AttributeError, struct.error):  # closed by now, or a system that does not say
        return False


def _tcp_info(fd: int, fields: struct.Struct = _TCP_INFO) -> tuple[int, ...]:
    sock = socket.socket(fileno=fd)
    try:
        return fields.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, fields.size))
    finally:
        sock.detach()


def _address(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
