"""Which of a loop's open files may be written to from elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from selectors import SelectorKey
from typing import Any, NamedTuple

_Ends = tuple[object, object]  # addresses: this end's, the other end's


class Census(NamedTuple):
    """Of the files on which a loop waits, other than those it wakes itself with."""

    any: bool
    elsewhere: list[str]  # descriptions of those whose other end is not on this loop, or not known
    listening: list[str]


class Sockets:
    """The census, counted anew after `changed` has been set to True."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Of `loop`."""
        self._loop: Any = loop
        self._census = Census(False, [], [])
        self.changed = True

    def look(self, registered: Mapping[Any, SelectorKey]) -> Census:
        """O(1), or O(open files) after a change."""
        if self.changed:
            self._census = self._count({key.fd for key in registered.values()})
            self.changed = False
        return self._census

    def _count(self, waited_on: set[int]) -> Census:
        waker = getattr(self._loop, "_ssock", None)
        if waker is not None:
            waited_on.discard(waker.fileno())
        resting = set(getattr(self._loop, "_transports", ())) - waited_on  # whose reading is paused
        ends = {fd: _ends(fd) for fd in waited_on | resting}
        both = set(ends.values())
        elsewhere, listening = [], []
        for fd in sorted(waited_on):
            mine = ends[fd]
            if mine is None:
                elsewhere.append(f"file descriptor {fd}")
            elif mine[1] is None:
                listening.append(f"the listening socket {_address(mine[0])}")
            elif (mine[1], mine[0]) not in both:
                elsewhere.append(f"the socket {_address(mine[0])} to {_address(mine[1])}")
        return Census(bool(waited_on), elsewhere, listening)


def _ends(fd: int) -> _Ends | None:
    """Both addresses of a connected TCP socket; of a listening one (address, None); None for anything else."""
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


def _address(address: Any) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
