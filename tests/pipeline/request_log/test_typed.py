"""What the typed parser reads is what `LineParser` reads: on genuine logs, and on damaged and strange lines."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator, Mapping
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from abeyant.pipeline.request_log import rows
from abeyant.pipeline.request_log.files import Chunk, find_logs
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.operation import Read, read_request
from abeyant.pipeline.request_log.rows import parse_chunk
from abeyant.pipeline.request_log.typed import TypedParser
from pipeline.request_log.kafka_lines import fetch, line, names_told, produce
from seeds import share

DATA = Path(__file__).parents[2] / "data"
SAMPLES = Path(__file__).parent / "samples"
CLOCKS = ("UTC", "Europe/Berlin")


def oracle(parser: LineParser, one: bytes, topics: Mapping[str, str]) -> Read | None:
    """Return what `LineParser` and `operation` make of a line; None for a bad one."""
    try:
        return read_request(parser.parse(one), topics)
    except BadLineError:
        return None


def check(lines: Iterator[bytes], zone: str = "UTC") -> int:
    """Hold each line that the typed parser reads against the oracle; return how many it read."""
    topics = {"cN3L5gKISo2obYcXALf9RA": "orders", "t": "orders"}
    typed, slow = TypedParser(ZoneInfo(zone), topics), LineParser(ZoneInfo(zone))
    count = 0
    for one in lines:
        found = typed.read(one)
        if found is not None:
            count += 1
            assert found == oracle(slow, one, topics), one
    return count


@pytest.mark.slow  # all of a log
def test_all_shipped_lines_are_typed_and_equal(shipped: tuple[bytes, ...]) -> None:
    topics = names_told(shipped)
    typed, slow = TypedParser(UTC, topics), LineParser(UTC)
    for one in shipped:
        assert typed.read(one) == oracle(slow, one, topics), one


def test_the_other_genuine_logs_are_equal() -> None:
    debug = gzip.decompress((DATA / "kafka-request-debug.log.gz").read_bytes()).splitlines()
    assert check(iter(debug)) == len(debug)
    for file in SAMPLES.iterdir():
        check(iter(file.read_bytes().splitlines()))


VALUES: tuple[str, ...] = (
    *("null", "true", "false", '""', '"x"', "[]", "{}", "[{}]", "[1]", '{"a":[]}', "0", "-1", "7", "15", "1.5", "1.0"),
    *("-0", "-0.0", "1e2", "1e400", "NaN", "01", "32768", "2147483648", "9223372036854775806", "9223372036854775807"),
    *("-9223372036854775809", "1" + "0" * 40, r'"\ud800"', r'"\u00e9"', '"é"', '"raft-client-1"', '"CONTROLLER"'),
    *(r'"a\"requestApiKeyName\":\"FETCH\""', '[{"partitions":[{"errorCode":7}]}]', '[{"name":"a","partitions":null}]'),
)
NAMES: tuple[str, ...] = (
    *("name", "topic", "topicId", "errorCode", "replicaState", "replicaId", "topics", "responses", "partitions"),
    *("partition", "index", "fetchOffset", "baseOffset", "maxWaitMs", "timeoutMs", "request", "response", "listener"),
    *("requestHeader", "requestApiKeyName", "clientId", "remoteTimeMs", "localTimeMs", "topicData", "partitionData"),
)
TOKENS: tuple[str, ...] = (
    *r'{}[]":,\ 0-9.e',
    *("\t", "\x00", "é", r"\u12", "null", "Completed request:", "requestHeader", "} (x)", " [thread-1]"),
)


def mutate(one: bytes, chance: random.Random) -> bytes:
    """Damage a line, or make it strange."""
    text = one.decode()
    match chance.randrange(8):
        case 0:
            return one[: chance.randrange(len(one))]
        case 1:
            at = chance.randrange(len(one))
            return one[:at] + bytes([chance.randrange(256)]) + one[at + chance.randrange(3) :]
        case 2:
            at = chance.randrange(len(text))
            return (text[:at] + chance.choice(TOKENS) + text[at + chance.randrange(3) :]).encode()
        case 3:  # in the head
            at = chance.randrange(60)
            return (text[:at] + chance.choice((*TOKENS, "2026-11-21T10:00:00.5Z ", "1", "+02:00")) + text[at:]).encode()
        case 4:  # a second member of the same name
            name, value = chance.choice(NAMES), chance.choice(VALUES)
            places = [at for at, char in enumerate(text) if char == "{"] or [0]
            at = chance.choice(places) + 1
            return f'{text[:at]}"{name}":{value},{text[at:]}'.encode()
        case 5:  # a member less
            name = chance.choice(NAMES)
            return text.replace(f'"{name}":', f'"{name}_":', chance.randrange(1, 3)).encode()
        case _:
            name, value = chance.choice(NAMES), chance.choice(VALUES)
            before, found, after = text.partition(f'"{name}":')
            ends = [at for at in (after.find(","), after.find("}"), after.find("]")) if at >= 0]
            end = 0 if after.startswith(("{", "[")) or not ends else min(ends)
            return (before + found + value + ("," if not end else "") + after[end:]).encode()


@pytest.mark.parametrize("zone", CLOCKS)
def test_mutations_are_read_the_same_or_left_to_the_line_parser(shipped: tuple[bytes, ...], zone: str) -> None:
    chance = random.Random(zone)
    by_kind = {one[one.find(b"KeyName") :][:24]: one for one in shipped}  # one of each API, the others at random
    base = [*by_kind.values(), produce(), fetch(), line("HEARTBEAT", {"groupId": "g"}, {"errorCode": 0}, remote=2.0)]

    def mutations() -> Iterator[bytes]:
        for number in range(share(6_000)):
            one = chance.choice(base) if number % 2 else chance.choice(shipped)
            for _ in range(chance.choice((1, 1, 2))):
                one = mutate(one, chance) if one.isascii() and one else one
            yield one

    assert check(mutations(), zone) > share(1_000)


@pytest.mark.parametrize(
    "one",
    [
        produce(),
        produce(error_code=7, remote=30_000.0),
        line("PRODUCE", {"acks": 0, "timeoutMs": 5, "topicData": []}),
        line("FETCH", {"maxWaitMs": -1, "topics": None, "replicaId": 3}, {"responses": None}, remote=9.0),
        line("FETCH", {"maxWaitMs": 9, "replicaId": 1, "replicaState": {}}, {"errorCode": -1}, remote=9.0),
        line("FETCH", {"maxWaitMs": 500}, {}, remote=499.0, listener="CONTROLLER"),
        line("FETCH", {"maxWaitMs": 500}, {}, remote=498.7),
        line("OFFSET_COMMIT", {"groupId": "g"}, {"topics": [{"partitions": [{"errorCode": 15}]}]}, remote=5.0),
        produce()
        .replace(b"[2026-11-21 10:00:01,000]", b"2026-11-21T10:00:01.250+0200")
        .replace(b" (kafka", b" - (kafka"),
        b"2026-11-21T10:00:01.25Z stdout F " + produce() + b" [data-plane-kafka-network-thread-0]",
    ],
)
def test_lines_that_the_typed_parser_takes(one: bytes) -> None:
    assert check(iter([one, one])) == 2


def plain(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pa.Table.from_batches(batches).to_pylist()
    return sorted(found, key=lambda row: (str(row["record"]), str(row["op_id"]), str(row["line_number"]), str(row)))


def test_rows_are_those_of_the_line_parser_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    lines = gzip.decompress((DATA / "kafka-request-debug.log.gz").read_bytes()).splitlines()
    lines += [mutate(one, chance) for one in lines]
    (tmp_path / "kafka-request.log").write_bytes(b"\n".join(lines))
    [file] = find_logs(tmp_path)
    chunk, zone = Chunk(file, 0, file.size, 10), ZoneInfo("UTC")
    fast = plain(parse_chunk(chunk, {}, zone))
    monkeypatch.setattr(TypedParser, "read", lambda self, line: None)
    assert fast == plain(parse_chunk(chunk, {}, zone))
    assert {row["record"] for row in fast} == {"operation", "rejected", "requests"}


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (produce(error_code=2**31), "field errorCode is 2147483648, beyond Kafka's 16 bits"),
        (produce().replace(b'"client"', rb'"\ud800"'), "not valid text: a lone surrogate"),
        (produce().replace(b'"orders"', rb'"\udfff"'), "not valid text: a lone surrogate"),
    ],
)
def test_what_no_column_can_hold_is_rejected(tmp_path: Path, one: bytes, reason: str) -> None:
    (tmp_path / "kafka-request.log").write_bytes(b"\n".join([produce(), one, produce()]))
    [file] = find_logs(tmp_path)
    found = plain(parse_chunk(Chunk(file, 0, file.size), {}, ZoneInfo("UTC")))
    assert [(row["line_number"], row["reason"]) for row in found if row["record"] == "rejected"] == [(2, reason)]


def test_each_request_of_a_line_has_its_own_id(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log").write_bytes(b"\n".join([produce(), produce() + produce() + b"{x}" * 9, produce()]))
    [file] = find_logs(tmp_path)
    found = plain(parse_chunk(Chunk(file, 0, file.size), {}, ZoneInfo("UTC")))
    ids = [row["op_id"] for row in found if row["record"] == "operation"]
    assert ids == [f"kafka-request.log:{place}" for place in ("1", "2", "3")]
    rejected = [(row["line_number"], row["reason"]) for row in found if row["record"] == "rejected"]
    assert rejected == [(2, "text after the JSON")]
    (tmp_path / "kafka-request.log").write_bytes(b"\n".join([produce() * 3, produce()]))
    [file] = find_logs(tmp_path)
    found = plain(parse_chunk(Chunk(file, 0, file.size), {}, ZoneInfo("UTC")))
    ids = [row["op_id"] for row in found if row["record"] == "operation"]
    assert ids == [f"kafka-request.log:{place}" for place in ("1", "1.1", "1.2", "2")]


def test_a_column_that_no_table_has_is_an_error_and_no_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka-request.log").write_bytes(produce())
    [file] = find_logs(tmp_path)
    misspelt = tuple("size_byte" if name == "size_bytes" else name for name in rows._OPERATED)
    monkeypatch.setattr(rows, "_OPERATED", misspelt)
    with pytest.raises(KeyError, match="no table of a log has the columns size_byte"):
        list(parse_chunk(Chunk(file, 0, file.size), {}, ZoneInfo("UTC")))


def test_a_request_without_its_bodies() -> None:
    assert isinstance(LineParser().parse(line("FETCH")), ApiRequest)
    assert check(iter([line("FETCH"), line("PRODUCE", remote=3.0)])) == 2
