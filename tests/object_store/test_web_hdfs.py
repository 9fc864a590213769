"""Files of a real HDFS read over HTTP, as Python workers read request logs there."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.files import DamagedFileError, chunks, find_logs, read_lines
from abeyant.pipeline.spark.remote_files import Reach
from abeyant.pipeline.spark.web_hdfs import WebHdfs
from object_store.buckets import Bucket
from object_store.hdfs import Hdfs

LINES = [f"line {number}".encode() for number in range(100_000)]
TEXT = b"\n".join(LINES)
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def logs(opened: Callable[[str], Bucket]) -> Hdfs:
    store = opened("hdfs")
    assert isinstance(store, Hdfs)
    store.write("web/broker 1/kafka-request.log", TEXT)
    store.write("web/broker-2/kafka-request.log.1", gzip.compress(TEXT))
    store.write("web/broker-2/deep/kafka-request.log", gzip.compress(TEXT)[:5000])
    store.write("web/broker-2/server.log", b"another's")
    return store


def reach(store: Hdfs, *before: str) -> Callable[[str], Reach]:
    return lambda uri: (("addresses", (*before, f"http://127.0.0.1:{store.http}")), ("user", "root"))


def test_logs_are_found_and_read_in_pieces(logs: Hdfs) -> None:
    # Where there are several name nodes, one that does not answer is passed over.
    one, cut, two = find_logs(f"{logs.uri}/web", reach=reach(logs, NOBODY))
    assert [file.instance for file in (one, cut, two)] == ["broker 1", "deep", "broker-2"]
    assert [file.compressed for file in (one, cut, two)] == [False, True, True]
    assert one.size == len(TEXT)
    for file in one, two:
        pieces = chunks([file], 300_000)
        assert len(pieces) == (1 if file is two else -(-len(TEXT) // 300_000))
        assert [line for piece in pieces for line in read_lines(piece)] == LINES
    with pytest.raises(DamagedFileError, match="the gzip file is cut off"):
        list(read_lines(*chunks([cut])))


def test_what_is_not_there_is_named(logs: Hdfs) -> None:
    with pytest.raises(AbeyantError, match=r"no such file or directory: hdfs://.*/web/nothing"):
        find_logs(f"{logs.uri}/web/nothing", reach=reach(logs))
    with pytest.raises(AbeyantError, match=f"{NOBODY} does not answer: .*refused"):
        find_logs(f"{logs.uri}/web", reach=lambda uri: (("addresses", (NOBODY,)), ("user", "root")))
    with pytest.raises(FileNotFoundError, match="does not exist: /nothing"):
        WebHdfs([f"http://127.0.0.1:{logs.http}"], "root").open_input_file("/nothing")
