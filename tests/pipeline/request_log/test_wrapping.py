"""Lines as container runtimes, journald and log shippers hand them on: each is the request that Kafka wrote."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.request_log.line import BadLineError, LineParser, topic_names
from abeyant.pipeline.request_log.operation import operation
from abeyant.pipeline.request_log.wrapping import each_request
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
    "log4j2's XML": lambda: (
        f'<Event timeMillis="{EPOCH}234" level="DEBUG"><Message>{html.escape(message())}</Message></Event>'.encode()
    ),
    "HTML": lambda: html.escape(text()).encode(),
    "flattened to text": lambda: in_json(
        **{"@timestamp": WRITTEN},
        **{name: json.dumps(value) if isinstance(value, dict | float) else value for name, value in body().items()},
    ),
    "a CSV file": lambda: in_csv("2026-11-21 10:00:09.000", text()),
    "journald": lambda: in_json(
        __REALTIME_TIMESTAMP=str(EPOCH * 1_000_000 + 999_999), _PID="7", SYSLOG_IDENTIFIER="kafka", MESSAGE=text()
    ),
    "Graylog": lambda: in_json(short_message=message()[:40], full_message=message(), timestamp=SENT.timestamp()),
    "Splunk": lambda: in_json(result={"_raw": message(), "_time": SENT.isoformat()}),
    "Azure": lambda: in_json(TimeGenerated=SENT.isoformat(), LogMessage=message()),
    "Elasticsearch's fields": lambda: in_json(fields={"message": [text()]}, _id="7"),
    "Logstash's rubydebug": lambda: f'  "message" => {json.dumps(text())},'.encode(),
    "rsyslog, in colour": lambda: f"2026-11-21T10:00:09+00:00 k kafka[7]: #033[36m{text()}#033[m".encode(),
    "YAML": lambda: f"- message: '{text()}'".encode(),
    "pipes": lambda: f"{WRITTEN} | DEBUG | {message()} | kafka.request.logger".encode(),
    "colours, around the logger too": lambda: (
        f"\x1b[32m[{WRITTEN}]\x1b[m {message()} \x1b[2m(k.r.logger)\x1b[m".encode()
    ),
    "AWS's text": lambda: f"EVENTS\t{EPOCH}999\t{text()}\t{EPOCH}888".encode(),
    "a space after the marker": lambda: text().replace("request:{", "request: {").encode(),
    "Elasticsearch's fields, all lists": lambda: in_json(
        fields={"@timestamp": [SENT.isoformat()], "message": [message()]}
    ),
    "a context after it": lambda: text().encode() + b" {}",
    "an array's first": lambda: b"[" + in_json(message=text()) + b",",
    "a time of log4j's DATE": lambda: text().replace("2026-11-21", "21 Nov 2026").encode(),
    "a time of log4j's COMPACT": lambda: text().replace(WRITTEN, "20261121100001234").encode(),
    "milliseconds since 1970": lambda: text().replace(WRITTEN, f"{EPOCH}234").encode(),
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


def test_the_parser_of_one_request_rejects_several_and_reads_none_of_them() -> None:
    events = in_json(
        messageType="DATA_MESSAGE", logEvents=[{"id": "1", "message": text()}, {"id": "2", "message": text()}]
    )
    for several in (events, b"[" + in_json(log=text()) + b"," + in_json(log=text()) + b"]"):
        with pytest.raises(BadLineError, match="2 requests in one document: only one request per line"):
            LineParser().parse(several)


FLAT = {"@timestamp": SENT.isoformat()}
SEVERAL: dict[str, bytes] = {
    "an array": json.dumps([{"message": text()}, {"message": text()}]).encode(),
    "one after the other": in_json(log=text(), time=LATER) + in_json(log=text(), time=LATER),
    "flattened, in an array": json.dumps([FLAT | body(), FLAT | body()]).encode(),
    "CloudWatch": in_json(logEvents=[{"timestamp": EPOCH * 1000 + 234, "message": message()}] * 2),
    "CloudWatch, twice": in_json(logEvents=[{"message": text()}]) * 2,
    "OpenTelemetry": in_json(
        scopeLogs=[{"logRecords": [{"timeUnixNano": f"{EPOCH}234000000", "body": {"stringValue": message()}}] * 2}]
    ),
    "strings in an array": json.dumps([text(), text()]).encode(),
    "Elasticsearch's hits": in_json(
        hits={"hits": [{"_source": FLAT | {"message": message()}}] * 2, "total": {"value": 2}}
    ),
    "Loki": in_json(data={"result": [{"stream": {"pod": "k"}, "values": [[f"{EPOCH}234000000", message()]] * 2}]}),
    "lines that ran together": text().encode() * 2,
    "a line that another one cut": text()[:150].encode() + text().encode(),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_each_request_of_a_line_is_read_or_rejected(name: str) -> None:
    found, bad = [], []
    for one in each_request(SEVERAL[name]):
        try:
            found.append(LineParser().parse(one))
        except BadLineError as error:
            bad.append(str(error))
    cut = name == "a line that another one cut"
    assert found == [LineParser().parse(text().encode())] * (1 if cut else 2)
    assert bad == (["the line ends inside its JSON"] if cut else [])


def test_a_marker_inside_a_request_does_not_make_it_two() -> None:
    inside = text().replace('"client"', f'"[{WRITTEN}] DEBUG Completed request:"').encode()
    assert LineParser().parse(inside).client_id == f"[{WRITTEN}] DEBUG Completed request:"
    assert each_request(text().encode()) == [text().encode()]


@pytest.mark.parametrize("seconds", [EPOCH, EPOCH * 10**3, EPOCH * 10**6, EPOCH * 10**9, float(EPOCH), str(EPOCH)])
def test_times_since_1970_of_any_unit(seconds: object) -> None:
    assert LineParser().parse(in_json(time=seconds, message=message())).sent_us == EPOCH * 1_000_000


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (in_json(message="started", requestHeader="x"), "not a completed request"),
        (in_json(message=message()), "no timestamp in front of the request"),
        (in_json(time="noon", message=message()), "no timestamp in front of the request"),
        (in_json(time=10**40, message=message()), "no timestamp in front of the request"),
        (in_json(time=True, message=message()), "no timestamp in front of the request"),
        (in_json(time=LATER, requestHeader={}), "no field requestApiKeyName"),
        (in_json(log=text(), time=LATER)[:-300], "the line ends inside its JSON"),
        (b'{"a":' * 100_000 + b"Completed request:", "no timestamp in front of the request"),
    ],
)
def test_a_bad_line_says_why(bad: bytes, reason: str) -> None:
    with pytest.raises(BadLineError, match=reason):
        LineParser().parse(bad)


def test_a_marker_inside_a_request_does_not_hide_the_names_of_topics() -> None:
    response = {"topics": [{"topicId": "r3IRhpJiTnOM9i0B4tRT5g", "name": "orders"}]}
    named = line("METADATA", {}, response, principal=f"[{WRITTEN}] Completed request:x")
    assert list(topic_names(named)) == [("r3IRhpJiTnOM9i0B4tRT5g", "orders")]


def test_names_of_topics_in_json() -> None:
    response = {"topics": [{"topicId": "r3IRhpJiTnOM9i0B4tRT5g", "name": "orders"}]}
    told = line("METADATA", {}, response).decode()
    for one in (
        told.encode(),
        in_json(log=told, time=LATER),
        in_json(requestHeader={}, response=response, a="METADATA"),
    ):
        assert list(topic_names(one)) == [("r3IRhpJiTnOM9i0B4tRT5g", "orders")]


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


@pytest.mark.parametrize(
    "time",
    [
        float("nan"), float("inf"), 10**400, "9" * 400, "9" * 5000, {"epochSecond": 1, "nanoOfSecond": "x"},
        {"epochSecond": 1, "nanoOfSecond": None}, {"epochSecond": 10**400},
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_a_document_s_time_that_is_none_does_no_harm(time: object) -> None:
    """A log that has such a line is read to its end."""
    assert LineParser().parse(in_json(time=time, log=text())) == LineParser().parse(text().encode())
    alone = in_json(time=time, log=message())
    with pytest.raises(BadLineError, match=r"no timestamp in front of the request|not a time"):
        LineParser().parse(alone)
    assert list(topic_names(alone)) == []
    values = json.dumps({"values": [[time, message()], [LATER, message()]]}).encode()
    assert len(each_request(values)) == 2


@pytest.mark.slow
def test_long_lines_are_read_in_time_proportional_to_their_length() -> None:
    """Each of these once took minutes or gigabytes."""
    behind = f"{text().rstrip()}{' ' * 200_000}x".encode()
    with pytest.raises(BadLineError, match="text after the JSON"):
        LineParser().parse(behind)
    numbers = f"{'1700000000.5 ' * 40_000}{message()}".encode()
    assert LineParser().parse(numbers).sent_us == 1_700_000_000_500_000
    small = f"{'{}' * 20_000}{in_json(log=text()).decode() * 2}{' ' * 4_000_000}".encode()
    assert len(each_request(small)) == 2
    listed = f"{'x' * 1_000_000}{json.dumps({'a': [text()] * 20_000})}".encode()
    assert sum(map(len, each_request(listed))) < 30 * len(listed)
