"""Hostile clients: each is refused or harmless, and the next good one is served."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import selectors
import socket
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest

from abeyant.errors import AbeyantError
from abeyant.web import Events, Limits, Request, Server, Site
from web.http import call, connect, head, read_answer

LIMITS = Limits(receive=0.4, idle=0.6, send=0.4, connections=100, streams=8)
TOKEN = "a-token-of-the-test"


async def endless(request: Request) -> Events:
    async def numbers() -> AsyncIterator[str]:
        while True:
            yield "x" * 100_000
            await asyncio.sleep(0.01)

    return Events(numbers())


def site() -> Site:
    made = Site(LIMITS)
    made.get("/text", lambda request: "plain")
    made.post("/change", lambda request: "changed")
    made.get("/endless", endless)
    return made


@pytest.fixture
def server() -> Iterator[Server]:
    with site().serve() as server:
        yield server
        assert call(server.port, "GET", "/text").body == b"plain"  # whatever was done to it


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:80",
        "localhost.attacker.example",
        "",
        "user@127.0.0.1",
        "127.0.0.1:x",
        "a/b",
    ],
)
def test_other_hosts(server: Server, host: str) -> None:
    """DNS rebinding: a name of the attacker's that was made to point here."""
    assert call(server.port, "GET", "/text", host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1", "[::1]:80", "192.0.2.1:8080"])
def test_own_hosts(server: Server, host: str) -> None:
    assert call(server.port, "GET", "/text", host=host).status == 200


def test_a_name_that_was_allowed() -> None:
    with site().serve(hosts=["kafka.test"]) as server:
        assert call(server.port, "GET", "/text", host="kafka.test:1").status == 200


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("http://127.0.0.1/text", "attacker.example", 200),
        ("HTTP://localhost:9/text?", "localhost", 200),
        ("http://localhost", "localhost", 404),
        ("http://attacker.example/text", "localhost", 421),
        ("http://localhost@attacker.example/text", "localhost", 421),
        ("http:///text", "localhost", 421),
        ("https://localhost/text", "localhost", 404),
    ],
)
def test_the_host_of_an_absolute_target_counts(server: Server, target: str, host: str, status: int) -> None:
    assert call(server.port, "GET", target, host=host).status == status


def test_two_hosts(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(b"GET /text HTTP/1.1\r\nhost: localhost\r\nhost: attacker.example\r\n\r\n")
        assert read_answer(client).status == 400


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_other_origins(server: Server, origin: str) -> None:
    assert call(server.port, "POST", "/change", origin=origin).status == 403
    assert call(server.port, "GET", "/text", origin=origin).status == 403


def test_ones_own_origin(server: Server) -> None:
    got = call(server.port, "POST", "/change", origin=f"http://127.0.0.1:{server.port}", sec_fetch_site="same-origin")
    assert got.body == b"changed"


@pytest.mark.parametrize(
    ("method", "mode", "target", "status"),
    [
        ("POST", "navigate", "document", 403),  # a form elsewhere
        ("GET", "no-cors", "image", 403),
        ("GET", "navigate", "iframe", 403),
        ("GET", "navigate", "document", 200),  # a link elsewhere
    ],
)
def test_what_a_browser_says_of_another_sites_page(
    server: Server, method: str, mode: str, target: str, status: int
) -> None:
    path = "/change" if method == "POST" else "/text"
    told = {"sec_fetch_site": "cross-site", "sec_fetch_mode": mode, "sec_fetch_dest": target}
    assert call(server.port, method, path, b"", **told).status == status


def test_no_state_change_by_get(server: Server) -> None:
    assert call(server.port, "GET", "/change").status == 405
    assert call(server.port, "GET", "/change", x_http_method_override="POST").status == 405


def test_no_cors(server: Server) -> None:
    got = call(server.port, "OPTIONS", "/change", origin=f"http://127.0.0.1:{server.port}")
    assert got.status == 405
    assert not [name for name in got.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org"])
def test_beyond_loopback_a_token_is_required(host: str) -> None:
    with pytest.raises(AbeyantError, match=f"{host} is not loopback, so others can reach it: give a token"):
        site().serve(host)


@pytest.mark.parametrize("token", ["", "short", "with space in it", "n\xf6t-ascii-at-all"])
def test_a_poor_token(token: str) -> None:
    with pytest.raises(AbeyantError, match="at least 8 printable ASCII characters"):
        site().serve(token=token)


def test_token() -> None:
    with site().serve("0.0.0.0", token=TOKEN) as server:
        bad = call(server.port, "GET", "/text")
        assert (bad.status, bad.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in bad.body.decode()
        assert call(server.port, "GET", "/text?token=wrong-token").status == 401
        assert call(server.port, "GET", "/text", authorization="Bearer wrong").status == 401
        assert call(server.port, "GET", "/text", authorization="Bearer \xff").status == 401
        assert call(server.port, "POST", f"/change?token={TOKEN}").status == 401  # a form elsewhere could send it
        assert call(server.port, "GET", f"/text?token={TOKEN}").status == 200
        assert call(server.port, "POST", "/change", authorization=f"Bearer {TOKEN}").body == b"changed"


def test_a_gigabyte_is_refused_before_it_is_sent(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(head("POST", "/change", server.port, content_length=str(1 << 30), expect="100-continue"))
        got = read_answer(client)
    assert (got.status, got.error) == (413, "the body exceeds the limit of 1,048,576 bytes")


def test_a_gigabyte_in_chunks_is_refused_at_the_limit(server: Server) -> None:
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    sent = 0
    with connect(server.port) as client:
        client.sendall(head("POST", "/change", server.port, transfer_encoding="chunked"))
        with contextlib.suppress(OSError):
            while sent < 1 << 30:
                client.sendall(chunk)
                sent += len(chunk)
    assert sent < 32 << 20  # what the sockets' buffers hold


def test_a_body_that_is_expected(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(head("POST", "/change", server.port, content_length="2", expect="100-continue"))
        assert client.recv(65536).startswith(b"HTTP/1.1 100")
        client.sendall(b"{}")
        assert read_answer(client).body == b"changed"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET /text HTTP/9.9\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /change HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /change HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"POST /change HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_request(server: Server, data: bytes) -> None:
    with connect(server.port) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
            assert 400 <= read_answer(client).status < 600
        with contextlib.suppress(OSError):
            while client.recv(65536):
                pass


@pytest.mark.parametrize("size", [LIMITS.head, LIMITS.head + 1, 40_000])
def test_a_head_over_the_limit_that_comes_in_one_piece(server: Server, size: int) -> None:
    more = "x" * (size - len(head("GET", "/text", server.port, more="")))
    answer = call(server.port, "GET", "/text", more=more)
    assert answer.status == (200 if size == LIMITS.head else 431)
    assert answer.status == 200 or "exceed the limit of 16,384 bytes" in answer.error


def test_a_parameter_that_is_there_twice_is_named(server: Server) -> None:
    refused = call(server.port, "GET", "/text?show=a&q=&show=b")
    assert (refused.status, refused.error) == (400, "the query has 'show' twice: leave one out")


@pytest.mark.parametrize(("host", "called"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]")])
def test_the_address_of_one_that_listens_on_all_can_be_opened(host: str, called: str) -> None:
    if ":" in host and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    with site().serve(host, token=TOKEN) as server:
        assert server.url == f"http://{called}:{server.port}/"
        with urllib.request.urlopen(f"{server.url}text?token={TOKEN}") as answer:
            assert answer.read() == b"plain"
    with site().serve(host, token=TOKEN, hosts=["kafka.test"]) as server:
        assert server.url == f"http://kafka.test:{server.port}/"


def test_a_request_that_comes_too_slowly(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(b"GET /text HTT")
        assert read_answer(client).status == 408
    with connect(server.port) as client:
        client.sendall(head("POST", "/change", server.port, content_length="10") + b"123")
        assert read_answer(client).status == 408


def test_a_connection_that_says_nothing_is_closed(server: Server) -> None:
    with connect(server.port) as client:
        assert client.recv(1) == b""


def test_a_stream_that_nobody_reads_is_closed() -> None:
    with site().serve() as server, contextlib.ExitStack() as stack:
        for _ in range(LIMITS.streams):
            client = stack.enter_context(connect(server.port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(head("GET", "/endless", server.port))
        assert _eventually_streams(server.port)


def test_streams_are_counted_down_when_their_clients_leave(server: Server) -> None:
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            for _ in range(LIMITS.streams):
                client = stack.enter_context(connect(server.port))
                client.sendall(head("GET", "/endless", server.port))
                assert client.recv(12) == b"HTTP/1.1 200"
            got = call(server.port, "GET", "/endless")
            assert (got.status, got.error) == (503, "too many event streams are open: close one")
        assert _eventually_streams(server.port)


def _eventually_streams(port: int) -> bool:
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with connect(port) as client:
            client.sendall(head("GET", "/endless", port))
            if client.recv(12) == b"HTTP/1.1 200":
                return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("at_once", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_ten_thousand_streams(at_once: int) -> None:
    """All are open at once: eight are served, the others get 503 or are closed."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * at_once + 500
    most = wanted if files[1] == resource.RLIM_INFINITY else min(wanted, files[1])
    if most < at_once + 1_000:
        pytest.skip(f"needs {at_once + 1_000:,} open files and more; the limit is {files[1]:,}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, files[0]), files[1]))
    threads = threading.active_count()
    statuses: Counter[bytes] = Counter()
    made = Site(LIMITS._replace(send=60.0))
    made.get("/endless", endless)
    try:
        with made.serve() as server:
            statuses += _open_streams(server.port, at_once)
            assert threading.active_count() <= threads + 2
            assert _eventually_streams(server.port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
    assert statuses.total() == at_once
    assert statuses.pop(b"200") == LIMITS.streams
    assert statuses.pop(b"503") > 100
    assert set(statuses) <= {b"closed"}


def _open_streams(port: int, number: int) -> Counter[bytes]:
    """Open so many streams and keep all open until each has an answer; return how many had which."""
    request = head("GET", "/endless", port)
    found: Counter[bytes] = Counter()
    clients: list[socket.socket] = []
    with selectors.DefaultSelector() as selector:
        try:
            for _ in range(number):
                client = connect(port, 60)
                clients.append(client)
                with contextlib.suppress(OSError):
                    client.sendall(request)
                selector.register(client, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(60):
                    client = key.fileobj  # type: ignore[assignment]
                    selector.unregister(client)
                    try:
                        status = client.recv(12)[9:] or b"closed"
                    except OSError:
                        status = b"closed"
                    found[status] += 1
        finally:
            for client in clients:
                client.close()
    return found
