"""The house: how many of the broker's files handle one produce, from the socket to the response."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import abeyant.broker
from abeyant.broker import Cluster
from abeyant.broker.log.batch import make_batch
from abeyant.broker.log.records import Record, encode
from abeyant.broker.wire.connection import Connection
from broker.wire import encoded

PACKAGE = Path(abeyant.broker.__file__).parent
PRODUCE, VERSION = 0, 9
WARM_UP = 3  # requests: what is imported and made once is not on the path


class Passage:
    """Collects the broker's files that run Python code between a request's arrival and its response."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._under_way = False

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call":
            self._under_way = self._under_way or code is Connection.buffer_updated.__code__
            path = Path(code.co_filename)
            if self._under_way and PACKAGE in path.parents:
                self.files.add(str(path.relative_to(PACKAGE)))
        elif event == "return" and code is Connection.answer.__code__:
            self._under_way = False


async def produce(acks: int, brokers: int) -> set[str]:
    """Return the files that one more produce of one record passes, once some have gone before."""
    record = encode([Record(0, 0, b"key", b"value")], 0, 0)
    batch = make_batch(record, record_count=1, base_timestamp=0, max_timestamp=0).data
    found = Passage()
    async with Cluster(brokers=brokers) as kafka:
        kafka.create_topic("t", partitions=1, replicas=brokers)
        leader = kafka.leader("t")
        assert leader is not None
        host, _, port = kafka.bootstrap.split(",")[leader - 1].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in range(WARM_UP + 1):
            request = encoded(
                PRODUCE, VERSION, number, acks=acks, transactional_id=None, timeout=timedelta(seconds=30),
                topic_data=[{"name": "t", "partition_data": [{"index": 0, "records": batch}]}],
            )  # fmt: skip
            if number == WARM_UP:
                sys.setprofile(found.profile)
            writer.write(len(request).to_bytes(4, "big") + request)
            response = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        sys.setprofile(None)
        assert b"\0\0" + WARM_UP.to_bytes(8, "big") in response, "no error, and the offset after those before"
        writer.close()
    return found.files


@pytest.mark.parametrize(("acks", "brokers", "at_most"), [(1, 1, 15), (-1, 3, 22)])
def test_a_produce_passes_few_files(acks: int, brokers: int, at_most: int) -> None:
    files = asyncio.run(produce(acks, brokers))
    assert {"wire/connection.py", "requests/produce.py", "log/log.py"} <= files
    assert ("replica/fetcher.py" in files) == (brokers > 1)
    assert len(files) <= at_most, sorted(files)
