"""A request or response of a single partition is checked or written in one call, as the general way does it."""

from __future__ import annotations

from datetime import timedelta
from struct import error
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant.broker.wire import single
from abeyant.broker.wire.apis import BY_NAME
from abeyant.broker.wire.bounds import walker
from abeyant.broker.wire.encoding import encoder
from abeyant.broker.wire.schema import Codec, ErrorCode, Message
from broker.wire import encoded

CASES = [
    (name, version)
    for name, since in (("Produce", single.PRODUCE_SINCE), ("Fetch", single.FETCH_SINCE))
    for version in range(since, BY_NAME[name].highest + 1)
]
OFFSETS = st.integers(-1, (1 << 63) - 1)
NUMBERS = st.integers(0, (1 << 31) - 1)
NAMES = st.text("abc.-é", max_size=60) | st.text("x", min_size=100, max_size=249)
RECORDS = st.binary(max_size=300) | st.sampled_from([bytes(16_383), bytes(20_000), bytes(2_097_152)])
ID = UUID(int=77 << 64 | 5)


def codec(name: str, version: int) -> Codec:
    return BY_NAME[name].codec(version)


def request(name: str, version: int, **values: Any) -> bytes:
    return encoded(BY_NAME[name].key, version, 1, **values)


def body(name: str, version: int, frame: bytes) -> int:
    """Where the request begins, after its header."""
    return codec(name, version).read_header(memoryview(frame), 0)[1]


def produce(topic: str, records: bytes | None, version: int, *, topics: int = 1, partitions: int = 1) -> bytes:
    data = [{"index": index, "records": records} for index in range(partitions)]
    named = {"topic_id": ID} if version >= 13 else {"name": topic}
    return request(
        "Produce", version, transactional_id=None, acks=-1, timeout=timedelta(seconds=1),
        topic_data=[{**named, "partition_data": data}] * topics,
    )  # fmt: skip


def fetch(topic: str, rack: str, version: int, *, topics: int = 1, partitions: int = 1, forgotten: int = 0) -> bytes:
    named = {"topic_id": ID} if version >= 13 else {"topic": topic}
    data = [
        {
            "partition": index, "current_leader_epoch": 3, "fetch_offset": 1 << 40, "last_fetched_epoch": -1,
            "log_start_offset": -1, "partition_max_bytes": 1 << 20,
        }
        for index in range(partitions)
    ]  # fmt: skip
    known = {"cluster_id": None} | ({"replica_id": -1} if version < 15 else {})
    return request(
        "Fetch", version, **known, max_wait=timedelta(seconds=1), min_bytes=1, max_bytes=1 << 20, isolation_level=1,
        session_id=0, session_epoch=-1, topics=[{**named, "partitions": data}] * topics, rack_id=rack,
        forgotten_topics_data=[{**named, "partitions": (1,)}] * forgotten,
    )  # fmt: skip


def frames(name: str, version: int) -> list[tuple[bytes, bool]]:
    """Requests, and whether each is of a single partition, or in a session of none."""
    long = "t" * 127
    if name == "Produce":
        return [
            *((produce("topic", bytes(size), version), True) for size in (0, 61, 126, 127, 300, 20_000, 3_000_000)),
            (produce("topic", None, version), True),
            (produce(long[1:], b"", version), True),
            (produce(long, b"", version), version >= 13),
            (produce("topic", b"", version, topics=0), False),
            (produce("topic", b"", version, topics=2), False),
            (produce("topic", b"", version, partitions=0), False),
            (produce("topic", b"", version, partitions=2), False),
        ]
    return [
        (fetch("topic", "", version), True),
        (fetch("topic", long[1:], version), True),
        (fetch("topic", long, version), False),
        (fetch(long, "", version), version >= 13),
        (fetch("topic", "", version, topics=0), True),
        (fetch("topic", "", version, topics=2), False),
        (fetch("topic", "", version, partitions=0), False),
        (fetch("topic", "", version, partitions=2), False),
        (fetch("topic", "", version, forgotten=1), False),
    ]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_requests_of_a_single_partition_are_found(name: str, version: int) -> None:
    fits = single.request_fits(BY_NAME[name].key, version)
    assert fits is not None
    for frame, expected in frames(name, version):
        data, start = memoryview(frame), body(name, version, frame)
        assert fits(data, start) is expected
        assert fits(memoryview(frame + b"\x07\x00"), start) is expected  # what comes after it is ignored
        for end in range(max(len(frame) - 200, start), len(frame)):  # its last bytes are missing
            try:
                assert not fits(data[:end], start)
            except IndexError:
                continue


def test_other_requests_are_not_looked_at() -> None:
    assert single.request_fits(BY_NAME["Produce"].key, single.PRODUCE_SINCE - 1) is None
    assert single.request_fits(BY_NAME["Fetch"].key, single.FETCH_SINCE - 1) is None
    assert single.request_fits(BY_NAME["Metadata"].key, 13) is None


@pytest.mark.parametrize(("name", "version"), CASES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_fits_the_general_way_accepts(name: str, version: int, data: st.DataObject) -> None:
    """Bytes are changed at random. Whatever fits would have passed the walk as well, which protects kio (K9)."""
    some = [frame for frame, _ in frames(name, version) if len(frame) < 1000]
    frame = bytearray(data.draw(st.sampled_from(some)))
    start = body(name, version, bytes(frame))
    changes = st.lists(
        st.tuples(st.integers(start, len(frame) - 1), st.sampled_from([0, 1, 2, 3, 127, 128, 129, 200, 255])),
        max_size=4,
    )
    for position, value in data.draw(changes):
        frame[position] = value
    view = memoryview(bytes(frame))
    fits = single.request_fits(BY_NAME[name].key, version)
    assert fits is not None
    try:
        fit = fits(view, start)
    except IndexError:
        fit = False
    if fit:
        entity: Any = codec(name, version).request_entity
        try:
            assert walker(entity)(view, start) <= len(view)
        except (IndexError, ValueError, error) as raised:
            raise AssertionError(f"{bytes(view)!r} fits, but: {raised!r}") from raised


def generally(name: str, version: int, message: Message) -> bytes:
    parts: list[bytes] = [(7).to_bytes(4, "big"), codec(name, version).response_tags]
    entity: Any = codec(name, version).response_entity
    encoder(entity)(parts.append, message)
    return b"".join(parts)


@pytest.mark.parametrize("version", [version for name, version in CASES if name == "Produce"])
@given(topic=NAMES, index=NUMBERS, base=OFFSETS, time=OFFSETS, start=OFFSETS)
@settings(max_examples=25, deadline=None)
def test_a_produce_response_is_the_general_one(
    version: int, topic: str, index: int, base: int, time: int, start: int
) -> None:
    partition = Message(
        index=index, error_code=ErrorCode.none, base_offset=base, log_append_time=None if time < 0 else time,
        log_start_offset=start, record_errors=(),
    )  # fmt: skip
    whole = Message(responses=[Message(name=topic, topic_id=ID, partition_responses=[partition])], node_endpoints=())
    named = ID.bytes if version >= 13 else single.compact_name(topic)
    parts = single.produce_response(7, named, index, base, time, start)
    assert b"".join(parts) == generally("Produce", version, whole)


@pytest.mark.parametrize("version", [version for name, version in CASES if name == "Fetch"])
@given(topic=NAMES, index=NUMBERS, session=NUMBERS, marks=st.tuples(OFFSETS, OFFSETS, OFFSETS), records=RECORDS)
@settings(max_examples=25, deadline=None)
def test_a_fetch_response_is_the_general_one(
    version: int, topic: str, index: int, session: int, marks: tuple[int, int, int], records: bytes
) -> None:
    for committed in False, True:
        partition = Message(
            partition_index=index, error_code=ErrorCode.none, high_watermark=marks[0], last_stable_offset=marks[1],
            log_start_offset=marks[2], aborted_transactions=[] if committed else None, preferred_read_replica=-1,
            records=records,
        )  # fmt: skip
        whole = Message(
            session_id=session, responses=[Message(topic=topic, topic_id=ID, partitions=[partition])], node_endpoints=()
        )
        named = ID.bytes if version >= 13 else single.compact_name(topic)
        parts = single.fetch_response(7, session, named, index, marks, records, committed=committed)
        assert b"".join(parts) == generally("Fetch", version, whole)
