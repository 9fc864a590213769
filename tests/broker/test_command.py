"""`abeyant broker`: it says where it listens, serves, ends tidily; a mistake is one line."""

from __future__ import annotations

import base64
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from abeyant import cli
from abeyant.installation import install_command

COMMAND = [sys.executable, "-m", "abeyant", "broker", "--port", "0"]


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the bootstrap servers that it has printed."""
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("bootstrap.servers="), line or process.communicate()[1]
            yield process, line.strip().partition("=")[2]
        finally:
            if process.poll() is None:
                process.kill()


def produce(bootstrap: str, topic: str, value: bytes) -> None:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors == [None]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_asked_to_end(number: signal.Signals, tmp_path: Path) -> None:
    arguments = ["--brokers", "2", "--topic", "orders:3:2", "--request-log", str(tmp_path)]
    with running(*arguments, "--set", "min.insync.replicas=2") as (process, bootstrap):
        assert bootstrap.count("127.0.0.1:") == 2
        produce(bootstrap, "orders", b"one")
        process.send_signal(number)
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 0
        assert "2 brokers, records in memory" in said
        assert "Traceback" not in said
    logs = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.log"))
    assert "broker-1/kafka-request.log" in logs


def test_control_and_the_window_are_told_on_the_first_line_in_json() -> None:
    command = [*COMMAND, "--brokers", "2", "--control", "--window", "--clock", "held"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            with urllib.request.urlopen(f"{told['control']}cluster") as answer:
                found = json.load(answer)
            assert found["bootstrap"] == told["bootstrap.servers"]
            assert [one["state"] for one in found["brokers"]] == ["running"] * 2
            assert found["clock"]["held"] is True
            with urllib.request.urlopen(f"{told['window']}state") as answer:
                assert len(json.load(answer)["cluster"]["brokers"]) == 2
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                process.kill()


def test_beside_other_containers_the_advertised_name_reaches_control_and_the_window() -> None:
    token = "a-long-token"
    listening = ["--host", "0.0.0.0", "--advertise", "kafka.test", "--control", "--window", "--token", token]
    command = [*COMMAND, *listening, "--until-stdin-closes"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        told = json.loads(process.stdout.readline())
        for name, path in {"control": "cluster", "window": "state"}.items():
            host, port = told[name].removeprefix("http://").rstrip("/").split(":")
            assert host == "kafka.test"
            for called, status in ((host, 200), ("another.test", 421)):
                http = HTTPConnection("127.0.0.1", int(port), timeout=30)
                http.request(
                    "GET", f"/{path}", headers={"Host": f"{called}:{port}", "Authorization": f"Bearer {token}"}
                )
                assert http.getresponse().status == status
                http.close()
        process.stdin.close()  # as when this process ends
        assert process.wait(30) == 0


def test_a_program_is_told_in_json(tmp_path: Path) -> None:
    command = [*COMMAND, "--json", "--request-log", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
    assert told.pop("bootstrap.servers").startswith("127.0.0.1:")
    assert told == {"brokers": 1, "data": None, "request_log": str(tmp_path)}


def test_what_it_keeps_is_there_when_it_starts_again(tmp_path: Path) -> None:
    with running("--data", str(tmp_path / "data"), "--topic", "orders") as (process, bootstrap):
        produce(bootstrap, "orders", b"kept")
        process.send_signal(signal.SIGINT)
        process.wait(30)
    from abeyant.broker import Cluster

    with Cluster(data=tmp_path / "data") as kafka:
        assert [record.value for record in kafka.records("orders")] == [b"kept"]


MISTAKES = [
    (["--set", "min.insync.replica=2"], "min.insync.replicas"),
    (["--set", "min.insync.replicas"], "--set takes NAME=VALUE"),
    (["--brokers", "0"], "--brokers must be from 1 to 1000, not 0"),
    (["--topic", "orders:x"], "--topic takes NAME[:PARTITIONS[:REPLICAS]]"),
    (["--topic", "orders:1:3"], "orders"),
    (["--topic", "orders:0"], "--topic orders:0: partitions and replicas must be 1 or more"),
    (["--topic", "orders:1:0"], "--topic orders:1:0: partitions and replicas must be 1 or more"),
    (["--topic", "orders:1", "--topic", "orders:3"], "--topic orders is given twice: leave one out"),
    (["--set", "num.partitions=1", "--set", "num.partitions=3"], "--set num.partitions is given twice"),
    (["--host", ""], "--host is empty"),
    (["--advertise", "kafka:x"], "advertise is 'kafka:x': the port must be from 1 to 65535"),
    (["--token", "a-long-token"], "--token is for --control or --window: add one, or leave --token out"),
    (["--clock", "held"], "--clock is for --control or --window: add one, or leave --clock out"),
    (["--control", "--host", "0.0.0.0"], "0.0.0.0 is not loopback, so others can reach it: give a token"),
    (["--request-log", "/dev/null/logs"], "cannot write a request log to /dev/null/logs: Not a directory"),
    (["--set", "listeners=PLAINTEXT://:9092"], "give the cluster host= and port= (abeyant broker --host, --port)"),
    (["--host", "192.0.2.1"], "cannot listen at 192.0.2.1"),
    (["--port", "65534", "--brokers", "3"], "3 brokers have ports up to 65536; a port is from 0 to 65535"),
    (["--set", "node.id=2147483647", "--brokers", "2"], "node.id 2147483647 is too large"),
    (["--set", "num.partitions=1_0"], "Invalid value 1_0 for configuration num.partitions: Not a number"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_mistake_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert cli.main([*COMMAND[3:], *arguments]) == 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.slow  # starts a process for each
@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_mistake_is_all_that_its_process_says(arguments: list[str], said: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_without_its_extra_control_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("abeyant.lazy.find_spec", lambda name: None if name == "h11" else find_spec(name))
    assert cli.main(["broker", "--control"]) == 2
    assert capsys.readouterr().err.startswith("abeyant: error: --control needs h11: pip install ")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*COMMAND[:-1], str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1:{port}" in done.stderr


def test_the_request_log_has_a_line_for_each_request_with_kafkas_names(tmp_path: Path) -> None:
    with running("--brokers", "2", "--topic", "orders:1:2", "--request-log", str(tmp_path)) as (process, bootstrap):
        produce(bootstrap, "orders", b"one")
        process.send_signal(signal.SIGINT)
        process.wait(30)
    # Which broker a client asks for metadata is its own choice.
    lines = [line for path in sorted(tmp_path.rglob("*.log")) for line in path.read_text().splitlines()]
    assert all(line.endswith(" (kafka.request.logger)") for line in lines)
    requests = [json.loads(line.partition("Completed request:")[2].rpartition(" (")[0]) for line in lines]
    by_name = {request["requestHeader"]["requestApiKeyName"]: request for request in requests}
    assert {"API_VERSIONS", "METADATA", "PRODUCE", "FETCH"} <= by_name.keys()
    body = by_name["PRODUCE"]["request"]
    assert body["acks"] == -1
    assert body["topicData"][0]["partitionData"][0]["recordsSizeInBytes"] > 60
    assert by_name["PRODUCE"]["clientInformation"]["softwareName"] == "confluent-kafka-python"
    followers = [request for request in requests if request["requestHeader"]["clientId"] == "broker-2-fetcher-0"]
    fetched = [
        partition["fetchOffset"]
        for request in followers
        for topic in request["request"]["topics"]
        for partition in topic["partitions"]
    ]
    assert fetched[-1] == 1


def test_the_extra_that_is_not_installed_is_named() -> None:
    without = "import sys; sys.modules['kio'] = None; from abeyant.cli import main; sys.exit(main(['broker']))"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    said = f"Cluster needs kio: {install_command('broker')}"
    assert done.stderr.splitlines() == [f"abeyant: error: {said}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "alice:word"], "--user NAME:PASSWORD and --security SASL_PLAINTEXT or SASL_SSL need each other"),
        (["--security", "SASL_SSL"], "--user NAME:PASSWORD and --security SASL_PLAINTEXT or SASL_SSL need each other"),
        (["--security", "SASL_SSL", "--user", "alice"], "--user takes NAME:PASSWORD, for instance alice:a-password"),
        (["--security", "SASL_SSL", "--user", "a:b", "--user", "a:c"], "--user a is given twice: leave one out"),
    ],
)
def test_users_and_sasl_go_together(arguments: list[str], message: str) -> None:
    run = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode != 0
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_it_says_whom_clients_have_to_trust() -> None:
    with running("--security", "SASL_SSL", "--user", "alice:open sesame") as (process, bootstrap):
        assert process.stdout is not None
        name, _, path = process.stdout.readline().strip().partition("=")
        assert name == "ssl.ca.location"
        producer = Producer(
            {
                "bootstrap.servers": bootstrap, "security.protocol": "SASL_SSL", name: path, "sasl.mechanism": "PLAIN",
                "sasl.username": "alice", "sasl.password": "open sesame",
            }
        )  # fmt: skip
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0
        assert not Path(path).exists()


def test_racks_and_clients_with_tokens() -> None:
    tokens = ("--security", "SASL_PLAINTEXT", "--set", "sasl.enabled.mechanisms = OAUTHBEARER")
    with running("--brokers", "2", "--racks", "east,west", *tokens) as (_, bootstrap):
        parts = [json.dumps(one).encode() for one in ({"alg": "none"}, {"sub": "alice", "exp": time.time() + 3600})]
        token = ".".join([*(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts), ""])
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 3600),
        }  # fmt: skip
        admin = AdminClient(config)
        assert [node.rack for node in admin.describe_cluster().result(30).nodes] == ["east", "west"]
    with subprocess.Popen([*COMMAND, "--racks", "east,,west"], stderr=subprocess.PIPE, text=True) as process:
        assert "--racks takes NAME,NAME..., for instance east,west, not 'east,,west'" in process.communicate()[1]
