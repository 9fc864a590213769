"""Java's consumers in groups, of their own and with other clients, by both protocols; and Kafka's group tools."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.replica.ports import Observer
from broker.groups.members import ALL, TOPIC, Aiokafka, Confluent, KafkaPython, fill, share
from broker.wire import WireClient
from clients.java import Programs
from clients.java_member import JavaMember
from waiting import wait_until

PROTOCOLS = ("classic", "consumer")
QUICK = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 1_500,
    "group.consumer.min.heartbeat.interval.ms": 20,
    "group.consumer.heartbeat.interval.ms": 20,
}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


@pytest.fixture
def kafka(settings: dict[str, Any]) -> Iterator[Cluster]:
    with Cluster(3, settings=QUICK | settings) as cluster:
        cluster.create_topic(TOPIC, partitions=len(ALL))
        yield cluster


def test_four_kinds_of_clients_in_one_group(kafka: Cluster, programs: Programs) -> None:
    written = fill(kafka, 5)
    java = JavaMember(programs, kafka.bootstrap, TOPIC)
    others = [
        Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="range"),
        KafkaPython(kafka.bootstrap, TOPIC),
        Aiokafka(kafka.bootstrap, TOPIC),
    ]
    with java:
        wait_until(lambda: share(java))
        with others[0], others[1], others[2]:
            wait_until(lambda: share(java, *others))
            written = fill(kafka, 5)
            wait_until(lambda: {record for one in (java, *others) for record in one.read} == written)
        wait_until(lambda: share(java))


def test_java_and_confluent_in_one_group_of_the_new_protocol(kafka: Cluster, programs: Programs) -> None:
    java = JavaMember(programs, kafka.bootstrap, TOPIC, group_protocol="consumer")
    other = Confluent(kafka.bootstrap, TOPIC, session=None, group_protocol="consumer")
    written = fill(kafka, 5)
    with java:
        wait_until(lambda: share(java))
        with other:
            wait_until(lambda: share(java, other))
            written = fill(kafka, 5)
            wait_until(lambda: {*java.read, *other.read} == written)
        wait_until(lambda: share(java))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_java_members_come_and_leave(kafka: Cluster, programs: Programs, protocol: str) -> None:
    members = [JavaMember(programs, kafka.bootstrap, TOPIC, group_protocol=protocol) for _ in range(3)]
    with members[0]:
        wait_until(lambda: share(members[0]))
        with members[1], members[2]:
            wait_until(lambda: share(*members))
            written = fill(kafka, 5)
            wait_until(lambda: {record for one in members for record in one.read} == written)
        wait_until(lambda: share(members[0]))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_k5_a_java_member_that_is_killed_stays_until_its_session_ends(
    kafka: Cluster, programs: Programs, protocol: str
) -> None:
    common: dict[str, Any] = {"group_protocol": protocol, "session": 1_500, "heartbeat": 20}
    stays = JavaMember(programs, kafka.bootstrap, TOPIC, client_id="stays", **common)
    killed = JavaMember(programs, kafka.bootstrap, TOPIC, client_id="killed", **common)
    with stays, killed:
        wait_until(lambda: share(stays, killed))
        killed.kill()
        time.sleep(0.1)  # a heartbeat may be on its way
        [session] = kafka.waiting("Heartbeat", client_id="killed")
        while kafka.waiting("Heartbeat", client_id="killed"):
            assert stays.partitions != ALL
            time.sleep(0.002)
        gone = kafka.clock.now()
        assert gone >= session.deadline, "not before the end of its session"
        wait_until(lambda: stays.partitions == ALL)
        late = [round(1000 * (at - session.deadline)) for at in (gone, kafka.clock.now())]
        print(f"\nafter its session: out at {late[0]} ms, the other has its partitions at {late[1]} ms")


def of_group(kafka: Cluster, group: str, **values: str) -> None:
    """Set what a group is to have, with underscores for dots."""
    steps = [{"name": name.replace("_", "."), "config_operation": 0, "value": text} for name, text in values.items()]
    resource = {"resource_type": 32, "resource_name": group, "configs": steps}
    with WireClient(kafka.bootstrap) as client:
        (answer,) = client.ask(44, 1, resources=[resource], validate_only=False).responses
    assert answer.error_code is ErrorCode.none, answer


class Heard(Observer):
    """An observer of a cluster's answers: what a member is told once another one is out of their group."""

    def __init__(self, client_id: str, other: str) -> None:
        self._client_id = client_id
        self._other = other
        self.answers: list[tuple[float, int | None]] = []
        """When, on the cluster's clock, and how many partitions it has then, where that is news."""

    def log_response(self, call: Any, response: Any) -> None:
        """Called by the broker, on its loop."""
        if call.client_id != self._client_id or call.api.name != "ConsumerGroupHeartbeat":
            return
        members = call.broker.group_coordinator.shard(call.request.group_id).members(call.request.group_id)
        if self._other not in {client_id for _, client_id in members.values()}:
            given = response.assignment
            parts = None if given is None else sum(len(row.partitions) for row in given.topic_partitions)
            self.answers.append((call.broker.now(), parts))

    def _nothing(self, *_: Any, **__: Any) -> None:
        """What else a cluster tells its observer."""

    log_replica_fetch = log_isr_change = close = _nothing


@pytest.mark.parametrize("place", ["brokers", "group"])
def test_k5_the_rest_take_over_with_their_next_heartbeat(place: str) -> None:
    """By the new protocol, with confluent-kafka. The interval is the brokers', or the group's own."""
    slow = {"group.consumer.session.timeout.ms": 45_000, "group.consumer.heartbeat.interval.ms": 5_000}
    with Cluster(3, settings=QUICK | (slow if place == "group" else {})) as kafka:
        kafka.create_topic(TOPIC, partitions=len(ALL))
        if place == "group":
            of_group(kafka, "group", consumer_heartbeat_interval_ms="20", consumer_session_timeout_ms="1500")
        config = {"group.protocol": "consumer", "client.id": "stays"}
        stays = Confluent(kafka.bootstrap, TOPIC, session=None, **config)
        with stays:
            wait_until(lambda: share(stays))
            config |= {"bootstrap.servers": kafka.bootstrap, "group.id": "group", "client.id": "killed"}
            killed = subprocess.Popen([sys.executable, "-c", READER, json.dumps(config), TOPIC])
            try:
                wait_until(lambda: len(stays.partitions) == 3)
            finally:
                killed.kill()
                killed.wait()
            time.sleep(0.1)  # a heartbeat may be on its way
            [session] = kafka.waiting("Heartbeat", client_id="killed")
            heard = Heard("stays", "killed")
            kafka._observer = heard  # type: ignore[assignment]
            wait_until(lambda: share(stays))
            seen = kafka.clock.now()
        first, parts = heard.answers[0]
        assert parts == len(ALL), "it is told with its first heartbeat after that"
        assert first >= session.deadline, "not before the end of the other's session"
        late = [round(1000 * (at - session.deadline)) for at in (first, seen)]
        print(f"\nafter its session: the other is given all at {late[0]} ms, has all at {late[1]} ms")


READER = """
import json, sys
from confluent_kafka import Consumer
consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe([sys.argv[2]])
while True:
    consumer.poll(0.1)
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_session_of_45_s_ends_with_the_clock(programs: Programs, protocol: str) -> None:
    with Cluster(clock="held", settings=QUICK | {"group.consumer.session.timeout.ms": 45_000}) as kafka:
        kafka.create_topic(TOPIC, partitions=len(ALL))
        common: dict[str, Any] = {"group_protocol": protocol, "session": 45_000}
        stays, killed = (
            JavaMember(programs, kafka.bootstrap, TOPIC, client_id=name, **common) for name in ("stays", "killed")
        )
        with stays, killed:
            wait_until(lambda: share(stays, killed))
            killed.kill()
            time.sleep(0.1)  # a heartbeat may be on its way
            kafka.clock.advance(44.9)
            wait_until(lambda: kafka.waiting("Heartbeat", client_id="stays")[0].deadline > kafka.clock.now() + 44)
            assert kafka.waiting("Heartbeat", client_id="killed")
            kafka.clock.advance(0.2)
            assert not kafka.waiting("Heartbeat", client_id="killed")
            wait_until(lambda: stays.partitions == ALL)
            stays.kill()  # to part politely, it would wait for a fetch, which waits for the clock


@pytest.mark.parametrize("settings", [{"group.consumer.session.timeout.ms": 30_000}])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_java_member_that_comes_back_causes_no_rebalance(
    kafka: Cluster, programs: Programs, protocol: str
) -> None:
    """By the classic protocol one that was killed too; the new one waits for its session to end: see below."""
    one = JavaMember(programs, kafka.bootstrap, TOPIC, group_protocol=protocol)
    static = [
        JavaMember(programs, kafka.bootstrap, TOPIC, group_protocol=protocol, group_instance_id="pod-1")
        for _ in range(2)
    ]
    with one:
        wait_until(lambda: share(one))
        with static[0]:
            wait_until(lambda: share(one, static[0]))
            had, told = static[0].partitions, len(one.told)
            if protocol == "classic":
                static[0].kill()
        with static[1]:
            wait_until(lambda: static[1].partitions == had)
            assert len(one.told) == told
            assert share(one, static[1])


def test_a_static_java_member_of_the_new_protocol_that_was_killed_is_refused(programs: Programs) -> None:
    """As by Kafka (KIP-848): until its session ends, its instance id is not released."""
    common: dict[str, Any] = {"group_protocol": "consumer", "group_instance_id": "pod-1"}
    with Cluster(clock="held") as kafka:
        kafka.create_topic(TOPIC, partitions=len(ALL))
        killed, early, back = (JavaMember(programs, kafka.bootstrap, TOPIC, **common) for _ in range(3))
        with killed:
            wait_until(lambda: share(killed))
            killed.kill()
        with pytest.raises(AssertionError, match="UnreleasedInstanceIdException"), early:
            wait_until(lambda: early.error is not None)
        kafka.clock.advance(45.0)
        with back:
            wait_until(lambda: share(back))
            back.kill()


def test_cooperative_members_of_two_clients(kafka: Cluster, programs: Programs) -> None:
    """They give away only what the other gets."""
    java = JavaMember(
        programs, kafka.bootstrap, TOPIC,
        partition_assignment_strategy="org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    )  # fmt: skip
    other = Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="cooperative-sticky")
    with java:
        wait_until(lambda: share(java))
        with other:
            wait_until(lambda: share(java, other))
            taken = other.partitions
            assert [one.partitions for one in java.told if one.what == "revoked"] == [taken]
        wait_until(lambda: share(java))
    given = [one.partitions for one in java.told if one.what == "assigned" and one.partitions]
    assert given == [ALL, taken]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_comes_next_goes_on_where_the_killed_one_had_committed(
    kafka: Cluster, programs: Programs, protocol: str
) -> None:
    common: dict[str, Any] = {"group_protocol": protocol, "session": 1_500, "max_poll_records": 1}
    written = fill(kafka, 200)
    first, second = (JavaMember(programs, kafka.bootstrap, TOPIC, **common) for _ in range(2))
    with first:
        wait_until(lambda: first.committed > 20)
        first.kill()
    with second:
        wait_until(lambda: {*first.read, *second.read} == written)
        wait_until(lambda: second.committed == len(second.read))
    again = set(first.read) & set(second.read)
    assert len(again) <= len(first.read) - first.committed, "of what was committed nothing comes again"
    assert len(second.read) == len(set(second.read))


def test_a_group_changes_its_protocol_member_by_member(kafka: Cluster, programs: Programs) -> None:
    """KIP-848: up, and back, with Java's clients and confluent-kafka's; nothing is left out."""
    classic = JavaMember(programs, kafka.bootstrap, TOPIC)
    other = Confluent(kafka.bootstrap, TOPIC, partition_assignment_strategy="range", enable_auto_commit=True)
    new = JavaMember(programs, kafka.bootstrap, TOPIC, group_protocol="consumer")
    back = JavaMember(programs, kafka.bootstrap, TOPIC)
    with ExitStack() as later:
        with new:
            with classic, other:
                wait_until(lambda: share(classic, other, new))
                fill(kafka, 5)
                wait_until(lambda: len({*classic.read, *other.read, *new.read}) == 5 * len(ALL))
            wait_until(lambda: share(new))  # the group speaks the new protocol only
            later.enter_context(back)
            wait_until(lambda: share(new, back))
        wait_until(lambda: share(back))
        written = fill(kafka, 5)
        wait_until(lambda: {record for one in (classic, other, new, back) for record in one.read} == written)
