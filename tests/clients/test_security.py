"""Java's client by OAUTHBEARER, by delegation tokens, and in a rack; Kafka's tool for delegation tokens."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from abeyant.broker import Cluster
from abeyant.broker.genuine import Kafka
from abeyant.broker.settings import REPLICA_SELECTOR
from clients.java import SMALL, Programs
from clients.java_member import JavaMember
from waiting import wait_until

TOPIC = "orders"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def by_sasl(mechanism: str, login: str) -> dict[str, Any]:
    return {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, "sasl_jaas_config": f"{login};"}


def test_java_comes_with_a_token_and_comes_again(programs: Programs) -> None:
    settings = {"sasl.enabled.mechanisms": "OAUTHBEARER", "connections.max.reauth.ms": 2000}
    with Cluster(security="SASL_PLAINTEXT", settings=settings) as kafka:
        kafka.create_topic(TOPIC)
        kafka.seed(TOPIC, [b"tea"])
        login = by_sasl("OAUTHBEARER", f'{_OAUTH} unsecuredLoginStringClaim_sub="alice"')
        connections = kafka.brokers[1].connections
        with JavaMember(programs, kafka.bootstrap, TOPIC, **login) as java:
            wait_until(lambda: java.read)
            assert {one.user for one in list(connections)} == {"alice"}
            wait_until(lambda: any(one.session and one.session.renews for one in list(connections)))
            kafka.seed(TOPIC, [b"cake"])
            wait_until(lambda: len(java.read) == 2)


def tokens(jars: Kafka, kafka: Cluster, folder: Path, *arguments: str) -> str:
    """What kafka-delegation-tokens says to alice."""
    config = folder / "alice.properties"
    login = by_sasl("SCRAM-SHA-256", f'{_SCRAM} username="alice" password="secret"')
    config.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in login.items()))
    connection = ("--bootstrap-server", kafka.bootstrap, "--command-config", str(config))
    line = jars.command("org.apache.kafka.tools.DelegationTokenCommand", *connection, *arguments, options=SMALL)
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_kafka_delegation_tokens_and_java_that_comes_with_one(jars: Kafka, programs: Programs, tmp_path: Path) -> None:
    secret = {"delegation.token.secret.key": "a secret"}
    with Cluster(security="SASL_PLAINTEXT", users={"alice": "secret"}, settings=secret) as kafka:
        kafka.create_topic(TOPIC)
        kafka.seed(TOPIC, [b"tea"])
        day = ("--max-life-time-period", "86400000")
        told = tokens(jars, kafka, tmp_path, "--create", *day, "--renewer-principal", "User:bob")
        row = re.search(r"^(\S+)\s+(\S+={0,2})\s+User:alice\s+User:alice\s+(?:\[)?User:bob", told, re.MULTILINE)
        assert row is not None, told
        number, key = row.groups()
        login = by_sasl("SCRAM-SHA-512", f'{_SCRAM} username="{number}" password="{key}" tokenauth="true"')
        with JavaMember(programs, kafka.bootstrap, TOPIC, **login) as java:
            wait_until(lambda: java.read)
            assert {(one.user, one.session and one.session.by_token) for one in list(kafka.brokers[1].connections)} == {
                ("alice", True)
            }
        assert number in tokens(jars, kafka, tmp_path, "--describe", "--owner-principal", "User:alice")
        tokens(jars, kafka, tmp_path, "--renew", "--renew-time-period", "3600000", "--hmac", key)
        tokens(jars, kafka, tmp_path, "--expire", "--expiry-time-period", "-1", "--hmac", key)
        assert number not in tokens(jars, kafka, tmp_path, "--describe")


@pytest.mark.parametrize("clock", ["real", "held"])
def test_java_reads_from_its_rack(programs: Programs, clock: Literal["real", "held"]) -> None:
    selector: dict[str, object] = {"replica.selector.class": REPLICA_SELECTOR}
    with Cluster(3, clock=clock, racks=["east", "west"], settings=selector) as kafka:
        kafka.create_topic(TOPIC, replicas=3)
        kafka.seed(TOPIC, [b"tea"])
        more: dict[str, Any] = {"client_rack": "west", "client_id": "reader", "fetch_max_wait_ms": 20_000}
        with JavaMember(programs, kafka.bootstrap, TOPIC, **more) as java:
            wait_until(lambda: java.read)
            wait_until(lambda: [one.broker for one in kafka.waiting("Fetch", client_id="reader")] == [2])
            kafka.seed(TOPIC, [b"cake"])
            wait_until(lambda: len(java.read) == 2)
