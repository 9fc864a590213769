"""The server behind window, metrics and control: what it serves, and that it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from abeyant.errors import AbeyantError
from abeyant.web import Events, HttpError, Limits, Request, Response, Server, Site
from web.http import call, connect, head, read_answer


async def count(request: Request) -> Events:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            yield number
            await asyncio.sleep(0)

    return Events(numbers())


def fail(request: Request) -> object:
    if "kind" in request.query:
        raise AbeyantError(f"no such kind: {request.query['kind']}")
    raise RuntimeError("secret")


def site() -> Site:
    made = Site(Limits(receive=0.5))
    made.get(
        "/name/{name}", lambda request: {"name": request.params["name"], "thread": threading.current_thread().name}
    )
    made.post("/echo", lambda request: request.json())
    made.post("/gone", lambda request: None)
    made.get("/text", lambda request: "plain")
    made.get("/page", lambda request: Response(200, b"<p>", "text/html", (("x-more", "1"),)))
    made.get("/fail", fail)
    made.get("/count", count)
    return made


@pytest.fixture
def server() -> Iterator[Server]:
    with site().serve() as server:
        yield server


def test_routes_and_results(server: Server) -> None:
    got = call(server.port, "GET", "/name/a%2Fb%3Cscript%3E")
    assert got.status == 200
    assert got.json == {"name": "a/b<script>", "thread": "abeyant-web-handler"}
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert call(server.port, "POST", "/echo", b'{"a":[1]}').json == {"a": [1]}
    assert call(server.port, "POST", "/gone").status == 204
    assert call(server.port, "GET", "/text").body == b"plain"
    page = call(server.port, "GET", "/page")
    assert (page.body, page.headers["content-type"], page.headers["x-more"]) == (b"<p>", "text/html", "1")


def test_errors_are_one_line_of_json(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    assert call(server.port, "GET", "/no").error == "there is nothing at /no"
    wrong = call(server.port, "GET", "/echo")
    assert (wrong.status, wrong.error, wrong.headers["allow"]) == (405, "GET is not possible here: use POST", "POST")
    assert call(server.port, "DELETE", "/text").headers["allow"] == "GET, HEAD"
    assert call(server.port, "GET", "/fail?kind=%3C").error == "no such kind: <"
    assert not caplog.records
    broken = call(server.port, "GET", "/fail")
    assert (broken.status, broken.error) == (500, "the handler failed: see the program's log")
    assert "secret" in caplog.text
    assert call(server.port, "POST", "/echo", b"{").status == 400
    assert call(server.port, "POST", "/echo", b"[" * 100_000).status == 400
    assert call(server.port, "POST", "/echo", b"{}", content_type="text/plain").status == 415


def test_one_connection_serves_many_requests_and_pipelined_ones(server: Server) -> None:
    with connect(server.port) as client:
        for _ in range(3):
            client.sendall(head("GET", "/text", server.port))
            assert read_answer(client).body == b"plain"
        client.sendall(head("HEAD", "/text", server.port) + head("GET", "/no", server.port, connection="close"))
        received = b""
        while more := client.recv(65536):
            received += more
    assert received.count(b"HTTP/1.1 ") == 2
    assert b"\r\n\r\nplain" not in received


def test_a_stream_of_events(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(head("GET", "/count", server.port))
        received = b""
        while more := client.recv(65536):
            received += more
    assert b"content-type: text/event-stream" in received
    assert [part for part in received.split(b"\n") if part.startswith(b"data: ")] == [
        b"data: 0", b"data: 1", b"data: 2",
    ]  # fmt: skip


def test_a_status_of_ones_own() -> None:
    def refuse(request: Request) -> None:
        raise HttpError(409, "not now")

    made = Site()
    made.post("/x", refuse)
    with made.serve() as server:
        assert call(server.port, "POST", "/x").status == 409


def test_close_ends_streams_and_frees_the_port(server: Server) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}/"
    with connect(server.port) as client:
        client.sendall(head("GET", "/text", server.port))
        read_answer(client)  # so it has been accepted
        server.close()
        server.close()
        assert client.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)
    with site().serve(port=server.port) as again, pytest.raises(AbeyantError, match="cannot listen at"):
        site().serve(port=again.port)


def test_close_ends_a_connection_that_has_just_been_answered() -> None:
    """The client has the whole response, and the server is about to see that it has sent it, as `close` cancels."""

    async def closing(request: Request) -> str:
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().stop)
        return "answered"

    made = Site(Limits(idle=30.0))
    made.get("/", closing)
    with made.serve() as server, connect(server.port) as client:
        client.sendall(head("GET", "/", server.port))
        server._thread.join(10)
        assert not server._thread.is_alive()


def test_port_and_host_are_checked() -> None:
    with pytest.raises(AbeyantError, match="a port is a whole number from 0 to 65535, not 70000"):
        site().serve(port=70_000)
    with pytest.raises(AbeyantError, match="cannot listen at no such host"):
        site().serve("no such host", token="long-enough")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_serves_nothing_and_holds_no_port(server: Server) -> None:
    with connect(server.port) as client:
        client.sendall(head("GET", "/text", server.port))
        read_answer(client)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"closed" if server.closed else b"open")
            time.sleep(60)
            os._exit(0)
        try:
            assert os.read(reading, 10) == b"closed"
            client.sendall(head("GET", "/text", server.port))  # the parent's loop is unharmed
            assert read_answer(client).body == b"plain"
            server.close()
            assert client.recv(1) == b""
            with site().serve(port=server.port):
                pass
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            os.close(writing)


PROGRAM = """
import contextlib, threading, urllib.request
from abeyant.web import Site
blocked = threading.Event()
def block(request):
    blocked.set()
    threading.Event().wait()
site = Site()
site.get("/block", block)
server = site.serve()
def ask():
    with contextlib.suppress(Exception):  # the connection ends with the program
        urllib.request.urlopen(server.url + "block")
threading.Thread(target=ask, daemon=True).start()
blocked.wait()
print("ended")
"""


def test_the_interpreter_ends_though_a_handler_blocks() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_it_is_there_while_the_loop_of_the_program_blocks() -> None:
    with site().serve() as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answered: list[int] = []

        async def program() -> None:
            thread = threading.Thread(target=lambda: answered.append(call(server.port, "GET", "/text").status))
            thread.start()
            thread.join()  # blocks the loop on purpose

        asyncio.run(program())
        assert answered == [200]
