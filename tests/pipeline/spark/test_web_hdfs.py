"""What a reader over HTTP does when data nodes and name nodes fail. (Files of a real HDFS: tests/object_store.)"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from abeyant.pipeline.request_log.files import LogFile, chunks, read_lines
from abeyant.pipeline.spark.web_hdfs import WebHdfs

TEXT = b"".join(b"line %d\n" % number for number in range(1000))


class Failing(BaseHTTPRequestHandler):
    """Gives the file, but no more than so many bytes at a time where it should give all that is left of it."""

    at_most = 0
    standby = False

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        if self.standby:
            told = {"RemoteException": {"exception": "StandbyException", "message": "not I\nat org.apache"}}
            self.answer(403, json.dumps(told).encode())
        elif asked["op"] == ["GETFILESTATUS"]:
            self.answer(200, json.dumps({"FileStatus": {"type": "FILE", "length": len(TEXT)}}).encode())
        else:
            left = TEXT[int(asked["offset"][0]) :]
            self.answer(200, left, left[: self.at_most])
            self.close_connection = True

    def answer(self, status: int, promised: bytes, given: bytes | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(promised)))
        self.end_headers()
        self.wfile.write(promised if given is None else given)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def node(**attributes: object) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Node", (Failing,), attributes)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_an_answer_that_breaks_off_is_gone_on_with() -> None:
    with node(standby=True) as idle, node(at_most=1000) as active:
        reach = (("addresses", (idle, active)), ("user", "root"))
        file = LogFile("hdfs://lake/logs/kafka-request.log", "logs", "kafka-request.log", len(TEXT), "", reach)
        assert [line for piece in chunks([file], 3000) for line in read_lines(piece)] == TEXT.splitlines()


def test_what_gives_nothing_is_named() -> None:
    with node(at_most=0) as empty:
        file = WebHdfs([empty], "root").open_input_file("/logs")
        with pytest.raises(OSError, match=f"/logs ends after 0 bytes of {len(TEXT)}"):
            file.read(10)
    with node(standby=True) as idle, pytest.raises(OSError, match=r"^StandbyException: not I$"):
        WebHdfs([idle], "root").open_input_file("/logs")
