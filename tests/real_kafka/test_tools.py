"""Kafka's own tools print the same of genuine Kafka as of ours, line by line, but for ids, times and places.

What is meant to differ is named where it does, by a pattern of the lines: docs/broker-admin.md says why.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from abeyant.broker import Cluster as Ours
from abeyant.broker.genuine import Cluster, ClusterError, fetch, free_ports
from broker.conformance.genuine import sasl
from broker.conformance.messages import Plain
from broker.conformance.settings import ADMIN, GUARDED, PASSWORDS
from real_kafka.contents import begin_transaction, create, join, leave
from real_kafka.tools import Side, Tools, tools

ROLES = ("group.consumer", "group.share", "group.streams")
AN_HOUR = "3600000"
# Members of groups are silent, and everything is assigned at once.
SETTINGS = (
    GUARDED
    | {f"{role}.max.session.timeout.ms": AN_HOUR for role in ROLES}
    | {f"{role}.session.timeout.ms": AN_HOUR for role in ROLES}
    | {f"{role}.assignment.interval.ms": "0" for role in ROLES}
    | {"group.streams.initial.rebalance.delay.ms": "0", "share.coordinator.state.topic.num.partitions": "1"}
)
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
READS = ("--describe", "--list", "describe", "list", "--verify")


class Both:
    """The same tools on both sides."""

    def __init__(self, jvm: Tools, sides: tuple[Side, Side], folder: Path) -> None:
        self._jvm, self.sides, self._folder = jvm, sides, folder
        self.differences: list[str] = []

    def same(self, tool: str, *arguments: str, but: str = "") -> None:
        """Run a tool on both sides; lines that match `but` may differ. A broker knows of a change a moment later."""
        for _ in range(20 if any(one in READS for one in arguments) else 1):
            genuine, ours = (self._lines(side, tool, arguments, but) for side in self.sides)
            if genuine == ours:
                return
            time.sleep(0.2)
        found = list(difflib.unified_diff(genuine, ours, "genuine", "ours", n=0, lineterm=""))
        self.differences.append("\n".join([" ".join([tool, *arguments]), *found]))

    def _lines(self, side: Side, tool: str, arguments: tuple[str, ...], but: str) -> list[str]:
        lines = side.mask(self._jvm.run(side, tool, *arguments).text)
        stack = re.compile(r"at \S+\(.*\)$|\.\.\. \d+ more$")
        return sorted(one for one in lines if one and not stack.match(one) and not (but and re.search(but, one)))

    def each(self, action: Callable[[Side], object]) -> None:
        """Do something on both sides."""
        for side in self.sides:
            action(side)

    def file(self, **value: Plain) -> str:
        """A file of JSON."""
        path = self._folder / f"{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"version": 1, **value}))
        return str(path)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("tools")
    config = folder / "admin.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={LOGIN} username="{ADMIN}" password="{PASSWORDS[ADMIN]}";\n'
    )
    try:
        kafka = fetch()
    except ClusterError as error:
        pytest.skip(f"no genuine Kafka here: {' '.join(str(error).split())}")
    genuine = Cluster(
        kafka, folder / "genuine", free_ports(), settings=SETTINGS | sasl(), heap_mb=400, brief=True,
    )  # fmt: skip
    with (
        Ours(brokers=3, security="SASL_PLAINTEXT", users=PASSWORDS, settings=SETTINGS) as ours,
        genuine.running(),
        tools(kafka) as jvm,
    ):
        sides = (Side(genuine.bootstrap, config), Side(ours.bootstrap, config))
        both = Both(jvm, sides, folder)
        both.each(create)
        yield both
        both.each(Side.close)


@pytest.fixture
def both(clusters: Both) -> Both:
    clusters.differences = []
    return clusters


def test_kafka_topics(both: Both) -> None:
    for arguments in (
        "--list", "--describe", "--describe --topic nothing", "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ",
        "--create --topic made --partitions 2 --replication-factor 2 --config cleanup.policy=compact",
        "--create --topic made", "--create --topic made --if-not-exists", "--create --topic bad --config nonsense=1",
        "--create --topic bad --replication-factor 9", "--create --topic bad --config retention.ms=x",
        "--create --topic as.igned --replica-assignment 1:2,2:3", "--alter --topic made --partitions 3",
        "--alter --topic made --partitions 1", "--alter --topic nothing --partitions 2",
        "--describe --topic as.igned", "--describe --topics-with-overrides", "--describe --at-min-isr-partitions",
        "--delete --topic as.igned", "--delete --topic nothing", "--delete --topic made", "--list",
    ):  # fmt: skip
        both.same("kafka-topics", *arguments.split())
    assert "\n".join(both.differences) == ""


def test_the_tools_of_groups(both: Both) -> None:
    consumers, shares, streams = "kafka-consumer-groups", "kafka-share-groups", "kafka-streams-groups"
    both.each(join)
    for arguments in ("--list", "--list --group-type share", "--list --protocol consumer", "--list --consumer"):
        both.same("kafka-groups", *arguments.split())
    for arguments in (
        "--list --state", "--list --type", "--list --state Empty", "--describe --all-groups",
        "--describe --all-groups --state --verbose", "--describe --all-groups --members --verbose",
        "--describe --all-groups --offsets --verbose", "--describe --group nothing", "--describe --group share",
    ):  # fmt: skip
        both.same(consumers, *arguments.split())
    for group in ("classic", "consumer", "old", "share", "streams", "nothing"):
        both.same(consumers, "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--dry-run")
        both.same(consumers, "--delete-offsets", "--group", group, "--topic", "orders:1")
    for tool, group in ((consumers, "classic"), (consumers, "consumer"), (shares, "share"), (streams, "streams")):
        both.same(tool, "--delete", "--group", group)
        both.same(tool, "--delete", "--group", "nothing")
    for tool, group in ((shares, "share"), (streams, "streams")):
        both.same(tool, "--list", "--state")
        for what in ("--offsets", "--members", "--state"):
            both.same(tool, "--describe", "--group", group, what)
            both.same(tool, "--describe", "--group", group, what, "--verbose")
        both.same(tool, "--describe", "--group", "nothing")
        both.same(tool, "--describe", "--group", "consumer")
    both.same(shares, "--reset-offsets", "--group", "share", "--topic", "orders", "--to-earliest", "--execute")
    both.same(streams, "--reset-offsets", "--group", "streams", "--input-topic", "orders", "--to-earliest", "--execute")
    both.each(leave)
    both.same("kafka-groups", "--list")
    both.same(consumers, "--describe", "--all-groups", "--state")
    both.same(consumers, "--describe", "--all-groups")
    for arguments in (
        "--reset-offsets --group consumer --topic orders --to-latest --execute",
        "--reset-offsets --group fresh --topic orders --to-latest --execute",
        "--reset-offsets --group old --topic orders --to-current --dry-run --export",
        "--reset-offsets --group old --topic nothing --to-latest --dry-run",
        "--delete-offsets --group consumer --topic orders", "--delete-offsets --group old --topic nothing",
        "--delete --group classic", "--delete --group consumer",
    ):  # fmt: skip
        both.same(consumers, *arguments.split())
    for arguments in (
        "--describe --group share", "--describe --group share --members", "--describe --group share --state",
        "--reset-offsets --group share --topic orders --to-latest --execute",
        "--reset-offsets --group share --all-topics --to-datetime 2020-01-01T00:00:00.000 --execute",
        "--reset-offsets --group other --topic bills --to-earliest --execute",
        "--reset-offsets --group share --topic nothing --to-earliest --execute",
        "--delete-offsets --group share --topic orders", "--delete-offsets --group share --topic nothing",
        "--delete --group share", "--list",
    ):  # fmt: skip
        both.same(shares, *arguments.split())
    for arguments in (
        "--describe --group streams", "--describe --group streams --state",
        "--reset-offsets --group streams --input-topic orders --to-latest --execute",
        "--delete-offsets --group streams --input-topic orders:0", "--delete --group streams", "--list",
    ):  # fmt: skip
        both.same(streams, *arguments.split())
    assert "\n".join(both.differences) == ""


def test_kafka_configs(both: Both) -> None:
    one = "--entity-type brokers --entity-name 1"
    all_brokers = "--entity-type brokers --entity-default"
    for arguments in (
        "--describe --topic orders", "--describe --topic bills --all", "--describe --entity-type topics",
        f"--describe {one}", f"--alter {one} --add-config log.retention.ms=70000", f"--describe {one}",
        f"--alter {one} --add-config log.retention.ms=x", f"--alter {one} --delete-config log.retention.ms",
        f"--alter {all_brokers} --add-config log.retention.ms=80000000", f"--describe {all_brokers}",
        f"--alter {all_brokers} --delete-config log.retention.ms", f"--describe {all_brokers}",
        "--alter --topic orders --add-config retention.ms=1000000,segment.bytes=x",
        "--alter --topic orders --add-config cleanup.policy=[compact,delete]",
        "--alter --topic orders --delete-config cleanup.policy", "--alter --topic nothing --add-config retention.ms=1",
        "--describe --topic nothing", "--alter --topic orders --add-config nonsense=1", "--describe --group shop",
        "--alter --group shop --add-config share.auto.offset.reset=earliest,streams.num.standby.replicas=1",
        "--describe --group shop", "--describe --entity-type groups",
        "--alter --group shop --delete-config share.auto.offset.reset", "--alter --group shop --add-config nonsense=1",
        "--alter --user carol --add-config SCRAM-SHA-256=[iterations=8192,password=secret]", "--describe --user carol",
        "--alter --user carol --add-config SCRAM-SHA-512=[iterations=1,password=secret]",
        "--alter --user carol --delete-config SCRAM-SHA-256", "--alter --user carol --delete-config SCRAM-SHA-256",
        "--alter --broker-logger 1 --add-config no.such=DEBUG",
        "--alter --client-metrics m --add-config interval.ms=5000,metrics=[org.apache],match=[client_id=a]",
        "--describe --client-metrics m", "--alter --client-metrics m --add-config interval.ms=5",
    ):  # fmt: skip
        both.same("kafka-configs", *arguments.split())
    for entity in ("--user carol", "--client till", "--user carol --client till", "--user-defaults", "--ip-defaults"):
        wanted = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        both.same("kafka-configs", "--alter", *entity.split(), "--add-config", f"{wanted}=1000")
        both.same("kafka-configs", "--describe", *entity.split())
        both.same("kafka-configs", "--alter", *entity.split(), "--delete-config", wanted)
    for arguments in ("producer_byte_rate=x", "nonsense=1"):
        both.same("kafka-configs", "--alter", "--user", "carol", "--add-config", arguments)
    # Each user has SCRAM credentials here, not only those that were given some.
    both.same("kafka-configs", "--describe", "--entity-type", "users", but="^SCRAM credential")
    # Defaults that differ, one kind of listener, and no controller in a process of its own
    differs = (
        r"^(advertised\.listeners|listeners|listener\.|inter\.broker|controller\.|process\.roles|log\.dirs|sasl\.|"
        r".*assignment\.interval|.*initial\.rebalance\.delay|auto\.leader|log\.cleaner\.enable|super\.users|num\.|.*\.factor|.*isr)"
    )
    both.same("kafka-configs", "--describe", *one.split(), "--all", but=differs)
    assert "\n".join(both.differences) == ""


def test_kafka_client_metrics(both: Both) -> None:
    for arguments in (
        "--alter --name n --metrics * --interval 100", "--list", "--describe --name n",
        "--alter --name n --match nope=1", "--delete --name n", "--delete --name nothing", "--describe --name nothing",
    ):  # fmt: skip
        both.same("kafka-client-metrics", *arguments.split())
    assert "\n".join(both.differences) == ""


def test_kafka_acls_and_delegation_tokens(both: Both) -> None:
    for arguments in (
        "--list", "--add --allow-principal User:alice --operation Read --topic orders",
        "--add --deny-principal User:bob --deny-host 10.0.0.1 --operation All --group g"
        " --resource-pattern-type prefixed",
        "--add --allow-principal User:alice --producer --topic bills --transactional-id till --idempotent",
        "--add --allow-principal User:alice --operation CreateTokens --user-principal User:bob", "--list",
        "--list --topic orders --resource-pattern-type match", "--list --principal User:alice",
        "--add --allow-principal nonsense --operation Read --topic orders",
        "--add --allow-principal User:x --operation Create --group g",
        "--remove --force --allow-principal User:alice --operation Read --topic orders",
        "--remove --force --topic bills", "--remove --force --topic nothing", "--list",
    ):  # fmt: skip
        both.same("kafka-acls", *arguments.split())
    for arguments in (
        "--create --max-life-time-period -1 --renewer-principal User:alice", "--describe --owner-principal User:alice",
        "--describe", "--create --max-life-time-period -1 --owner-principal User:bob",
        "--renew --renew-time-period -1 --hmac bm90aGluZw==", "--expire --expiry-time-period -1 --hmac bm90aGluZw==",
    ):  # fmt: skip
        both.same("kafka-delegation-tokens", *arguments.split())
    assert "\n".join(both.differences) == ""


def test_the_tools_of_the_cluster(both: Both) -> None:
    for arguments in (
        "describe", "downgrade --feature share.version=0", "upgrade --feature share.version=1",
        "upgrade --feature share.version=9", "upgrade --feature nonsense=1", "downgrade --metadata 3.9",
        "upgrade --release-version 4.3", "downgrade --feature group.version=0 --dry-run",
    ):  # fmt: skip
        both.same("kafka-features", *arguments.split())
    # One controller leads, and keeps its metadata to itself.
    both.same("kafka-metadata-quorum", "describe", "--status", but="^(Leader|HighW|MaxFollower|Current)")
    both.same("kafka-metadata-quorum", "describe", "--replication", but="^[123] ")
    both.same("kafka-log-dirs", "--describe", "--topic-list", "orders")
    both.same("kafka-log-dirs", "--describe", "--broker-list", "9")
    for arguments in (
        "", "--time earliest", "--time max-timestamp", "--time 0", "--time latest-tiered", "--time earliest-local",
    ):  # fmt: skip
        both.same("kafka-get-offsets", "--topic", "orders", *arguments.split())
    both.same("kafka-get-offsets", "--topic-partitions", "orders:0-1")
    both.same("kafka-get-offsets", "--topic", "nothing")
    for arguments in (
        "PREFERRED --topic orders --partition 0", "PREFERRED --all-topic-partitions",
        "UNCLEAN --topic orders --partition 0", "PREFERRED --topic nothing --partition 0",
    ):  # fmt: skip
        both.same("kafka-leader-election", "--election-type", *arguments.split())
    assert "\n".join(both.differences) == ""


def test_kafka_reassign_partitions_and_delete_records(both: Both) -> None:
    tool, file = "kafka-reassign-partitions", "--reassignment-json-file"
    move = both.file(topics=[{"topic": "bills"}])
    # The tool chooses at random which broker comes first.
    both.same(tool, "--generate", "--topics-to-move-json-file", move, "--broker-list", "1,2", but="any")

    def plan(topic: str, *replicas: int) -> str:
        return both.file(partitions=[{"topic": topic, "partition": 0, "replicas": list(replicas)}])

    to = plan("bills", 1, 3)
    both.same(tool, file, to, "--execute", "--throttle", "1000000")
    both.same(tool, file, to, "--verify")
    both.same(tool, "--list")
    both.same(tool, file, to, "--cancel")
    for bad in (plan("bills", 1, 9), plan("nothing", 1), plan("bills", 1, 1)):
        both.same(tool, file, bad, "--execute")
    for topic, offset in (("orders", 1), ("orders", 9), ("orders", -1)):
        rows = both.file(partitions=[{"topic": topic, "partition": 0, "offset": offset}])
        both.same("kafka-delete-records", "--offset-json-file", rows)
    assert "\n".join(both.differences) == ""


def test_kafka_transactions(both: Both) -> None:
    both.each(begin_transaction)
    till, part = "--transactional-id till", "--topic texts --partition 0"
    for arguments in (
        "list", f"describe {till}", f"describe-producers {part}", "list --duration-filter 100000",
        "list --transactional-id-pattern t.*", "list --transactional-id-pattern t[", "describe --transactional-id no",
        f"find-hanging {part}", f"abort {part} --start-offset 9",
        f"force-terminate {till}", "list", "force-terminate --transactional-id nothing",
    ):  # fmt: skip
        both.same("kafka-transactions", *arguments.split())
    assert "\n".join(both.differences) == ""
