"""Bytes that are no request: the connection is closed, and nothing else happens."""

from __future__ import annotations

import struct

from ..bodies import metadata
from ..client import ClosedError, Connection
from ..messages import API_KEYS, request
from ..scenario import Stage, scenario, table

PRODUCE, FETCH, METADATA, VERSIONS = (API_KEYS[api] for api in ("Produce", "Fetch", "Metadata", "ApiVersions"))


def end_of(connection: Connection) -> str:
    try:
        return f"{len(connection.receive_frame())} bytes"
    except ClosedError:
        return "closed"


def header(key: int, version: int, rest: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + rest


@table(
    unknown_api=(header(999, 0),),
    negative_api=(header(-1, 0),),
    unknown_version_of_metadata=(header(METADATA, 99, b"\0\0"),),
    negative_version_of_metadata=(header(METADATA, -1, b"\0\0"),),
    unknown_version_of_fetch=(header(FETCH, 3, b"\0" * 20),),
    version_of_produce_that_kafka_4_dropped=(header(PRODUCE, 2, b"\0" * 20),),
    api_of_controllers_only=(header(API_KEYS["Vote"], 0, b"\0" * 20),),
    empty_frame=(b"",),
    half_a_header=(b"\0\3",),
    header_without_a_body=(header(METADATA, 1),),
    body_cut_short=(request("Metadata", 12, 1, None, metadata("topic"))[:-3],),
    flexible_body_cut_short=(request("Produce", 9, 1, None, {"acks": 1})[:-2],),
    array_length_beyond_the_frame=(header(METADATA, 1, struct.pack(">i", 1_000_000)),),
    array_length_of_two_billion=(header(METADATA, 1, struct.pack(">i", 2**31 - 1)),),
    string_length_beyond_the_frame=(header(METADATA, 1, struct.pack(">ih", 1, 300)),),
    string_that_is_not_utf_8=(header(METADATA, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),),
    null_where_none_may_be=(header(METADATA, 1, struct.pack(">ih", 1, -1)),),
    bytes_after_the_body=(request("Metadata", 12, 1, None, metadata()) + b"more",),
    client_id_beyond_the_frame=(struct.pack(">hhih", METADATA, 1, 1, 500),),
)
def frame(stage: Stage, data: bytes) -> None:
    connection = stage.connect()
    connection.send_frame(data)
    stage.note("connection", end_of(connection))


@table(
    negative=(-1,),
    two_billion=(2**31 - 1,),
    beyond_socket_request_max_bytes=(104_857_601,),
    text_of_another_protocol=(int.from_bytes(b"GET "),),
)
def length(stage: Stage, size: int) -> None:
    connection = stage.connect()
    connection.send_bytes(struct.pack(">i", size))
    stage.note("connection", end_of(connection))


@scenario()
def others_go_on(stage: Stage) -> None:
    """What one connection says wrong is nobody else's concern."""
    good, bad = stage.connect(), stage.connect()
    stage.note("before", len(good.ask("Metadata", 12, metadata())["brokers"]))
    bad.send_frame(b"nonsense")
    stage.note("connection", end_of(bad))
    stage.note("after", len(good.ask("Metadata", 12, metadata())["brokers"]))


@scenario()
def answers_in_order(stage: Stage) -> None:
    """K10: requests that come together are answered one by one, in their order."""
    connection = stage.connect()
    for _ in range(5):
        connection.send("Metadata", 12, metadata())
        connection.send("DescribeCluster", 0, {})
    stage.note("answers", ["brokers" in connection.receive() for _ in range(10)])


@scenario()
def answered_before_the_connection_ends(stage: Stage) -> None:
    """A good request is answered though nonsense follows it."""
    connection = stage.connect()
    connection.send("Metadata", 12, metadata())
    connection.send_frame(b"nonsense")
    stage.note("first", len(connection.receive()["brokers"]))
    stage.note("connection", end_of(connection))


@scenario()
def a_frame_in_pieces(stage: Stage) -> None:
    data = request("Metadata", 12, 1, "pieces", metadata())
    connection = stage.connect()
    for byte in struct.pack(">i", len(data)) + data:
        connection.send_bytes(bytes([byte]))
    stage.note("connection", end_of(connection) != "closed")


@table(none=(None,), empty=("",), long=("c" * 1000,), not_ascii=("Überprüfung",))
def client_id(stage: Stage, name: str | None) -> None:
    stage.note("brokers", len(stage.connect(client_id=name).ask("Metadata", 12, metadata())["brokers"]))
