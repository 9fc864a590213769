"""Record what clients send while they are tested: one request per client, API and version, for the fuzz to mutate.

    PYTHONPATH=tests python -m clients.record

Runs tests of every client that this machine has, and writes `recorded/requests.jsonl`: one JSON object per line, with
the client's id up to its first hyphen, the API's key, the version, and the request as base64, without its length.
Produces are kept for each test, for each has its codec. Requests of more than 4 kB are left out.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker.broker import Broker
from abeyant.broker.wire.connection import Connection

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded" / "requests.jsonl"
_TESTS = (
    "tests/clients/test_round_trip.py", "tests/clients/test_waiting.py", "tests/broker/test_other_clients.py",
    "tests/broker/test_produce_and_consume.py", "tests/broker/groups/test_clients.py",
)  # fmt: skip
_HEADER = struct.Struct(">hhi")
_LARGEST = 4096
_PRODUCE = 0


def recorded() -> list[bytes]:
    """The requests, without their lengths."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return [base64.b64decode(json.loads(line)["request"]) for line in lines]


class Recorder:
    """A pytest plugin: keeps the first request of each kind."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int, int, str], bytes] = {}
        self._test = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Look over the shoulder of every broker while a test runs."""
        receive = Broker.receive
        self._test = item.name

        def receive_and_keep(broker: Broker, connection: Connection, frame: memoryview) -> None:
            data = bytes(frame)
            receive(broker, connection, frame)
            self._keep(connection, data)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Broker, "receive", receive_and_keep)
            return (yield)

    def _keep(self, connection: Connection, data: bytes) -> None:
        if len(data) > _LARGEST:
            return
        key, version, _ = _HEADER.unpack_from(data)
        client = connection.client_id.split("-")[0]
        self.found.setdefault((client, key, version, self._test if key == _PRODUCE else ""), data)

    def lines(self) -> Iterator[str]:
        """What the file has."""
        for (client, key, version, _), data in sorted(self.found.items()):
            kept: dict[str, Any] = {"client": client, "api": key, "version": version}
            yield json.dumps({**kept, "request": base64.b64encode(data).decode()}) + "\n"


def main() -> int:
    """Run the tests, and write the file."""
    recorder = Recorder()
    status = pytest.main(["-q", "-p", "no:unraisableexception", *_TESTS], plugins=[recorder])
    if status:
        print("nothing is written: the tests did not pass", file=sys.stderr)
        return int(status)
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text("".join(recorder.lines()), encoding="utf-8")
    print(f"{RECORDED}: {len(recorder.found)} requests, {RECORDED.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
