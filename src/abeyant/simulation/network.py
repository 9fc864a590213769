"""The network of a simulation: listening sockets, connections, latencies and delays."""

from __future__ import annotations

import contextvars
import ipaddress
import math
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from abeyant.simulation.errors import SimulationError
from abeyant.simulation.ports import OWNER, Address, Life, Loop
from abeyant.simulation.sockets import ListeningSocket
from abeyant.simulation.transport import Endpoint

if TYPE_CHECKING:
    from abeyant.simulation.chance import Stream

_FIRST_PORT: Final = 40_001  # for sockets bound to port 0
_FIRST_CLIENT: Final = 50_001
_ANY: Final = ("", "0.0.0.0", "::")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Latency:
    """A random latency in seconds: from `least` to `most`, but with the probability `slow` from `most` to `slowest`."""

    least: float = 0.0002
    most: float = 0.002
    slow: float = 0.01
    """The probability (from 0 to below 1) of a latency above `most`; not a time."""
    slowest: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= self.slowest < math.inf or not 0 <= self.slow < 1:
            raise SimulationError(f"a latency must have 0 <= least <= most <= slowest and 0 <= slow < 1, not {self}")

    def draw(self, stream: Stream) -> float:
        """Return a random latency in seconds; `least` if the stream is quiet, that is, returns 0."""
        fraction, usual = stream.draw(), 1 - self.slow
        if fraction < usual:
            return self.least + (self.most - self.least) * fraction / usual
        return self.most + (self.slowest - self.most) * (fraction - usual) / self.slow


class Network:
    """The simulated network of one loop: addresses, listening sockets, connections and their delays."""

    def __init__(self, loop: Loop, latency: Latency) -> None:
        self.loop = loop
        self.latency = latency
        self.context = (
            contextvars.copy_context()
        )  # of no process: bytes on the way arrive even if their sender is killed
        self._listening: dict[Address, ListeningSocket] = {}
        self._open: dict[str, Endpoint] = {}
        self._streams: dict[str, Stream] = {}
        self._names: dict[str, str] = {}
        self._owners: dict[int, str] = {}  # names of the clients' processes by client port
        self._connections: dict[int, int] = {}  # number of connections so far by listening port
        self._clogged: dict[int, float] = {}  # end of the clog by listening port, in seconds on the loop's clock
        self._next_port = _FIRST_PORT
        self._next_client = _FIRST_CLIENT

    # -- addresses

    def resolve(self, host: str | None) -> str:
        """Return the IP address of `host`. A new name is assigned an address, the same in each run."""
        if host is None or host in _ANY:
            return "0.0.0.0"
        if host in _LOOPBACK:
            return "127.0.0.1"
        try:
            return str(ipaddress.ip_address(host))
        except ValueError:
            return self._names.setdefault(host, f"10.0.{len(self._names) // 250}.{len(self._names) % 250 + 1}")

    def bind(self, listening: ListeningSocket, address: Address) -> Address:
        """Let a socket listen; return its address. Port 0 picks a free port. Raises OSError if the port is taken."""
        host, port = self.resolve(address[0]), address[1]
        if port == 0:
            taken = {number for _, number in self._listening}
            port = next(number for number in count(self._next_port) if number not in taken)
            self._next_port = port + 1
        if any(other == port and (name == host or "0.0.0.0" in (name, host)) for name, other in self._listening):
            raise OSError(98, f"error while attempting to bind on address {(host, port)}: address already in use")
        self._listening[host, port] = listening
        return host, port

    def unbind(self, listening: ListeningSocket) -> None:
        """Free the port of a listening socket."""
        self._listening.pop(listening.address, None)

    # -- connections

    def connect(self, host: str, port: int) -> Endpoint:
        """Return the client's end of a new connection at once. Raises ConnectionRefusedError if nobody accepts it."""
        address = self.resolve(host), port
        listening = self._listening.get(address) or self._listening.get(("0.0.0.0", port))
        local = "127.0.0.1", self._next_client
        number = self._connections[port] = self._connections.get(port, 0) + 1
        self._next_client += 1
        client = Endpoint(self, f"{port}#{number}<", local, address, OWNER.get())
        server = Endpoint(self, f"{port}#{number}>", address, local, None)
        client.peer, server.peer = server, client
        if client.owner is not None:
            self._owners[local[1]] = client.owner.name
        if listening is None or not listening.offer(server):
            raise ConnectionRefusedError(111, f"Connect call failed {address}")
        self.loop.trace.add(self.loop.now, f"{port}#{number} opens")
        return client

    def owner_at(self, address: str) -> str:
        """Return the name of the process that connected from an address such as "127.0.0.1:50001"; "" for none."""
        return self._owners.get(int(address.rpartition(":")[2]), "")

    def handshake(self, port: int) -> float:
        """Return how many seconds from now a connection to this port is made or refused."""
        wait = self.latency.draw(self._stream(f"handshake {port}"))
        return max(wait, self._clogged.get(port, 0.0) - self.loop.now + wait)

    def arrival(self, sender: Endpoint) -> float:
        """Return when bytes sent now arrive, in seconds on the loop's clock."""
        at = self.loop.now + self.latency.draw(self._stream(f"link {sender.name}"))
        if self._clogged:
            port = sender.remote[1] if sender.name[-1] == "<" else sender.local[1]  # "<": the client's end
            until = self._clogged.get(port, 0.0)
            if until > at:
                return until + self.latency.least
        return at

    def clog(self, port: int, seconds: float) -> None:
        """Hold bytes to and from the listener of this port for `seconds`; then deliver them in order."""
        self._clogged[port] = max(self._clogged.get(port, 0.0), self.loop.now + seconds)

    def unclog(self) -> None:
        """End every `clog`, for bytes sent from now on."""
        self._clogged.clear()

    def opened(self, endpoint: Endpoint) -> None:
        """Register an endpoint with a transport."""
        self._open[endpoint.name] = endpoint

    def closed(self, endpoint: Endpoint) -> None:
        """Unregister an endpoint."""
        self._open.pop(endpoint.name, None)

    def end_life(self, life: Life) -> None:
        """Close a killed process's sockets and connections, in the order in which they were opened. O(open)."""
        for listening in [socket for socket in self._listening.values() if socket.owner is life]:
            listening.close()
        for endpoint in [end for end in self._open.values() if end.owner is life]:
            self.closed(endpoint)
            endpoint.end_with_owner()

    def _stream(self, name: str) -> Stream:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = self.loop.chance.stream(name)
        return stream
