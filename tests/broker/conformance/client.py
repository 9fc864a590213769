"""A raw client for one broker: frames over a socket, one answer to each request, no retries and no opinions."""

from __future__ import annotations

import socket
import struct
from typing import Self

from .messages import Plain, request, response

ANSWER_SECONDS = 20.0


class ClosedError(Exception):
    """The broker closed the connection instead of an answer."""


class Connection:
    """One connection. Not thread-safe."""

    def __init__(self, host: str, port: int, client_id: str | None = "conformance") -> None:
        self._socket = socket.create_connection((host, port), timeout=ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._sent: list[tuple[int, str, int]] = []
        self._correlation_id = 0

    def send(self, api: str, version: int, body: dict[str, Plain]) -> None:
        """Send a request and do not wait."""
        self._correlation_id += 1
        self.send_frame(request(api, version, self._correlation_id, self._client_id, body))
        self._sent.append((self._correlation_id, api, version))

    def receive(self) -> dict[str, Plain]:
        """The answer to the oldest request that has none yet."""
        correlation_id, api, version = self._sent.pop(0)
        answered, said = response(api, version, self.receive_frame())
        if answered != correlation_id:
            raise ValueError(f"{api} v{version}: answer to request {answered} instead of {correlation_id}")
        return said

    def ask(self, api: str, version: int, body: dict[str, Plain]) -> dict[str, Plain]:
        """Send a request and wait for the answer."""
        self.send(api, version, body)
        return self.receive()

    def expect_no_answer(self) -> None:
        """The last request was one that is not answered."""
        self._sent.pop()

    def is_waiting(self, seconds: float) -> bool:
        """Whether no byte comes within so many seconds."""
        self._socket.settimeout(seconds)
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(ANSWER_SECONDS)

    def send_frame(self, data: bytes) -> None:
        """Send any bytes with their length in front."""
        self.send_bytes(struct.pack(">i", len(data)) + data)

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes."""
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        """One frame without its length; `ClosedError` when there is none any more."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except ConnectionError:
                part = b""
            if not part:
                raise ClosedError
            data += part
        return bytes(data)

    def log_in(self, user: str, password: str) -> Self:
        """Authenticate by PLAIN."""
        self.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        said = self.ask("SaslAuthenticate", 2, {"auth_bytes": f"\0{user}\0{password}".encode()})
        if said["error_code"] != "NONE":
            raise ValueError(f"{user} is not let in: {said}")
        return self

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
