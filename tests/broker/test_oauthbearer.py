"""OAUTHBEARER: clients that come with tokens, unsecured or signed, and that have to come again (KIP-368)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from abeyant.broker import Cluster
from abeyant.broker.security.jwt import InvalidTokenError
from abeyant.broker.settings import AUTHORIZER
from abeyant.errors import AbeyantError
from broker.tokens import NOW, Keys, Session, at, close_sessions, first, part, unsecured, valid
from waiting import wait_until

ON: dict[str, object] = {"sasl.enabled.mechanisms": "OAUTHBEARER"}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    close_sessions()


def test_an_unsecured_token_says_who_and_until_when() -> None:
    assert at(unsecured(iat=NOW)) == ("alice", (NOW + 3600) * 1000)
    assert at(unsecured(exp=NOW + 0.5)) == ("alice", NOW * 1000 + 500)


@pytest.mark.parametrize(
    "token",
    [
        unsecured(exp=NOW), unsecured(exp=None), unsecured(exp="soon"), unsecured(exp=True), unsecured(exp=1e300),
        unsecured(sub=""), unsecured(sub=" "), unsecured(sub=7), unsecured(sub=None), unsecured(iat=NOW + 1),
        unsecured(iat=NOW - 1, exp=NOW - 2), unsecured({"alg": "HS256"}), unsecured({"alg": None}), unsecured([1]),
        unsecured() + "AAAA", unsecured()[:-1], "", "..", "a.b.c", unsecured("x" * 9), "." + unsecured(),
        f"{part(b'{')}.{part(b'}')}.", f"{part(b'[' * 100_000)}.e30.", "é.é.",
    ],
)  # fmt: skip
def test_other_unsecured_tokens_are_refused(token: str) -> None:
    with pytest.raises(InvalidTokenError):
        at(token)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.mark.parametrize("key", ["rsa", "curve", "secret"])
def test_a_signed_token_is_valid_as_long_as_nobody_changes_it(keys: Keys, key: str) -> None:
    token = keys.signed(key)
    assert at(token, keys.settings) == ("alice", (NOW + 3600) * 1000)
    head, claims, signature = token.split(".")
    others = {"rsa": "curve", "curve": "secret", "secret": "rsa"}
    forged = [
        f"{head}.{part({'sub': 'root', 'exp': NOW + 3600, 'iat': NOW})}.{signature}", f"{head}.{claims}.",
        f"{head}.{claims}.{part(b'x' * 64)}", unsecured(iat=NOW), keys.signed(key, None, "none"),
        f"{part({'alg': 'RS256', 'kid': others[key]})}.{claims}.{signature}",
        f"{part({'alg': 'HS256', 'kid': 'missing'})}.{claims}.{signature}",
        f"{part({'alg': 'RS256', 'kid': ['rsa']})}.{claims}.{signature}",
    ]  # fmt: skip
    for one in forged:
        with pytest.raises(InvalidTokenError):
            at(one, keys.settings)


def test_what_a_signed_token_claims_is_held_to_the_settings(keys: Keys) -> None:
    wanted = {
        **keys.settings, "sasl.oauthbearer.expected.audience": "shop,till",
        "sasl.oauthbearer.expected.issuer": "https://issuer", "sasl.oauthbearer.sub.claim.name": "client",
        "sasl.oauthbearer.clock.skew.seconds": 10,
    }  # fmt: skip
    good: dict[str, object] = {"aud": ["other", "till"], "iss": "https://issuer", "client": "bob", "exp": NOW}
    assert at(keys.signed("rsa", good), wanted, NOW + 9.9).principal == "bob"
    wrong: list[dict[str, object]] = [
        {"aud": "others"}, {"aud": None}, {"aud": 7}, {"aud": [{}]}, {"iss": None}, {"client": None},
        {"exp": NOW - 10}, {"iat": None}, {"nbf": NOW + 11},
    ]  # fmt: skip
    for bad in wrong:
        with pytest.raises(InvalidTokenError):
            at(keys.signed("rsa", good | bad), wanted)


def test_a_token_with_a_critical_extension_is_refused(keys: Keys) -> None:
    _, claims, _ = keys.signed("secret").split(".")
    for extension, refused in (({}, False), ({"crit": ["b64"], "b64": False}, True)):
        text = f"{part({'alg': 'HS256', 'kid': 'secret', **extension})}.{claims}"
        token = f"{text}.{part(keys.sign_by_secret(text.encode()))}"
        if refused:
            with pytest.raises(InvalidTokenError, match="b64"):
                at(token, keys.settings)
        else:
            assert at(token, keys.settings).principal == "alice"


def test_an_issuers_keys_for_encryption_are_left_out(keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [{"kty": "RSA", "use": "enc", "alg": "RSA-OAEP"}, *keys.keys]}))
    settings = {"sasl.oauthbearer.jwks.endpoint.url": path.as_uri()}
    assert at(keys.signed("rsa"), settings).principal == "alice"


def test_what_unsecured_tokens_cannot_prove_is_not_expected_of_them() -> None:
    for name in ("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.expected.audience"):
        with pytest.raises(AbeyantError, match=rf"{name} has no effect without .*jwks\.endpoint\.url"):
            at(unsecured(), {name: "shop"})


SECRET = {"kty": "oct", "k": part(b"a secret of 32 bytes at the least")}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{", "Expecting property name"), ('{"keys": []}', "set has no key"), ('{"keys": [{"kty": "OKP"}]}', "'OKP'"),
        ('{"keys": [{"kty": "RSA"}]}', "member is missing"), ('{"keys": [{"kty": "oct", "alg": "RS256"}]}', "'RS256'"),
        ('{"keys": [{"kty": "EC", "crv": "P-384"}]}', "'P-384' is not P-256"), ("[]", "member is missing"),
        ('{"keys": [{"kty": "oct", "k": ""}]}', "has 0 bytes; at least 32"),
        ('{"keys": [{"kty": "oct", "k": "a secret!"}]}', "is not base64url"),
        ('{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}', "17 bits; at least 2048"),
        ('{"keys": [{"kty": "RSA", "use": "enc"}]}', "no key for signatures"),
        (json.dumps({"keys": [SECRET, SECRET]}), "several keys have the id None"),
    ],
)  # fmt: skip
def test_a_file_without_usable_keys_is_refused(tmp_path: Path, written: str, why: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(written)
    for url, reason in (
        (path.as_uri(), why),
        ("ftp://issuer/keys", "give file:///path/of/jwks.json"),
        ("http:///keys", "give file:///path/of/jwks.json"),
        ("http://127.0.0.1:1/keys", "refused"),
        ("file://[issuer/keys", "Invalid IPv6 URL"),
        ("file:/no/such", "No such"),
    ):
        with pytest.raises(AbeyantError) as caught:
            at("", {"sasl.oauthbearer.jwks.endpoint.url": url})
        assert "sasl.oauthbearer.jwks.endpoint.url" in str(caught.value)
        assert reason in str(caught.value)


# -- clients


def config(kafka: Cluster, token: str, lasts: float = 3600) -> dict[str, Any]:
    """librdkafka's settings for a client with this token."""
    return {
        "bootstrap.servers": kafka.bootstrap, "security.protocol": "SASL_PLAINTEXT", "log_level": 0, "linger.ms": 0,
        "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (token, time.time() + lasts),
    }  # fmt: skip


def produced(producer: Producer) -> str | None:
    errors: list[str | None] = []
    producer.produce("orders", b"tea", on_delivery=lambda error, _: errors.append(error.name() if error else None))
    assert producer.flush(30) == 0
    return errors[0]


def test_confluents_client_is_who_its_token_says() -> None:
    acls: dict[str, object] = {"authorizer.class.name": AUTHORIZER, "super.users": "User:alice"}
    with Cluster(security="SASL_PLAINTEXT", settings={**ON, **acls}) as kafka:
        kafka.create_topic("orders")
        for user, error in (("alice", None), ("bob", "TOPIC_AUTHORIZATION_FAILED")):
            assert produced(Producer(config(kafka, unsecured(sub=user, exp=time.time() + 3600)))) == error


def test_confluents_client_comes_with_a_signed_token_by_tls(keys: Keys) -> None:
    with Cluster(security="SASL_SSL", settings={**ON, **keys.settings}) as kafka:
        kafka.create_topic("orders")
        token = keys.signed("rsa", {"exp": time.time() + 3600, "iat": time.time()})
        tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(kafka.ca_file)}
        assert produced(Producer({**config(kafka, token), **tls})) is None
        errors: list[KafkaError] = []
        forged = unsecured(exp=time.time() + 3600)
        producer = Producer({**config(kafka, forged), **tls, "error_cb": errors.append})
        wait_until(lambda: producer.poll(0.1) or errors)
        assert errors[0].code() == KafkaError._AUTHENTICATION
        assert "invalid_token" in errors[0].str()


def held(**settings: object) -> Cluster:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return Cluster(clock="held", security="SASL_PLAINTEXT", settings={**ON, **given})


def test_a_session_ends_when_its_token_expires_unless_it_is_renewed() -> None:
    with held() as kafka:
        one, other = Session(kafka), Session(kafka)
        for client in (one, other):
            assert client.begin() == "none"
            error, _, seconds = client.send(first(valid(kafka)))
            assert error == "none"
            assert seconds == pytest.approx(60, abs=0.01)
        kafka.clock.advance(59)
        assert one.is_served()
        assert one.begin() == "none"
        assert one.send(first(valid(kafka)))[0] == "none"
        kafka.clock.advance(2)
        assert one.is_served()
        assert not other.is_served(), "as in Kafka, it is closed at the next request"
        kafka.clock.advance(100)
        assert one.begin() == "none", "an idle client may come late"
        assert one.send(first(valid(kafka)))[0] == "none"
        assert one.is_served()


def test_a_session_may_be_shorter_than_its_token() -> None:
    with held(connections_max_reauth_ms=10_000) as kafka:
        client = Session(kafka)
        client.begin()
        assert client.send(first(valid(kafka)))[2] == 10
        kafka.clock.advance(10)
        assert not client.is_served()


def test_sessions_of_other_mechanisms_end_only_if_they_are_limited() -> None:
    limit = "listener.name.sasl_plaintext.plain.connections.max.reauth.ms"
    for settings, seconds in (({}, 0), ({limit: 5000}, 5), ({"connections.max.reauth.ms": 7000}, 7)):
        with Cluster(
            clock="held", security="SASL_PLAINTEXT", users={"alice": "secret"}, settings=settings
        ) as kafka:  # fmt: skip
            client = Session(kafka)
            client.begin("PLAIN")
            assert client.send(b"\0alice\0secret") == ("none", "", seconds)
            kafka.clock.advance(60)
            assert client.is_served() is (seconds == 0)


def test_the_longest_sessions_are_told_as_a_century() -> None:
    with held(connections_max_reauth_ms=(1 << 63) - 1) as kafka:
        client = Session(kafka)
        client.begin()
        assert client.send(first(unsecured(exp=1e15))) == ("none", "", 100 * 365 * 86_400)
        assert client.is_served()


def test_renewals_are_held_to_the_user_the_mechanism_and_one_a_second() -> None:
    both = {"sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN"}
    with Cluster(clock="held", security="SASL_PLAINTEXT", users={"alice": "secret"}, settings=both) as kafka:
        clients = [Session(kafka) for _ in range(3)]
        for client in clients:
            client.begin()
            client.send(first(valid(kafka)))
            assert client.begin("PLAIN" if client is clients[1] else "OAUTHBEARER") == "none"
        assert clients[0].send(first(valid(kafka, sub="bob")))[:2] == (
            "sasl_authentication_failed", "Cannot change principals during re-authentication from User.alice: User.bob"
        )  # fmt: skip
        assert clients[1].send(b"\0alice\0secret")[:2] == (
            "sasl_authentication_failed",
            "SASL mechanism 'PLAIN' requested by client is not supported for re-authentication of mechanism "
            "'OAUTHBEARER'",
        )
        assert clients[2].send(first(valid(kafka)))[0] == "none"
        assert clients[2].begin() == "illegal_sasl_state", "it has just come"
        kafka.clock.advance(1)
        assert clients[2].begin() == "none"


def test_a_refused_token_is_told_then_the_connection_ends(caplog: pytest.LogCaptureFixture) -> None:
    with held() as kafka:
        client = Session(kafka)
        client.begin()
        told = '{"status":"invalid_token"}'
        assert client.send(first(valid(kafka, -1))) == ("none", told, 0)
        assert client.send(b"\x01")[:2] == ("sasl_authentication_failed", told)
        assert not client.is_served()
        client = Session(kafka)
        client.begin()
        assert client.send(first(valid(kafka, sub=["long"] * 10_000)))[1] == told
    assert max(len(record.getMessage()) for record in caplog.records) < 300


@pytest.mark.parametrize(
    "message",
    [b"", b"\x01", b"n,,", b"n,,\x01\x01", b"y,,\x01auth=Bearer a.b.\x01\x01", b"n,,\x01auth=Basic a\x01\x01",
     b"n,,\x01auth=Bearer \xff\x01\x01", b"n,,\x01auth=Bearer a.b.\x01", b"\xff" * 100],
)  # fmt: skip
def test_nonsense_ends_the_connection(message: bytes) -> None:
    with held() as kafka:
        client = Session(kafka)
        client.begin()
        error, why, _ = client.send(message)
        assert error == "sasl_authentication_failed"
        assert why.endswith("due to invalid credentials with SASL mechanism OAUTHBEARER")


def test_another_identity_than_the_tokens_is_refused() -> None:
    with held() as kafka:
        for acts_as, error in (("alice", "none"), ("bob", "sasl_authentication_failed")):
            client = Session(kafka)
            client.begin()
            assert client.send(first(valid(kafka), acts_as))[0] == error


def test_extensions_are_accepted() -> None:
    with Cluster(security="SASL_PLAINTEXT", settings=ON) as kafka:
        kafka.create_topic("orders")
        token = unsecured(exp=time.time() + 3600)
        given = {"oauth_cb": lambda _: (token, time.time() + 3600, "alice", {"traceId": "123", "tenant": "shop a"})}
        assert produced(Producer({**config(kafka, token), **given})) is None


def test_a_broker_takes_other_mechanisms_up_when_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    name = "listener.name.sasl_plaintext.sasl.enabled.mechanisms"
    with Cluster(2, security="SASL_PLAINTEXT", users={"alice": "secret"}, clock="held") as kafka:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "security.protocol": "SASL_PLAINTEXT", **login})
        entry = ConfigEntry(name, "PLAIN,OAUTHBEARER,GSSAPI", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource("BROKER", "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(20)
        known = "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"

        def session(broker: int) -> Session:
            return Session(kafka, f"127.0.0.1:{kafka.brokers[broker].port}")

        def enabled(broker: int) -> list[str]:
            return [one for one in known if session(broker).begin(one) == "none"]

        assert enabled(1) == ["PLAIN", "SCRAM-SHA-256"], "as in Kafka, until it starts again"
        kafka.stop(1)
        kafka.start(1)
        assert enabled(1) == ["PLAIN", "OAUTHBEARER"]
        assert enabled(2) == ["PLAIN", "SCRAM-SHA-256"]
        assert "broker 1 leaves GSSAPI out: sasl.enabled.mechanisms: 'GSSAPI' is not supported" in caplog.text
        client = session(1)
        client.begin()
        assert client.send(first(valid(kafka)))[0] == "none"


def test_it_is_there_only_where_it_is_named() -> None:
    with Cluster(security="SASL_PLAINTEXT", users={"alice": "secret"}) as kafka:
        assert Session(kafka).begin() == "unsupported_sasl_mechanism"


def test_a_listeners_own_settings_hold(keys: Keys) -> None:
    own = {**ON, **keys.settings, "connections.max.reauth.ms": 5000}
    settings = {f"listener.name.sasl_plaintext.{name}": value for name, value in own.items()}
    with Cluster(clock="held", security="SASL_PLAINTEXT", settings=settings) as kafka:
        seconds = kafka.clock.now_ms() / 1000
        assert Session(kafka).begin("PLAIN") == "unsupported_sasl_mechanism"
        for token, told in (
            (valid(kafka), ('{"status":"invalid_token"}', 0)),
            (keys.signed("rsa", {"exp": seconds + 60, "iat": seconds}), ("", 5)),
        ):
            client = Session(kafka)
            client.begin()
            assert client.send(first(token)) == ("none", *told)


@pytest.mark.slow  # waits for an expiry
def test_confluents_client_renews_its_session() -> None:
    with Cluster(security="SASL_PLAINTEXT", settings={**ON, "connections.max.reauth.ms": 2000}) as kafka:
        kafka.create_topic("orders")
        token = unsecured(exp=time.time() + 3600)
        producer = Producer(config(kafka, token))
        assert produced(producer) is None
        connections = kafka.brokers[1].connections
        wait_until(lambda: producer.poll(0.1) or any(one.session and one.session.renews for one in list(connections)))
        assert produced(producer) is None
