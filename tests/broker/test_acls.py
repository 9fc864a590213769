"""ACLs: who is let do what, the errors that clients see, and that nothing is told of what they may not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kio.index import load_request_schema

from abeyant.broker import Cluster
from abeyant.broker.acls import (
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    WRITE,
    Acl,
    Acls,
    Client,
)
from abeyant.broker.groups.consumer.records import read_resolved
from abeyant.broker.log.journal import Journal
from abeyant.broker.metadata_store import MetadataStore
from abeyant.broker.settings import AUTHORIZER, Settings
from abeyant.broker.wire.apis import APIS
from abeyant.broker.wire.json_form import json_form
from abeyant.errors import AbeyantError
from broker.asking import asked
from broker.groups.streams import StreamsMember
from broker.groups.test_consumer_groups import Consumer as GroupMember
from broker.groups.wire import GroupClient
from broker.shares.member import join
from broker.test_versions import errors
from broker.wire import WireClient, sample
from waiting import wait_until

USERS = {"root": "r", "alice": "a", "bob": "b"}
ON: dict[str, object] = {"authorizer.class.name": AUTHORIZER, "super.users": "User:root"}
LITERAL, PREFIXED, DENY, ALLOW = 3, 4, 2, 3


def config(kafka: Cluster, user: str, **more: Any) -> dict[str, Any]:
    base = {
        "bootstrap.servers": kafka.bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.username": user, "sasl.password": USERS[user], "log_level": 0, "linger.ms": 0,
    }  # fmt: skip
    return base | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=ON) as cluster:
        cluster.create_topic("orders")
        yield cluster


def grant(
    kafka: Cluster, user: str, operation: str, kind: str, name: str, pattern: str = "LITERAL", permission: str = "ALLOW"
) -> None:
    admin = AdminClient(config(kafka, "root"))
    binding = AclBinding(
        ResourceType[kind], name, ResourcePatternType[pattern], f"User:{user}", "*", AclOperation[operation],
        AclPermissionType[permission],
    )  # fmt: skip
    admin.create_acls([binding])[binding].result(20)


def produced(kafka: Cluster, user: str, topic: str = "orders", **more: Any) -> str | None:
    errors: list[str | None] = []
    producer = Producer(config(kafka, user, **more))
    producer.produce(topic, b"tea", on_delivery=lambda error, _: errors.append(None if error is None else error.name()))
    assert producer.flush(20) == 0
    return errors[0]


def read(kafka: Cluster, user: str, group: str = "shop") -> str:
    """What a consumer of a group gets: a record, or an error's name."""
    consumer = Consumer(config(kafka, user, group_id=group, auto_offset_reset="earliest"))
    try:
        consumer.subscribe(["orders"])
        while True:
            message = consumer.poll(20)
            assert message is not None
            error = message.error()
            if error is None:
                return (message.value() or b"").decode()
            if error.name() not in ("UNKNOWN_TOPIC_OR_PART", "_PARTITION_EOF"):
                return error.name()
    finally:
        consumer.close()


def test_who_has_no_right_is_refused_and_who_gets_it_is_let_in(kafka: Cluster) -> None:
    assert produced(kafka, "alice") == "TOPIC_AUTHORIZATION_FAILED"
    grant(kafka, "alice", "WRITE", "TOPIC", "orders")
    assert produced(kafka, "alice") is None
    assert [record.value for record in kafka.records("orders")] == [b"tea"]
    assert read(kafka, "bob") == "GROUP_AUTHORIZATION_FAILED"
    grant(kafka, "bob", "READ", "GROUP", "*")
    assert read(kafka, "bob") == "TOPIC_AUTHORIZATION_FAILED"
    grant(kafka, "bob", "READ", "TOPIC", "ord", pattern="PREFIXED")
    assert read(kafka, "bob") == "tea"
    grant(kafka, "bob", "READ", "TOPIC", "orders", permission="DENY")
    assert read(kafka, "bob", "another") == "TOPIC_AUTHORIZATION_FAILED"
    assert produced(kafka, "root") is None, "who is a super user needs no right"


def test_a_transactional_id_needs_a_right_of_its_own(kafka: Cluster) -> None:
    grant(kafka, "alice", "WRITE", "TOPIC", "orders")
    producer = Producer(config(kafka, "alice", transactional_id="till"))
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        producer.init_transactions(20)
    grant(kafka, "alice", "WRITE", "TRANSACTIONAL_ID", "till")
    producer = Producer(config(kafka, "alice", transactional_id="till"))
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"tea")
    producer.commit_transaction(20)


def test_topics_that_may_not_be_described_are_not_listed(kafka: Cluster) -> None:
    kafka.create_topic("secret")
    grant(kafka, "alice", "DESCRIBE", "TOPIC", "orders")
    assert list(AdminClient(config(kafka, "alice")).list_topics(timeout=20).topics) == ["orders"]
    assert list(AdminClient(config(kafka, "bob")).list_topics(timeout=20).topics) == []
    assert set(AdminClient(config(kafka, "root")).list_topics(timeout=20).topics) >= {"orders", "secret"}


def test_no_cursor_names_a_topic_that_may_not_be_described(kafka: Cluster) -> None:
    kafka.create_topic("secret")
    kafka.create_topic("tea")
    for topic in ("orders", "tea"):
        grant(kafka, "alice", "DESCRIBE", "TOPIC", topic)
    with WireClient(kafka.bootstrap) as alice:
        log_in(alice, "alice")
        for named, listed, following in (([], "orders", "tea"), ([{"name": "secret"}], "secret", None)):
            said = alice.ask(75, 0, topics=named, response_partition_limit=1, cursor=None)
            assert [one.name for one in said.topics] == [listed]
            assert (said.next_cursor.topic_name if said.next_cursor else None) == following


def test_topics_that_may_be_created_are_while_others_are_refused(kafka: Cluster) -> None:
    grant(kafka, "alice", "CREATE", "TOPIC", "alices-", pattern="PREFIXED")
    admin = AdminClient(config(kafka, "alice"))
    made = admin.create_topics([NewTopic("alices-tea", 1, 1), NewTopic("bobs-tea", 1, 1)])
    made["alices-tea"].result(20)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        made["bobs-tea"].result(20)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.delete_topics(["orders"])["orders"].result(20)
    assert "bobs-tea" not in kafka.topics()
    assert "orders" in kafka.topics()


def test_offsets_of_topics_that_may_not_be_described_are_hidden(kafka: Cluster) -> None:
    kafka.commit("shop", {("orders", 0): 0})
    grant(kafka, "alice", "READ", "GROUP", "shop")
    consumer = Consumer(config(kafka, "alice", group_id="shop"))
    [found] = consumer.committed([TopicPartition("orders", 0)], 20)
    consumer.close()
    assert found.error is not None
    assert (found.error.name(), found.offset < 0) == ("TOPIC_AUTHORIZATION_FAILED", True)


def log_in(client: WireClient, user: str) -> None:
    client.ask(17, 1, mechanism="PLAIN")
    client.ask(36, 2, auth_bytes=f"\0{user}\0{USERS[user]}".encode())


def test_share_offsets_are_deleted_of_topics_that_may_be_read(kafka: Cluster) -> None:
    kafka.commit("another", {("orders", 0): 0})  # so that there is a coordinator
    grant(kafka, "alice", "DELETE", "GROUP", "shop")
    with WireClient(kafka.bootstrap) as root, WireClient(kafka.bootstrap) as alice:
        log_in(root, "root")
        log_in(alice, "alice")
        member = {"group_id": "shop", "member_id": "one", "subscribed_topic_names": ["orders"]}
        for epoch in (0, -1):
            assert root.ask(76, 1, **member, member_epoch=epoch).error_code.name == "none"
        for error in ("topic_authorization_failed", "none"):
            wait_until(partial(deletes, alice, error))
            grant(kafka, "alice", "READ", "TOPIC", "orders")


def deletes(client: WireClient, error: str) -> bool:
    """Whether DeleteShareGroupOffsets says this of the topic."""
    said = client.ask(92, 0, group_id="shop", topics=[{"topic_name": "orders"}])
    return [(row.topic_name, row.error_code.name) for row in said.responses] == [("orders", error)]


def test_administrators_need_rights_to_the_cluster(kafka: Cluster) -> None:
    nothing: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY, nothing, ResourcePatternType.ANY, nothing, nothing, AclOperation.ANY, AclPermissionType.ANY
    )
    alice = AdminClient(config(kafka, "alice"))  # which has to outlive its requests
    mine = AclBinding(
        ResourceType.TOPIC, "mine", ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.ALL,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        alice.create_acls([mine])[mine].result(20)
    grant(kafka, "alice", "WRITE", "TOPIC", "orders")
    grant(kafka, "alice", "DESCRIBE", "BROKER", "kafka-cluster")
    found = alice.describe_acls(everything).result(20)
    assert {(one.restype, one.name, one.operation) for one in found} == {
        (ResourceType.TOPIC, "orders", AclOperation.WRITE),
        (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    }
    root = AdminClient(config(kafka, "root"))
    assert len(root.delete_acls([everything])[everything].result(20)) == 2
    assert produced(kafka, "alice") == "TOPIC_AUTHORIZATION_FAILED"


def test_everyone_may_use_what_no_acl_is_about() -> None:
    with Cluster(settings={**ON, "allow.everyone.if.no.acl.found": True}) as kafka:
        kafka.create_topic("orders")
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        producer.produce("orders", b"tea")
        assert producer.flush(20) == 0
        assert len(kafka.records("orders")) == 1


def test_a_client_of_tls_is_known_by_its_certificate(tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "clients.pem")
    given = {"ssl.client.auth": "required", "ssl.truststore.location": str(tmp_path / "clients.pem")}
    till = {"super.users": "User:CN=till\\, one,OU=Shop,O=Example"}
    with Cluster(security="SSL", settings={**ON, **given, **till}) as kafka:
        kafka.create_topic("orders")
        errors: list[str | None] = []
        for name in ("till, one", "another"):
            file = tmp_path / f"{name}.pem"
            certificate = authority.issue_cert(
                "client@example.org", common_name=name, organization_name="Example", organization_unit_name="Shop"
            )
            certificate.private_key_and_cert_chain_pem.write_to_path(file)
            tls = {"ssl.ca.location": str(kafka.ca_file), "ssl.certificate.location": str(file)}
            config = {"bootstrap.servers": kafka.bootstrap, "security.protocol": "SSL", "ssl.key.location": str(file)}
            producer = Producer({**config, **tls, "log_level": 0})
            producer.produce(
                "orders", b"tea", on_delivery=lambda error, _: errors.append(None if error is None else error.name())
            )
            assert producer.flush(20) == 0
        assert errors == [None, "TOPIC_AUTHORIZATION_FAILED"]


OPEN = {"ApiVersions", "DescribeCluster", "SaslHandshake", "SaslAuthenticate", "ListGroups", "ListTransactions"}
OPEN |= {f"{action}DelegationToken" for action in ("Create", "Renew", "Expire", "Describe")}  # of owners
OPEN |= {"GetTelemetrySubscriptions", "PushTelemetry"}
REDACTED = {"AlterUserScramCredentials"}
"""The request log has not all of these."""


def test_who_has_no_right_can_do_nothing(tmp_path: Path) -> None:
    """Every API in every version. The request log has all that was requested, as Kafka's."""
    sent: list[tuple[int, int, Any]] = []
    with Cluster(settings={"authorizer.class.name": AUTHORIZER}, request_log=tmp_path) as kafka:
        kafka.create_topic("there", partitions=2)
        before = kafka.topics(), len(kafka.records("there"))
        with WireClient(kafka.bootstrap) as client:
            for api in APIS:
                for version in range(api.lowest, api.highest + 1):
                    if api.name not in OPEN:
                        values = asked(api, version, kafka)
                        response = client.ask(api.key, version, **values)
                        if api.name not in REDACTED:
                            entity = sample(load_request_schema(api.key, version), **values)
                            sent.append((api.key, version, json_form(api.codec(version).request_entity, entity)))
                        if api.name == "DescribeLogDirs" and version < 3:  # it has no place for an error
                            assert not response.results
                            continue
                        found = {error.name for error in errors(response)}
                        assert found, (api, version)
                        assert all(name.endswith("_authorization_failed") for name in found), (api, version, found)
        assert (kafka.topics(), len(kafka.records("there"))) == before
    logged = {}
    for line in (tmp_path / "broker-1" / "kafka-request.log").read_text().splitlines():
        one = json.loads(line[line.index("{") : line.rindex("}") + 1])
        header = one["requestHeader"]
        if header["clientId"] == "wire":
            logged[header["requestApiKey"], header["requestApiVersion"]] = one["request"]
    assert len(sent) > 150
    for key, version, request in sent:
        assert logged[key, version] == request, (key, version)


@pytest.mark.parametrize(
    ("api", "topic"),
    [("ConsumerGroupDescribe", "t"), ("ShareGroupDescribe", "t"), ("StreamsGroupDescribe", "words-changelog")],
)
def test_a_group_is_hidden_from_who_may_not_describe_its_topics(api: str, topic: str) -> None:
    """And its operations are those that the client has."""
    settings = {"authorizer.class.name": AUTHORIZER, "allow.everyone.if.no.acl.found": True}
    with Cluster(settings=settings) as kafka, GroupClient(kafka, "app") as client:
        kafka.create_topic("t")
        kafka.create_topic("lines")
        if api == "ConsumerGroupDescribe":
            assert GroupMember(client, "one").beat() == "none"
        elif api == "ShareGroupDescribe":
            join(kafka, "app", "t")
        else:
            with StreamsMember(kafka, "one") as member:
                member.beat()

        def described() -> Any:
            (group,) = client.ask(api, group_ids=["app"], include_authorized_operations=True).groups
            return group

        def allow(kind: int, name: str, operation: int) -> None:
            rule = {"resource_type": kind, "resource_name": name, "resource_pattern_type": LITERAL, "host": "*"}
            allowed = {"principal": "User:ANONYMOUS", "operation": operation, "permission_type": ALLOW}
            (said,) = client.ask("CreateAcls", creations=[rule | allowed]).results
            assert said.error_code.name == "none"

        found = described()
        assert (found.error_code.name, len(found.members)) == ("none", 1)
        every = READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
        assert found.authorized_operations == sum(1 << operation for operation in every)
        allow(GROUP, "app", READ)
        assert described().authorized_operations == 1 << READ | 1 << DESCRIBE
        allow(TOPIC, topic, DESCRIBE_CONFIGS)
        found = described()
        assert (found.error_code.name, list(found.members)) == ("topic_authorization_failed", [])
        assert found.error_message.endswith("that the client is not authorized to describe.")
        assert found.authorized_operations == -(1 << 31)
        assert getattr(found, "topology", None) is None


def test_another_authorizer_is_refused() -> None:
    with pytest.raises(AbeyantError, match=r"authorizer\.class\.name=an\.Authorizer is not supported"):
        Cluster(settings={"authorizer.class.name": "an.Authorizer"})


def test_a_pattern_assigns_topics_by_the_rights_of_the_member_that_resolves_it() -> None:
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=ON, clock="held") as kafka:
        for topic in ("orders", "secret"):
            kafka.create_topic(topic)
        grant(kafka, "alice", "READ", "GROUP", "group")
        grant(kafka, "alice", "DESCRIBE", "TOPIC", "orders")
        with GroupClient(kafka, user=("alice", "a")) as alice, GroupClient(kafka, user=("root", "r")) as root:
            subscribed = {"subscribed_topic_names": None, "subscribed_topic_regex": "orders|secret|ne.*"}
            one, two = GroupMember(alice, "one", **subscribed), GroupMember(root, "two", **subscribed)
            assert (one.beat(), two.beat()) == ("none", "none")
            assert settled(kafka, one, two) == {"orders"}, "it is resolved for the group, as alice may have it"
            grant(kafka, "alice", "DESCRIBE", "TOPIC", "secret")
            assert settled(kafka, one, two) == {"orders"}, "until it is resolved anew"
            kafka.clock.advance(44.0)
            kafka.create_topic("news")
            assert settled(kafka, one, two) == {"orders", "secret"}, "alice is the first after a new topic"
            assert settled(kafka, two, one) == {"orders", "secret"}
            for _ in range(16):  # the interval between refreshes is 10 minutes
                kafka.clock.advance(40.0)
                found = settled(kafka, two, one)
            assert found == {"news", "orders", "secret"}
        regexes = [
            record.value for record in kafka.records("__consumer_offsets") if (record.key or b"")[:2] == b"\0\x10"
        ]
        resolved = [sorted(read_resolved(value).topics) for value in regexes if value is not None]
        assert resolved == [["orders"], ["orders", "secret"], ["news", "orders", "secret"]]


def settled(kafka: Cluster, *members: GroupMember) -> set[str]:
    """The topics that members have in the end."""
    for _ in range(4):
        for member in members:
            assert member.beat() == "none"
    topics = kafka.controller.by_id
    return {topics[topic].name for member in members for topic, _ in member.has}


def acls(*rules: Acl, **settings: object) -> Acls:
    found = Acls(Settings({**ON, **settings}), MetadataStore(None))
    assert found.create(rules) == [None] * len(rules)
    return found


def rule(operation: int, name: str = "orders", *, pattern: int = LITERAL, permission: int = ALLOW, **more: str) -> Acl:
    who = {"principal": "User:alice", "host": "*"} | more
    return Acl(TOPIC, name, pattern, who["principal"], who["host"], operation, permission)


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([rule(READ)], True),
        ([rule(WRITE)], False),
        ([rule(2)], True),
        ([rule(READ, principal="User:*")], True),
        ([rule(READ, principal="User:bob")], False),
        ([rule(READ, host="10.0.0.1")], True),
        ([rule(READ, host="10.0.0.2")], False),
        ([rule(READ, "*")], True),
        ([rule(READ, "ord")], False),
        ([rule(READ, "ord", pattern=PREFIXED)], True),
        ([rule(READ), rule(READ, "or", pattern=PREFIXED, permission=DENY)], False),
        ([rule(READ), rule(DESCRIBE, permission=DENY)], True),
        ([], False),
    ],
)
def test_rules(rules: list[Acl], allowed: bool) -> None:
    alice = Client("User:alice", "10.0.0.1")
    assert acls(*rules).allows(alice, READ, TOPIC, "orders") is allowed
    open_to_all = acls(*rules, **{"allow.everyone.if.no.acl.found": True})
    known = any(one.covers("orders") for one in rules)
    assert open_to_all.allows(alice, READ, TOPIC, "orders") is (allowed or not known)


def test_to_write_or_read_is_to_describe() -> None:
    for operation in (READ, WRITE):
        assert acls(rule(operation)).allows(Client("User:alice", "h"), DESCRIBE, TOPIC, "orders")


def test_rules_are_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for expected in (0, 1, 0):
        journal = Journal(path)
        found = Acls(Settings(ON), MetadataStore(journal))
        known = found.matching(Acl(1, None, 1, None, None, 1, 1))
        assert len(known) == expected
        if known:
            found.delete(known)
        elif expected == 0 and not known:
            found.create([rule(READ)])
        journal.close()
