"""A client for the tests: raw sockets, so that it may break every rule."""

from __future__ import annotations

import json
import socket
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


def connect(port: int, timeout: float = 10.0) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout)


def head(method: str, path: str, port: int, **headers: str) -> bytes:
    """Return a request's head; a header's `_` is a `-`, and the default Host is what a browser here would send."""
    given = {"host": f"127.0.0.1:{port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def read_answer(client: socket.socket) -> Answer:
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            raise ConnectionError(f"closed after {data!r}")
        data += more
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        body += client.recv(65536)
    return Answer(int(first.split()[1]), headers, body)


def call(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    if body:
        headers = {"content_type": "application/json", "content_length": str(len(body)), **headers}
    with connect(port) as client:
        client.sendall(head(method, path, port, **headers) + body)
        return read_answer(client)
