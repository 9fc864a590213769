"""PySpark's server of accumulators, ended as a session stops."""

from __future__ import annotations

import select
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer, UpdateRequestHandler

from abeyant.pipeline.spark.accumulators import end_quietly

TOKEN = "secret"
NO_UPDATES = bytes(4)


class Forever:
    """A poll that no time-out ends."""

    def __init__(self) -> None:
        self._poll = _POLL()
        self.register, self.unregister = self._poll.register, self._poll.unregister

    def poll(self, _milliseconds: int) -> list[tuple[int, int]]:
        return self._poll.poll()


_POLL = select.poll


@pytest.fixture(params=["tcp", "unix"])
def server(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(select, "poll", Forever)
    if request.param == "tcp":
        return AccumulatorTCPServer(("localhost", 0), UpdateRequestHandler, TOKEN)
    return AccumulatorUnixServer(str(tmp_path / "socket"), UpdateRequestHandler)


@pytest.mark.parametrize("connected", [False, True])
def test_it_ends_without_waiting_for_a_time_out(
    server: Any, connected: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    end_quietly(SimpleNamespace(_accumulatorServer=server))  # type: ignore[arg-type]
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3_600}, daemon=True)
    serving.start()
    with socket.socket(server.address_family) as jvm:
        if connected:
            jvm.connect(server.server_address)
            token = TOKEN.encode() if server.auth_token else b""
            jvm.sendall(token + NO_UPDATES + NO_UPDATES)
            assert jvm.recv(1)  # so it is served
        stopping = threading.Thread(target=server.shutdown, daemon=True)
        stopping.start()
        for thread in (stopping, serving):
            thread.join(60)
            assert not thread.is_alive()
    assert capfd.readouterr() == ("", "")


def test_a_context_without_such_a_server_is_left_alone() -> None:
    end_quietly(SimpleNamespace())  # type: ignore[arg-type]
