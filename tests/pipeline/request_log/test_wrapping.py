"""Lines as container runtimes, journald and log shippers hand them on: each is the request that Kafka wrote."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.request_log.files import chunks, find_logs, read_lines
from abeyant.pipeline.request_log.line import BadLineError, LineParser, topic_names
from abeyant.pipeline.request_log.operation import operation
from abeyant.pipeline.request_log.requests import numbered_lines
from abeyant.pipeline.request_log.wrapping import whole_lines
from pipeline.request_log.kafka_lines import line, produce

SENT = datetime(2026, 11, 21, 10, 0, 1, 234_000, UTC)
WRITTEN = "2026-11-21 10:00:01,234"
LATER = "2026-11-21T10:00:02.000000001Z"
OLD = (
    'Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=3, clientId=a "b", correlationId=2) -- {group_id=g},'
    "response:{error_code=0} from connection c;totalTime:1.0,requestQueueTime:0.1,localTime:0.2,remoteTime:0.3,"
    "throttleTime:0,responseQueueTime:0.1,sendTime:0.1,securityProtocol:PLAINTEXT,principal:User:x,listener:PLAINTEXT"
)


def text() -> str:
    return produce(sent=WRITTEN).decode()


def message() -> str:
    return text().partition("DEBUG ")[2].removesuffix(" (kafka.request.logger)")


def body() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message().partition(":")[2])
    return found


def in_json(**members: object) -> bytes:
    return json.dumps(members).encode()


def in_csv(*fields: str) -> bytes:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow(fields)
    return file.getvalue().strip().encode()


EPOCH = int(SENT.timestamp())
WRAPPED: dict[str, Callable[[], bytes]] = {
    "plain": lambda: text().encode(),
    "Strimzi": lambda: (
        text().replace("[", "", 1).replace("]", "", 1).encode()
        + b" [data-plane-kafka-network-thread-0-ListenerName(PLAIN-9092)-PLAINTEXT-0]"
    ),
    "a context before it": lambda: text().replace("DEBUG", "DEBUG {} [thread]").encode(),
    "docker": lambda: in_json(log=text() + "\n", stream="stdout", time=LATER),
    "docker, all on one line": lambda: in_json(log=text() + "\n", stream="stdout", time=LATER).replace(b": ", b":"),
    "CRI": lambda: f"{LATER} stdout F {text()}".encode(),
    "CRI, with more tags": lambda: f"{LATER} stdout F:a:b {text()}".encode(),
    "after a byte order mark": lambda: f"\ufeff{text()}".encode(),
    "in colour": lambda: f"\x1b[36m{text()}\x1b[m".encode(),
    "docker compose": lambda: f"kafka-1  | {text()}".encode(),
    "kubectl's prefix": lambda: f"[pod/kafka-0/kafka] {LATER} {text()}".encode(),
    "journald, as lines": lambda: f"2026-11-21T10:00:09+0000 kafka-0 kafka[7]: {text()}".encode(),
    "docker, with attributes": lambda: in_json(log=text() + "\n", stream="stdout", attrs={"tag": "k"}, time=LATER),
    "fluentd, with a log inside": lambda: in_json(log={"message": text()}, tag="kafka"),
    "fluentd's file": lambda: f"2026-11-21T10:00:09+00:00\tkafka\t{json.dumps({'log': text()})}".encode(),
    "ECS, the original": lambda: in_json(event={"original": text()}, message="x"),
    "Loki": lambda: in_json(labels={"app": "kafka"}, line=message(), timestamp=SENT.isoformat()),
    "flattened, as text": lambda: in_json(**{"@timestamp": SENT.isoformat(), "message": json.dumps(body())}),
    "a JSON layout in CRI": lambda: (
        f"{LATER} stdout F ".encode()
        + in_json(**{"@timestamp": SENT.isoformat(), "level": "DEBUG", "message": message()})
    ),
    "a JSON layout in docker": lambda: in_json(
        log=json.dumps({"timeMillis": EPOCH * 1000 + 234, "message": message()}) + "\n", stream="stdout", time=LATER
    ),
    "fluentd": lambda: in_json(log=text(), stream="stdout", kubernetes={"pod_name": "kafka-0"}, time=LATER),
    "ECS": lambda: in_json(
        **{"@timestamp": SENT.isoformat(), "log.level": "DEBUG", "message": message(), "ecs.version": "1"}
    ),
    "log4j2's JSON": lambda: in_json(instant={"epochSecond": EPOCH, "nanoOfSecond": 234_000_000}, message=message()),
    "CloudWatch": lambda: in_json(timestamp=EPOCH * 1000 + 900, ingestionTime=EPOCH * 1000 + 999, message=text()),
    "CloudWatch, a list of one event": lambda: in_json(
        messageType="DATA_MESSAGE", logEvents=[{"id": "1", "timestamp": EPOCH * 1000 + 234, "message": message()}]
    ),
    "OpenTelemetry": lambda: in_json(
        resourceLogs=[
            {
                "resource": {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "kafka-0"}}]},
                "scopeLogs": [
                    {"logRecords": [{"timeUnixNano": f"{EPOCH}234000000", "body": {"stringValue": message()}}]}
                ],
            }
        ]
    ),
    "CloudWatch, indented": lambda: b'            "message": ' + json.dumps(text()).encode() + b",",
    "a CSV file": lambda: in_csv("2026-11-21 10:00:09.000", text()),
    "journald": lambda: in_json(
        __REALTIME_TIMESTAMP=str(EPOCH * 1_000_000 + 999_999), _PID="7", SYSLOG_IDENTIFIER="kafka", MESSAGE=text()
    ),
    "journald, as bytes": lambda: in_json(__REALTIME_TIMESTAMP=f"{EPOCH}234000", MESSAGE=list(message().encode())),
    "syslog": lambda: f"Nov 21 10:00:09 kafka-0 kafka[7]: {text()}".encode(),
    "syslog, RFC 5424": lambda: f"<15>1 {LATER} kafka-0 kafka 7 - - {text()}".encode(),
    "flattened": lambda: in_json(**{"@timestamp": SENT.isoformat(), "level": "DEBUG"} | body()),
    "flattened, in a document": lambda: in_json(
        _index="logs", _source={"@timestamp": SENT.isoformat(), "kafka": body()}
    ),
    "flattened, names with dots": lambda: in_json(
        **{"@timestamp": SENT.isoformat()}
        | {
            f"{name}.{inner}" if isinstance(value, dict) else name: deep
            for name, value in body().items()
            for inner, deep in (value.items() if isinstance(value, dict) else [("", value)])
        }
    ),
}


@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
def test_each_wrapper_gives_the_request_inside(wrapped: Callable[[], bytes]) -> None:
    request, plain = LineParser().parse(wrapped()), LineParser().parse(text().encode())
    assert request == plain
    assert request.sent_us == round(SENT.timestamp() * 1e6)
    assert operation(request, {}).watches == (("orders-0", 42),)


def test_one_parser_reads_a_file_that_mixes_them() -> None:
    parser = LineParser()
    assert len({str(parser.parse(wrapped())) for wrapped in WRAPPED.values()}) == 1


def test_the_time_inside_counts_before_the_one_around() -> None:
    inside = LineParser().parse(in_json(log=text(), time=LATER))
    around = LineParser().parse(in_json(log=message(), time=LATER))
    assert around.sent_us - inside.sent_us == 766_000


def test_an_old_line_in_json() -> None:
    request = LineParser().parse(
        in_json(log=f"[{WRITTEN}] DEBUG {OLD} (kafka.request.logger)\n", stream="x", time=LATER)
    )
    assert (request.api, request.client_id, request.remote_ms) == ("HEARTBEAT", 'a "b"', 0.3)


def test_a_document_of_several_requests_is_rejected_and_not_read_in_part() -> None:
    events = in_json(
        messageType="DATA_MESSAGE", logEvents=[{"id": "1", "message": text()}, {"id": "2", "message": text()}]
    )
    with pytest.raises(BadLineError, match="2 requests in one document: one a line is read"):
        LineParser().parse(events)


@pytest.mark.parametrize("seconds", [EPOCH, EPOCH * 10**3, EPOCH * 10**6, EPOCH * 10**9, float(EPOCH), str(EPOCH)])
def test_times_since_1970_of_any_unit(seconds: object) -> None:
    assert LineParser().parse(in_json(time=seconds, message=message())).sent_us == EPOCH * 1_000_000


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (in_json(message="started", requestHeader="x"), "not a completed request"),
        (in_json(message=message()), "no time before the request"),
        (in_json(time="noon", message=message()), "no time before the request"),
        (in_json(time=10**40, message=message()), "no time before the request"),
        (in_json(time=True, message=message()), "no time before the request"),
        (in_json(time=LATER, requestHeader={}), "no field requestApiKeyName"),
        (in_json(log=text(), time=LATER)[:-300], "the line ends inside its JSON"),
        (b'{"a":' * 100_000 + b"Completed request:", "no time before the request"),
    ],
)
def test_a_bad_line_says_why(bad: bytes, reason: str) -> None:
    with pytest.raises(BadLineError, match=reason):
        LineParser().parse(bad)


def test_names_of_topics_in_json() -> None:
    response = {"topics": [{"topicId": "r3IRhpJiTnOM9i0B4tRT5g", "name": "orders"}]}
    told = line("METADATA", {}, response).decode()
    for one in (
        told.encode(),
        in_json(log=told, time=LATER),
        in_json(requestHeader={}, response=response, a="METADATA"),
    ):
        assert list(topic_names(one)) == [("r3IRhpJiTnOM9i0B4tRT5g", "orders")]


def docker(part: str, stream: str = "stdout") -> bytes:
    return json.dumps({"log": part, "stream": stream, "time": LATER}, separators=(",", ":")).encode()


@given(st.lists(st.integers(1, 600), max_size=4), st.booleans())
def test_parts_that_a_runtime_cut_are_joined(cuts: list[int], cri: bool) -> None:
    whole = text().replace('"client"', r'"cl\"i\\ent"')
    places = [0, *sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    parts = [whole[a:b] for a, b in pairwise(places)]
    if cri:
        lines = [
            f"{LATER} stdout {'F' if at == len(parts) - 1 else 'P'} {part}".encode() for at, part in enumerate(parts)
        ]
        other = f"{LATER} stderr F a line of another stream".encode()
    else:
        lines = [docker(part + "\n" * (at == len(parts) - 1)) for at, part in enumerate(parts)]
        other = docker("a line of another stream\n", "stderr")
    lines.insert(len(lines) // 2, other)
    joined = list(whole_lines(enumerate(lines, 1)))
    assert max(number for number, _ in joined) == len(lines)
    [request] = [one for _, one in joined if one != other]
    assert isinstance(request, bytes)
    assert LineParser().parse(request).sent_us == round(SENT.timestamp() * 1e6)
    assert LineParser().parse(request).listener == "PLAINTEXT"
    assert request.startswith(f"{LATER} stdout ".encode() if cri else b'{"log":'), "the runtime's time is still there"


@pytest.mark.parametrize("cri", [True, False])
def test_parts_whose_last_is_missing_are_one_bad_line(cri: bool) -> None:
    parts = [text()[:300], text()[300:500]]
    lines = [f"{LATER} stdout P {part}".encode() if cri else docker(part) for part in parts]
    [(number, joined)] = whole_lines(enumerate(lines, 7))
    assert number == 8
    assert isinstance(joined, bytes)
    with pytest.raises(BadLineError, match="the line ends inside its JSON"):
        LineParser().parse(joined)


@pytest.mark.parametrize("cri", [True, False])
def test_lines_cut_at_a_chunks_border_are_read_once(tmp_path: Path, cri: bool) -> None:
    def parts(number: int, stream: str, pieces: int) -> list[bytes]:
        whole = text().replace('"client"', f'"client {number}"')
        places = [len(whole) * at // pieces for at in range(pieces + 1)]
        cut = [whole[a:b] for a, b in pairwise(places)]
        if not cri:
            return [docker(part + "\n" * (at == pieces - 1), stream) for at, part in enumerate(cut)]
        return [f"{LATER} {stream} {'F' if at == pieces - 1 else 'P'} {part}".encode() for at, part in enumerate(cut)]

    lines = [one for number in range(30) for one in parts(number, "stdout", number % 4 + 1)]
    between = iter(parts(30, "stderr", 9))
    for at in range(5, 50, 5):  # the other stream's one line
        lines.insert(at, next(between))
    lines.append(parts(31, "stdout", 2)[0])  # which nothing ends
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    parser = LineParser()
    for size in (150, 500, 1000, 3333, 1 << 20):
        found, bad, before = [], [], 0
        for chunk in chunks(find_logs(path), size):
            for number, one in numbered_lines(replace(chunk, lines_before=before)):
                assert isinstance(one, bytes)
                try:
                    found.append((number, parser.parse(one).client_id))
                except BadLineError as error:
                    bad.append((number, str(error)))
            before += sum(1 for _ in read_lines(chunk))
        assert sorted(client or "" for _, client in found) == sorted(f"client {number}" for number in range(31))
        assert len({number for number, _ in found}) == 31
        assert bad == [(len(lines), "the line ends inside its JSON")]


@given(
    st.recursive(
        st.none() | st.text() | st.integers() | st.floats(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
def test_any_document_gives_a_reason_or_a_request(document: object) -> None:
    for one in (
        json.dumps(document),
        json.dumps({"requestHeader": document, "m": f"Completed request:{json.dumps(document)}"}),
    ):
        with suppress(BadLineError):
            assert LineParser().parse(one.encode()).api
