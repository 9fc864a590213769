"""Delegation tokens: clients that come with one, and what becomes of it in time. The conformance set has the APIs."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import Cluster
from broker.wire import WireClient

USERS = {"alice": "open sesame", "bob": "secret"}
ON: dict[str, object] = {"delegation.token.secret.key": "a secret", "connections.max.idle.ms": -1}
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
HOUR = timedelta(hours=1)
PERIODS = {RENEW: "renew_period", EXPIRE: "expiry_time_period"}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(clock="held", security="SASL_PLAINTEXT", users=USERS, settings=ON) as cluster:
        yield cluster


_OPEN: list[WireClient] = []


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().socket.close()


def connect(kafka: Cluster) -> WireClient:
    _OPEN.append(WireClient(kafka.bootstrap))
    return _OPEN[-1]


def by_password(kafka: Cluster, user: str = "alice") -> WireClient:
    client = connect(kafka)
    client.ask(HANDSHAKE, 1, mechanism="PLAIN")
    said = client.ask(AUTHENTICATE, 2, auth_bytes=f"\0{user}\0{USERS[user]}".encode())
    assert said.error_code.name == "none"
    return client


def by_token(kafka: Cluster, token: Any, mechanism: str = "SCRAM-SHA-256") -> tuple[WireClient, Any]:
    """A client that comes by SCRAM with a token, and the broker's last word."""
    algorithm = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    client = connect(kafka)
    client.ask(HANDSHAKE, 1, mechanism=mechanism)
    bare = f"n={token.token_id},r=mine,tokenauth=true"
    said = client.ask(AUTHENTICATE, 2, auth_bytes=f"n,,{bare}".encode())
    if said.error_code.name != "none":
        return client, said
    first = said.auth_bytes.decode()
    given = dict(one.split("=", 1) for one in first.split(","))
    final = f"c=biws,r={given['r']}"
    salt, count = base64.b64decode(given["s"]), int(given["i"])
    salted = hashlib.pbkdf2_hmac(algorithm, base64.b64encode(token.hmac), salt, count)
    key = hmac.digest(salted, b"Client Key", algorithm)
    signed = hmac.digest(hashlib.new(algorithm, key).digest(), f"{bare},{first},{final}".encode(), algorithm)
    proof = base64.b64encode(bytes(one ^ other for one, other in zip(key, signed, strict=True))).decode()
    return client, client.ask(AUTHENTICATE, 2, auth_bytes=f"{final},p={proof}".encode())


def created(client: WireClient, lifetime: timedelta = timedelta(milliseconds=-1), **more: Any) -> Any:
    return client.ask(CREATE, 3, max_lifetime=lifetime, **more)


def described(client: WireClient) -> Any:
    return client.ask(DESCRIBE, 3, owners=None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_comes_with_a_token_as_its_owner(kafka: Cluster, mechanism: str) -> None:
    token = created(by_password(kafka), HOUR)
    client, said = by_token(kafka, token, mechanism)
    assert (said.error_code.name, said.session_lifetime) == ("none", HOUR)
    assert [one.user for one in kafka.brokers[1].connections] == ["alice", "alice"]
    client.ask(METADATA, 12, topics=[])
    refused = created(client)
    assert refused.error_code.name == "delegation_token_request_not_allowed", "a token makes no tokens"
    for key in (RENEW, EXPIRE):
        assert client.ask(key, 2, hmac=token.hmac).error_code.name == "delegation_token_request_not_allowed"
    assert described(client).error_code.name == "delegation_token_request_not_allowed"


def test_a_session_by_token_ends_with_it(kafka: Cluster) -> None:
    client, _ = by_token(kafka, created(by_password(kafka), HOUR))
    kafka.clock.advance(3599)
    client.ask(METADATA, 12, topics=[])
    kafka.clock.advance(1)
    with pytest.raises(ConnectionError):
        client.ask(METADATA, 12, topics=[])


def test_a_wrong_token_is_refused(kafka: Cluster) -> None:
    token = created(by_password(kafka))
    for wrong in (
        type("Wrong", (), {"token_id": token.token_id, "hmac": b"wrong"}),
        type("Unknown", (), {"token_id": "alice", "hmac": token.hmac}),
    ):
        assert by_token(kafka, wrong)[1].error_code.name == "sasl_authentication_failed"


def test_an_expired_token_is_removed_by_the_next_scan(kafka: Cluster) -> None:
    """Every hour, as in Kafka; until then it is told that it has expired."""
    alice = by_password(kafka)
    token = created(alice, timedelta(minutes=30))
    kafka.clock.advance(1801)
    assert alice.ask(RENEW, 2, hmac=token.hmac).error_code.name == "delegation_token_expired"
    assert alice.ask(EXPIRE, 2, hmac=token.hmac).error_code.name == "delegation_token_expired"
    assert len(described(alice).tokens) == 1
    kafka.clock.advance(1800)
    assert described(alice).tokens == ()
    assert alice.ask(RENEW, 2, hmac=token.hmac).error_code.name == "delegation_token_not_found"
    assert by_token(kafka, token)[1].error_code.name == "sasl_authentication_failed"


def test_a_renewed_token_lasts_but_not_for_ever(kafka: Cluster) -> None:
    alice = by_password(kafka)
    token = created(alice)
    for _ in range(6):
        kafka.clock.advance(86_000)
        assert alice.ask(RENEW, 2, hmac=token.hmac, renew_period=timedelta(-1)).error_code.name == "none"
    kafka.clock.advance(86_000)
    last = alice.ask(RENEW, 2, hmac=token.hmac, renew_period=timedelta(-1)).expiry_timestamp
    assert last == token.max_timestamp
    kafka.clock.advance(7200)
    assert described(alice).tokens == ()


def test_tokens_are_there_after_a_restart(tmp_path: Path) -> None:
    given: dict[str, Any] = {"security": "SASL_PLAINTEXT", "users": USERS, "settings": ON, "data": tmp_path}
    with Cluster(**given) as kafka:
        token = created(by_password(kafka), renewers=[{"principal_type": "User", "principal_name": "bob"}])
        before = described(by_password(kafka)).tokens
    with Cluster(**given) as kafka:
        assert described(by_password(kafka)).tokens == before
        client, said = by_token(kafka, token)
        assert said.error_code.name == "none"
        bob = by_password(kafka, "bob")
        expired = bob.ask(EXPIRE, 2, hmac=token.hmac, expiry_time_period=timedelta(milliseconds=-1))
        assert expired.error_code.name == "none"
        client.ask(METADATA, 12, topics=[])  # who has come stays, as in Kafka
    with Cluster(**given) as kafka:
        assert described(by_password(kafka)).tokens == ()


def test_a_token_is_worth_nothing_with_another_secret_or_without(tmp_path: Path) -> None:
    given: dict[str, Any] = {"security": "SASL_PLAINTEXT", "users": USERS, "data": tmp_path}
    with Cluster(**given, settings=ON) as kafka:
        token = created(by_password(kafka))
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token.token_id.encode() in stored
    assert base64.b64encode(token.hmac) not in stored
    name = "delegation.token.secret.key"
    for settings, error in (({**ON, name: "leaked"}, "sasl_authentication_failed"), ({}, "sasl_authentication_failed"),
                            (ON, "none")):  # fmt: skip
        with Cluster(**given, settings=settings) as kafka:
            assert by_token(kafka, token)[1].error_code.name == error


def test_the_longest_lifetimes_are_held_to_the_year_9999() -> None:
    most = (1 << 63) - 1
    settings = {**ON, "delegation.token.max.lifetime.ms": most, "delegation.token.expiry.time.ms": most}
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=settings) as kafka:
        alice = by_password(kafka)
        token = created(alice)
        assert token.error_code.name == "none"
        assert token.expiry_timestamp == token.max_timestamp == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
        assert len(described(alice).tokens) == 1


def test_logs_do_not_tell_what_clients_authenticate_with(tmp_path: Path) -> None:
    salt, salted = b"a salt", b"a salted password"
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=ON, request_log=tmp_path) as kafka:
        alice = by_password(kafka)
        token = created(alice)
        assert [one.hmac for one in described(alice).tokens] == [token.hmac]
        for key in (RENEW, EXPIRE):
            assert alice.ask(key, 2, hmac=token.hmac, **{PERIODS[key]: HOUR}).error_code.name == "none"
        user = {"name": "carol", "mechanism": 1, "iterations": 4096, "salt": salt, "salted_password": salted}
        [said] = alice.ask(51, 0, deletions=[], upsertions=[user]).results  # AlterUserScramCredentials
        assert said.error_code.name == "none"
        [known] = kafka.controller.tokens.all()
        assert known.hmac == token.hmac
        assert repr(known) == f"<DelegationToken {token.token_id} of User:alice>"
    text = (tmp_path / "broker-1" / "kafka-request.log").read_text()
    assert text.count('"hmac":"[hidden]"') == 4
    assert '"salt":"[hidden]","saltedPassword":"[hidden]"' in text
    for secret in (token.hmac, salt, salted):
        assert base64.b64encode(secret).decode() not in text


@pytest.mark.parametrize("settings", [{}, {"delegation.token.secret.key": ""}])
def test_without_a_secret_there_are_none(settings: dict[str, object]) -> None:
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=settings) as kafka:
        alice = by_password(kafka)
        said = [created(alice), alice.ask(RENEW, 2), alice.ask(EXPIRE, 2), described(alice)]
        assert {one.error_code.name for one in said} == {"delegation_token_auth_disabled"}


def test_without_sasl_nobody_may_ask_for_one() -> None:
    with Cluster(settings=ON) as kafka, WireClient(kafka.bootstrap) as client:
        said = [created(client), client.ask(RENEW, 2), client.ask(EXPIRE, 2), described(client)]
        assert {one.error_code.name for one in said} == {"delegation_token_request_not_allowed"}
