"""The records that every client sends and reads back, and whether they came through."""

from __future__ import annotations

import base64
import json
from typing import Any

from abeyant.broker import Cluster

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_VALUES: list[bytes | None] = [*(b"value %d" % number * 10 for number in range(18)), None, b""]
_TIME = 1_700_000_000_000


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


RECORDS: list[dict[str, Any]] = [
    {
        "partition": number % 2,
        "timestamp": _TIME + number,
        "key": _base64(None if number % 4 == 0 else b"key %d" % number),
        "value": _base64(value),
        "headers": [{"name": "a", "value": _base64(b"%d" % number)}, {"name": "b", "value": _base64(b"\x00\xff")}],
    }
    for number, value in enumerate(_VALUES)
]
"""In order of sending, to two partitions; bytes are base64."""

LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)
EXPECTED = [
    {**record, "offset": offset}
    for partition in (0, 1)
    for offset, record in enumerate(one for one in RECORDS if one["partition"] == partition)
]
"""What the topic has then, by partition and offset."""


def written(kafka: Cluster, topic: str) -> list[dict[str, Any]]:
    """What the topic has, in the same form."""
    return [
        {
            "partition": one.partition,
            "offset": one.offset,
            "timestamp": one.timestamp,
            "key": _base64(one.key),
            "value": _base64(one.value),
            "headers": [{"name": name, "value": _base64(value)} for name, value in one.headers],
        }
        for one in kafka.records(topic)
    ]


def codec_of(kafka: Cluster, topic: str) -> str:
    """The codec of the first batch of a topic, as the leader has it."""

    def look() -> str:
        leader = kafka.controller.topics[topic].partitions[0].leader
        log = kafka.brokers[leader].partitions[topic, 0].log
        return CODECS[log.read(0, 1 << 20, log.end_offset, min_one=True)[22] & 7]  # attributes, a batch's bytes 21, 22

    return kafka._on_loop(look)
