"""Which broker wrote a line: by what is around it, and by the files' names, where a folder has several brokers."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from abeyant.pipeline.request_log.brokers import broker_named, by_broker, joined_files
from abeyant.pipeline.request_log.files import chunks, find_logs
from abeyant.pipeline.request_log.rows import parse_chunk

TIMES = dict.fromkeys(("localTimeMs", "responseQueueTimeMs", "sendTimeMs", "requestQueueTimeMs"), 0.1)


def line(broker: int = 0, second: int = 0, port: int = 9092) -> str:
    """One line of Kafka's own layout; a broker has an address of its own."""
    request = {
        "requestHeader": {"requestApiKeyName": "HEARTBEAT", "clientId": "c"},
        "request": {"groupId": "g"},
        "response": {"errorCode": 0},
        "connection": f"10.0.0.{broker}:{port}-10.0.1.7:52486-0-4",
        **TIMES,
        "remoteTimeMs": 3.0,
    }
    return f"[2024-05-01 12:00:{second:02},123] DEBUG Completed request:{json.dumps(request)} (kafka.request.logger)"


@pytest.mark.parametrize(
    ("wrapped", "name"),
    [
        ("{line}", None),
        ("[pod/kafka-0/kafka] {line}", "kafka-0"),
        ("[pod/kafka-0/kafka] 2024-05-01T10:00:00.223456789Z {line}", "kafka-0"),
        ("kafka-1  | {line}", "kafka-1"),
        ("\x1b[36mkafka-1  | \x1b[0m{line}", "kafka-1"),
        ("my-cluster-broker-2 kafka {line}", "my-cluster-broker-2"),
        ("May  1 12:00:00 kafka07 kafka[812]: {line}", "kafka07"),
        ("<14>May  1 12:00:00 kafka07 kafka[812]: {line}", "kafka07"),
        ("<14>1 2024-05-01T12:00:00.123Z kafka07 kafka 812 - - {line}", "kafka07"),
        ("2024-05-01T12:00:00+0000 kafka07 kafka[812]: {line}", "kafka07"),
        ("2024-05-01T12:00:00.123000+00:00 kafka-3/kafka/0d3f {line}", "kafka-3/kafka/0d3f"),
        ('2024-05-01T10:00:00Z {{app="kafka", pod="kafka-2"}} {line}', "kafka-2"),
        ("[broker=2] {line}", "broker-2"),
        ("2024-05-01T10:00:00.223456789Z {line}", None),
        ("2024-05-01T10:00:00.223456789Z stdout F {line}", None),
        ("May  1 12:00:00 localhost kafka: {line}", None),
    ],
)
def test_prefixes(wrapped: str, name: str | None) -> None:
    assert broker_named(wrapped.format(line=line()).encode()) == name


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({}, None),
        ({"kubernetes": {"pod_name": "kafka-0", "host": "node-7"}}, "kafka-0"),
        ({"kubernetes": {"pod": {"name": "kafka-0"}, "container": {"name": "kafka"}}}, "kafka-0"),
        ({"host": {"name": "kafka07"}, "log": {"level": "DEBUG"}}, "kafka07"),
        ({"host": "kafka07", "brokerId": 3}, "broker-3"),
        ({"_HOSTNAME": "kafka07", "SYSLOG_IDENTIFIER": "kafka"}, "kafka07"),
        ({"resource": {"labels": {"pod_name": "kafka-0"}}}, "kafka-0"),
        ({"podName": "kafka-0", "containerName": "kafka"}, "kafka-0"),
        ({"container_name": "/kafka-1"}, "kafka-1"),
        ({"logStreamName": "kafka-0"}, "kafka-0"),
        ({"source_host": "kafka-0"}, "kafka-0"),
        ({"source_host": "localhost"}, None),
        ({"k8s.pod.name": "kafka-0"}, "kafka-0"),
    ],
)
def test_documents(document: dict[str, object], name: str | None) -> None:
    assert broker_named(json.dumps({"message": line(), **document}).encode()) == name


def test_a_flattened_document_is_not_taken_for_what_its_bodies_name() -> None:
    body = json.loads(line()[line().index("{") : line().rindex("}") + 1])
    flattened = {"@timestamp": "2024-05-01T12:00:00Z", "response": {"brokers": [{"host": "a"}], "host": "b"}}
    assert broker_named(json.dumps(body | flattened).encode()) is None
    assert broker_named(json.dumps(body | flattened | {"host": "kafka05"}).encode()) == "kafka05"


def counted(folder: Path | str) -> Counter[str]:
    """Return how many operations of each instance are read of a folder's files: a path, or a URI."""
    found: Counter[str] = Counter()
    ids = set()
    for chunk in chunks(by_broker(find_logs([str(folder / "*") if isinstance(folder, Path) else folder]))):
        for batch in parse_chunk(chunk, {}, ZoneInfo("UTC")):
            for row in batch.to_pylist():
                found[row["instance"]] += row["record"] == "operation"
                ids.add((row["instance"], row["op_id"]))
    assert len([one for one in ids if one[1]]) == sum(found.values()), "ids are unique in an instance"
    return found


def write(file: Path, lines: list[str]) -> None:
    file.parent.mkdir(exist_ok=True)
    text = "".join(f"{one}\n" for one in lines).encode()
    file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)


def test_a_file_of_several_brokers_is_read_line_by_line(tmp_path: Path) -> None:
    lines = [f"[pod/kafka-{n % 3}/kafka] {line(n % 3)}" for n in range(30)] + [line()]
    write(tmp_path / "logs" / "all.log", lines)
    write(tmp_path / "logs" / "all.log.1.gz", lines)
    assert counted(tmp_path / "logs") == {"kafka-0": 20, "kafka-1": 20, "kafka-2": 20, "logs": 2}


def test_events_of_one_document_have_each_its_own(tmp_path: Path) -> None:
    events = [{"logStreamName": f"kafka-{n % 2}", "timestamp": 1714564800123, "message": line(n)} for n in range(6)]
    write(tmp_path / "logs" / "all.json", [json.dumps({"events": events})])
    assert counted(tmp_path / "logs") == {"kafka-0": 3, "kafka-1": 3}


def sources(n: int) -> dict[str, object]:
    return {"@timestamp": "2024-05-01T10:00:00Z", "host": {"name": f"kafka-{n}"}, "message": bare(n)}


def bare(n: int) -> str:
    """A line without a time."""
    return line(n)[line(n).index("Completed") :].removesuffix(" (kafka.request.logger)")


def epoch(n: int) -> int:
    return 1714564800123 + n


DOCUMENTS: dict[str, list[object]] = {
    "aws logs": [
        {
            "events": [
                {"logStreamName": f"kafka-{n % 2}", "timestamp": epoch(n), "message": bare(n), "ingestionTime": 0}
                for n in range(6)
            ],
            "searchedLogStreams": [],
        }
    ],
    "an array": [
        [{"logStreamName": f"kafka-{n % 2}", "timestamp": epoch(n), "message": bare(n)} for n in range(6)],
    ],
    "an event in each": [
        {"events": [{"logStreamName": f"kafka-{n % 2}", "timestamp": epoch(n), "message": bare(n)}]} for n in range(6)
    ],
    "CloudWatch's subscription": [
        {
            "messageType": "DATA_MESSAGE",
            "logGroup": "kafka",
            "logStream": f"kafka-{n}",
            "logEvents": [{"id": str(m), "timestamp": epoch(m), "message": bare(n)} for m in range(3)],
        }
        for n in range(2)
    ],
    "the time outside": [
        {
            "date": "2024-05-01T10:00:00Z",
            "kubernetes": {"pod_name": f"kafka-{n}"},
            "logs": [{"message": "[main] INFO"}, *({"message": bare(n)} for _ in range(3))],
        }
        for n in range(2)
    ],
    "journald": [
        {"__REALTIME_TIMESTAMP": str(1000 * epoch(n)), "_HOSTNAME": f"kafka-{n % 2}", "MESSAGE": bare(n)}
        for n in range(6)
    ],
    "journald, in bytes": [
        {"__REALTIME_TIMESTAMP": str(1000 * epoch(n)), "_HOSTNAME": f"kafka-{n % 2}", "MESSAGE": [*bare(n).encode()]}
        for n in range(6)
    ],
    "Elasticsearch's hits": [
        {
            "took": 1,
            "hits": {
                "total": {"value": 6},
                "hits": [{"_index": "kafka", "_source": sources(n % 2), "fields": {"n": [n]}} for n in range(6)],
            },
        }
    ],
    "ECS": [sources(n % 2) for n in range(6)],
    "docker": [{"container_name": f"/kafka-{n % 2}", "log": line(n), "stream": "stdout"} for n in range(6)],
    "fluentd": [{"kubernetes": {"pod_name": f"kafka-{n % 2}", "host": "node"}, "log": line(n)} for n in range(6)],
    "Loki": [
        {
            "data": {
                "result": [
                    {"stream": {"pod": f"kafka-{n}"}, "values": [[f"{epoch(n)}000000", bare(n)]] * 3} for n in range(2)
                ]
            }
        }
    ],
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_brokers_and_times_are_the_same_however_documents_are_indented(
    tmp_path: Path, name: str, indent: int | str | None
) -> None:
    one_line = "\n".join(json.dumps(one) for one in DOCUMENTS[name])
    found = []
    for text in (one_line, "\n".join(json.dumps(one, indent=indent) for one in DOCUMENTS[name])):
        write(tmp_path / "logs" / "all.json", [text])
        assert +counted(tmp_path / "logs") == {"kafka-0": 3, "kafka-1": 3}
        [file] = by_broker(find_logs(str(tmp_path / "logs" / "all.json")))
        batches = [batch for chunk in chunks([file]) for batch in parse_chunk(chunk, {}, ZoneInfo("UTC"))]
        rows = [row for batch in batches for row in batch.to_pylist() if row["record"] == "operation"]
        found.append(Counter((row["instance"], row["start"]) for row in rows))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_request_of_an_indented_document_is_read_once_wherever_pieces_end(tmp_path: Path, name: str) -> None:
    """Of a document around it the pieces behind the one where it begins know nothing."""
    write(tmp_path / "all.json", ["\n".join(json.dumps(one, indent=2) for one in DOCUMENTS[name])])
    [file] = by_broker(find_logs(str(tmp_path / "all.json")))
    is_inside = name in ("CloudWatch's subscription", "the time outside")
    for size in (file.size // 2, file.size - 1) if is_inside else (700, 1111, file.size - 1):
        found: Counter[str] = Counter()
        for chunk in chunks([file], size):
            for batch in parse_chunk(chunk, {}, ZoneInfo("UTC")):
                found.update(row["instance"] for row in batch.to_pylist() if row["record"] == "operation")
        assert found.total() == 6 if is_inside else found == {"kafka-0": 3, "kafka-1": 3}, (size, found)


def test_brokers_are_told_apart_on_a_store(tmp_path: Path) -> None:
    lines = [f"[pod/kafka-{n % 3}/kafka] {line(n % 3)}" for n in range(30)]
    write(tmp_path / "one" / "kafka-request.log", lines)
    write(tmp_path / "one" / "kafka-request.log.1.gz", lines)
    for pod in range(2):
        write(tmp_path / "two" / f"kafka-request-{pod}.log", [line(pod)])
    assert counted(f"file://{tmp_path / 'one'}") == {"kafka-0": 20, "kafka-1": 20, "kafka-2": 20}
    assert counted(f"file://{tmp_path / 'two'}") == {"kafka-request-0": 1, "kafka-request-1": 1}


@pytest.mark.parametrize("name", ["all.log", "all.log.gz"])
def test_a_broker_whose_lines_come_late_in_a_file_is_seen(tmp_path: Path, name: str) -> None:
    lines = [f"kafka-{n // 3000}  | {line(n // 3000)}" for n in range(6000)]
    write(tmp_path / "logs" / name, lines)
    assert counted(tmp_path / "logs") == {"kafka-0": 3000, "kafka-1": 3000}


def test_one_name_leaves_the_folder_as_the_instance(tmp_path: Path) -> None:
    write(tmp_path / "broker-1" / "kafka-request.log", [f"kafka-1  | {line()}", line()])
    assert counted(tmp_path / "broker-1") == {"broker-1": 2}


def test_files_with_a_name_each(tmp_path: Path) -> None:
    for pod in range(2):
        write(tmp_path / "logs" / f"{pod}.log", [f"[pod/kafka-{pod}/kafka] {line(pod)}"])
    assert counted(tmp_path / "logs") == {"kafka-0": 1, "kafka-1": 1}


def test_files_without_names_by_their_endpoints(tmp_path: Path) -> None:
    for pod in range(3):
        write(tmp_path / "logs" / f"kafka-{pod}.log", [line(pod), line(pod, port=9091)])
        write(tmp_path / "logs" / f"kafka-{pod}.log.2024-05-01-11.gz", [line(pod, port=9094)])
    assert counted(tmp_path / "logs") == {"kafka-0": 3, "kafka-1": 3, "kafka-2": 3}


@pytest.mark.parametrize(
    "names", [("app.log", "app-1.log", "app-2.log.gz"), ("k.2024-05-01.0.log", "k.2024-05-02.1.log")]
)
def test_rotated_files_of_one_broker_stay_together(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        write(tmp_path / "broker" / name, [line(1), line(1, port=9091)])
    assert counted(tmp_path / "broker") == {"broker": 2 * len(names)}


def test_a_restarted_broker_with_another_address_is_still_one(tmp_path: Path) -> None:
    write(tmp_path / "broker" / "kafka-request.log.1", [line(1)])
    write(tmp_path / "broker" / "kafka-request.log", [line(2)])
    write(tmp_path / "broker" / "kafka-request.log.2024-05-01-12", [line(3)])
    assert counted(tmp_path / "broker") == {"broker": 3}


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_file_without_requests_does_not_join_brokers(tmp_path: Path, wrapped: bool) -> None:
    for pod in range(3):
        plain = line(pod)
        write(
            tmp_path / "logs" / f"kafka-{pod}.log",
            [json.dumps({"log": plain, "stream": "stdout"}) if wrapped else plain],
        )
    write(tmp_path / "logs" / "server.log", ["[2024-05-01 12:00:00,123] INFO started (kafka.server.KafkaServer)"])
    assert +counted(tmp_path / "logs") == {"kafka-0": 1, "kafka-1": 1, "kafka-2": 1}
    assert joined_files(by_broker(find_logs(str(tmp_path / "logs" / "*")))) == []


def test_files_that_nothing_tells_apart_are_named(tmp_path: Path) -> None:
    for pod in range(5):
        write(tmp_path / "logs" / f"kafka-{pod}.log", [line()])
    write(tmp_path / "logs" / "server.log", ["[2024-05-01 12:00:00,123] INFO started (kafka.server.KafkaServer)"])
    assert joined_files(by_broker(find_logs(str(tmp_path / "logs" / "*")))) == [
        "5 files read as one broker, logs: kafka-0.log, kafka-1.log, kafka-2.log, ...; "
        "if several brokers wrote them, give each broker a folder; if one did, give --instance"
    ]
    rotated = tmp_path / "broker"
    for name in ("kafka-request.log", "kafka-request.log.1"):
        write(rotated / name, [line()])
    assert joined_files(by_broker(find_logs(str(rotated)))) == []
