"""Kafka's own command-line tools, unmodified: kafka-topics, -configs, -consumer-groups, -transactions, and more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from abeyant.broker import Cluster
from abeyant.broker.genuine import Kafka
from abeyant.broker.settings import AUTHORIZER
from broker.clients import producing, send, settle
from broker.groups.members import Confluent
from clients.java import SMALL
from waiting import wait_until

TOPIC = "orders"
HEADINGS = ("GROUP", "TOPIC", "TransactionalId", "CoordinatorId", "ProducerId")


class Tools:
    """Each call starts a JVM."""

    def __init__(self, jars: Kafka, kafka: Cluster) -> None:
        self._jars, self._kafka = jars, kafka

    def groups(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *arguments)

    def topics(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.TopicCommand", *arguments)

    def configs(self, *arguments: str) -> str:
        return self._run("kafka.admin.ConfigCommand", *arguments)

    def transactions(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.TransactionsCommand", *arguments)

    def client_metrics(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.ClientMetricsCommand", *arguments)

    def features(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.FeatureCommand", *arguments)

    def reassign(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *arguments)

    def quorum(self, *arguments: str) -> str:
        return self._run("org.apache.kafka.tools.MetadataQuorumCommand", *arguments)

    def acls(self, *arguments: str) -> str:
        """All that it says: it is refused."""
        done = self._done("org.apache.kafka.tools.AclCommand", *arguments)
        return done.stdout + done.stderr

    def _run(self, name: str, *arguments: str) -> str:
        done = self._done(name, *arguments)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def _done(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = self._jars.command(name, "--bootstrap-server", self._kafka.bootstrap, *arguments, options=SMALL)
        return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def tools(jars: Kafka, kafka: Cluster) -> Tools:
    return Tools(jars, kafka)


def table(said: str) -> list[list[str]]:
    """Its rows, without the heading and what else is said."""
    lines = [line.split() for line in said.splitlines() if line.strip()]
    heading = next(number for number, line in enumerate(lines) if line[0] in HEADINGS)
    return lines[heading + 1 :]


def test_kafka_consumer_groups(kafka: Cluster, tools: Tools) -> None:
    kafka.create_topic(TOPIC, partitions=3)
    with producing(kafka) as producer:
        sent = [send(producer, TOPIC, b"x", part) for part in range(3) for _ in range(4)]
        assert set(settle(producer, *sent)) == {None}
    group = ("--group", "shop")
    with Confluent(kafka.bootstrap, TOPIC, "shop", client_id="till", auto_commit_interval_ms=50) as one:
        wait_until(lambda: len(one.read) == 12)
        assert table(tools.groups("--list", "--state")) == [["shop", "Stable"]]
        rows = table(tools.groups("--describe", *group))
        member = rows[0][6]
        assert member.startswith("till-")
        places = [["shop", TOPIC, str(part), "4", "4", "0", member, "/127.0.0.1", "till"] for part in range(3)]
        assert sorted(rows) == places
        [row] = table(tools.groups("--describe", "--members", "--verbose", *group))
        assert row == ["shop", member, "/127.0.0.1", "till", "3", "-", "orders:0,1,2", "-", "-"]
        [row] = table(tools.groups("--describe", "--state", *group))
        assert row[-3:] == ["range", "Stable", "1"]
        reset = ("--reset-offsets", *group, "--topic", TOPIC, "--to-earliest", "--execute")
        assert "can only be reset if the group 'shop' is inactive" in tools.groups(*reset)
        assert "GroupNotEmptyException: The group is not empty." in tools.groups("--delete", *group)
    assert table(tools.groups("--list", "--state")) == [["shop", "Empty"]]
    moved = tools.groups("--reset-offsets", *group, "--topic", "orders:0,1", "--shift-by", "-1", "--execute")
    assert sorted(table(moved)) == [["shop", TOPIC, "0", "3"], ["shop", TOPIC, "1", "3"]]
    deleted = tools.groups("--delete-offsets", *group, "--topic", "orders:2")
    assert table(deleted) == [[TOPIC, "2", "Successful"]]
    rows = sorted(table(tools.groups("--describe", *group)))
    assert rows == [["shop", TOPIC, str(part), "3", "4", "1", "-", "-", "-"] for part in (0, 1)]
    assert "Deletion of requested consumer groups ('shop') was successful." in tools.groups("--delete", *group)
    assert tools.groups("--list") == ""


def test_kafka_topics_and_configs(kafka: Cluster, tools: Tools) -> None:
    made = ("--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    assert tools.topics("--create", "--topic", TOPIC, *made) == "Created topic orders.\n"
    assert tools.topics("--list") == "orders\n"
    told = tools.topics("--describe", "--topic", TOPIC).splitlines()
    assert told[0].endswith("PartitionCount: 3\tReplicationFactor: 3\tConfigs: min.insync.replicas=2")
    assert told[1].split("\t")[1:6] == [f"Topic: {TOPIC}", "Partition: 0", "Leader: 1", "Replicas: 1,2,3", "Isr: 1,2,3"]
    tools.topics("--alter", "--topic", TOPIC, "--partitions", "4")
    topic = ("--entity-type", "topics", "--entity-name", TOPIC)
    given = "retention.ms=60000,cleanup.policy=[compact,delete]"
    assert tools.configs("--alter", *topic, "--add-config", given) == "Completed updating config for topic orders.\n"
    tools.configs("--alter", *topic, "--delete-config", "min.insync.replicas")
    told = tools.configs("--describe", *topic).splitlines()
    assert [line.split()[0] for line in told[1:]] == ["cleanup.policy=compact,delete", "retention.ms=60000"]
    tools.configs("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=70000")
    assert "log.retention.ms=70000" in tools.configs("--describe", "--entity-type", "brokers", "--entity-default")
    tools.topics("--delete", "--topic", TOPIC)
    assert kafka.topics() == []


def test_kafka_transactions(kafka: Cluster, tools: Tools) -> None:
    kafka.create_topic(TOPIC)
    place = ("--topic", TOPIC, "--partition", "0")
    with producing(kafka, transactional_id="till", retries=3) as producer:
        producer.init_transactions(30)
        producer.begin_transaction()
        assert settle(producer, send(producer, TOPIC, b"an apple")) == [None]
        [row] = table(tools.transactions("list"))
        assert (row[0], row[3]) == ("till", "Ongoing")
        [row] = table(tools.transactions("describe", "--transactional-id", "till"))
        assert (row[1], row[4:6], row[-1]) == ("till", ["Ongoing", "60000"], "orders-0")
        [row] = table(tools.transactions("describe-producers", *place))
        assert row[-1] == "0", "where its transaction begins"
        tools.transactions("abort", *place, "--start-offset", "0")
        [row] = table(tools.transactions("describe-producers", *place))
        assert row[-1] == "None"
        assert kafka.records(TOPIC, isolation="read_committed") == []


def test_kafka_configs_of_groups(kafka: Cluster, tools: Tools) -> None:
    kafka.create_topic(TOPIC, partitions=3)
    shop = ("--entity-type", "groups", "--entity-name", "shop")
    given = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    assert tools.configs("--alter", *shop, "--add-config", given) == "Completed updating config for group shop.\n"
    told = tools.configs("--describe", *shop).splitlines()
    assert sorted(line.split()[0] for line in told[1:]) == sorted(given.split(","))
    with Confluent(kafka.bootstrap, TOPIC, "shop", session=None, group_protocol="consumer") as one:
        wait_until(lambda: len(one.partitions) == 3)
        [session] = kafka.waiting("Heartbeat")
        assert 49.9 < session.deadline - session.since <= 50.0
    tools.configs("--alter", *shop, "--delete-config", "consumer.session.timeout.ms")
    told = tools.configs("--describe", "--entity-type", "groups").splitlines()
    assert told[0] == "Dynamic configs for group shop are:"
    assert [line.split()[0] for line in told[1:]] == ["consumer.heartbeat.interval.ms=6000"]


def test_what_there_is_none_of(tools: Tools) -> None:
    assert "SecurityDisabledException: No Authorizer is configured" in tools.acls("--list")
    assert tools.client_metrics("--list").strip() == ""
    assert tools.configs("--describe", "--entity-type", "clients") == ""


def test_kafka_configs_of_quotas(kafka: Cluster, tools: Tools) -> None:
    kafka.create_topic(TOPIC)
    till = ("--entity-type", "clients", "--entity-name", "till")
    added = ("--add-config", "producer_byte_rate=1000,consumer_byte_rate=2000")
    assert tools.configs("--alter", *till, *added) == "Completed updating config for client till.\n"
    told = tools.configs("--describe", *till)
    assert told.startswith("Quota configs for client-id 'till' are ")
    assert {"producer_byte_rate=1000.0", "consumer_byte_rate=2000.0"} == set(told.split(" are ")[1].strip().split(", "))
    with producing(kafka, client_id="till") as producer:
        assert settle(producer, send(producer, TOPIC, bytes(20_000))) == [None]
        [throttled] = kafka.waiting("Throttle")
        assert 10 < throttled.deadline - throttled.since < 11
    tools.configs("--alter", *till, "--delete-config", "producer_byte_rate")
    assert tools.configs("--describe", *till).strip().endswith("are consumer_byte_rate=2000.0")


def test_kafka_acls(jars: Kafka) -> None:
    on: dict[str, object] = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(settings=on) as kafka:
        tools = Tools(jars, kafka)
        rule = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", TOPIC)
        tools.acls("--add", *rule)
        told = tools.acls("--list", "--topic", TOPIC)
        assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in told
        tools.acls("--remove", "--force", *rule)
        assert "User:alice" not in tools.acls("--list")


def test_kafka_metadata_quorum(tools: Tools) -> None:
    told = dict(line.split(":", 1) for line in tools.quorum("describe", "--status").splitlines())
    assert told["LeaderId"].strip() == "1"
    assert told["MaxFollowerLag"].strip() == "0"
    rows = [line.split() for line in tools.quorum("describe", "--replication").splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows] == [("1", "Leader"), ("2", "Observer"), ("3", "Observer")]


def test_kafka_features(tools: Tools) -> None:
    assert "Feature: share.version" in tools.features("describe")
    assert "share.version was downgraded to 0." in tools.features("downgrade", "--feature", "share.version=0")
    [row] = [line for line in tools.features("describe").splitlines() if "share.version" in line]
    assert "FinalizedVersionLevel: 0" in row
    assert "share.version was upgraded to 1." in tools.features("upgrade", "--feature", "share.version=1")


def test_kafka_configs_of_loggers(tools: Tools) -> None:
    loggers = ("--entity-type", "broker-loggers", "--entity-name", "1")
    told = tools.configs("--alter", *loggers, "--add-config", "abeyant.broker=FATAL")
    assert told == "Completed updating config for broker-logger 1.\n"
    assert "abeyant.broker=FATAL" in tools.configs("--describe", *loggers)


def test_java_pushes_its_metrics_and_the_tool_subscribes(kafka: Cluster, tools: Tools, jars: Kafka) -> None:
    kafka.create_topic(TOPIC)
    tools.client_metrics("--alter", "--name", "all", "--metrics", "*", "--interval", "100")
    assert tools.client_metrics("--list").split() == ["all"]
    assert "interval.ms=100" in tools.client_metrics("--describe", "--name", "all")
    settings = ("--topic", TOPIC, "--producer-property", "client.id=java", "--bootstrap-server", kafka.bootstrap)
    line = jars.command("org.apache.kafka.tools.ConsoleProducer", *settings, options=SMALL)
    with subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as java:
        assert java.stdin is not None
        java.stdin.write(b"tea\n")
        java.stdin.flush()
        wait_until(lambda: any(row.client_id == "java" for row in kafka.pushed_metrics()), "a push", 60)
        java.stdin.close()
    rows = [row for row in kafka.pushed_metrics() if row.client_id == "java"]
    assert any("org.apache.kafka.producer.connection.creation.total" in row.metrics for row in rows), rows
    assert {row.software[0] for row in rows} == {"apache-kafka-java"}


def test_kafka_reassign_partitions_with_a_throttle(kafka: Cluster, tools: Tools, tmp_path: Path) -> None:
    kafka.create_topic(TOPIC, replicas=1)
    leader = kafka.leader(TOPIC)
    plan = tmp_path / "plan.json"
    row = {"topic": TOPIC, "partition": 0, "replicas": [1, 2, 3]}
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    file = ("--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignment" in tools.reassign(*file, "--execute", "--throttle", "100000")
    assert kafka.controller.topics[TOPIC].settings.own["leader.replication.throttled.replicas"] == f"0:{leader}"
    wait_until(lambda: kafka.in_sync(TOPIC) == (1, 2, 3))
    assert "Clearing broker-level throttles" in tools.reassign(*file, "--verify")
    assert "leader.replication.throttled.replicas" not in kafka.controller.topics[TOPIC].settings.own
