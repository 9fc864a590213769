"""Clients that come by TLS, by SASL, by both, or that are not let in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import ssl
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from abeyant import aio
from abeyant.broker import Cluster
from abeyant.broker.security.login import AuthenticationError, Login, Users
from abeyant.errors import AbeyantError
from broker.wire import WireClient
from seeds import with_slow
from waiting import wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own reading of its own files
    from kafka import KafkaProducer

# The last password is one that SASLprep would change or refuse; Kafka and its clients take it as it is.
USERS = {"alice": "open sesame", "böb": "schlüssel, =2C", "carol": "½ ﬁsh\u00a0\x07"}
WAYS = [
    ("SSL", None),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]


def settings(kafka: Cluster, mechanism: str | None, user: str = "alice", password: str | None = None) -> dict[str, Any]:
    """As librdkafka has them."""
    found: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap, "security.protocol": kafka.security.protocol}
    if kafka.ca_file:
        found["ssl.ca.location"] = str(kafka.ca_file)
    if mechanism:
        found |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password or USERS[user]}
    return found


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_librdkafka_writes_and_reads(protocol: Any, mechanism: str | None) -> None:
    with Cluster(brokers=2, security=protocol, users=USERS if mechanism else None) as kafka:
        kafka.create_topic("orders", partitions=2, replicas=2)
        for user in USERS if mechanism else ["alice"]:
            producer = Producer(settings(kafka, mechanism, user))
            producer.produce("orders", b"one")
            assert producer.flush(20) == 0
        assert len(kafka.records("orders")) == (len(USERS) if mechanism else 1)
        consumer = Consumer({**settings(kafka, mechanism), "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert message.value() == b"one"


@pytest.mark.parametrize(
    "enabled", [("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), ("PLAIN", "SCRAM-SHA-512"), ("PLAIN",)]
)
def test_an_administrator_sees_who_may_come_by_scram(enabled: tuple[str, ...]) -> None:
    limits = {"sasl.enabled.mechanisms": ",".join(enabled)}
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=limits) as kafka:
        admin = AdminClient(settings(kafka, "PLAIN"))  # which has to outlive its requests
        asked: Any = admin.describe_user_scram_credentials()  # of all: one answer
        found = asked.result(20)
        told = {name: {one.mechanism.name for one in user.scram_credential_infos} for name, user in found.items()}
        scram = {name.replace("-", "_") for name in enabled[1:]}
        assert told == (dict.fromkeys(USERS, scram) if scram else {})
        assert {one.iterations for user in found.values() for one in user.scram_credential_infos} <= {4096}


def test_an_administrator_adds_and_removes_a_user(tmp_path: Path) -> None:
    """And whom he has added is there after a restart."""

    def left(kafka: Cluster, password: str) -> int:
        producer = Producer({**settings(kafka, "SCRAM-SHA-256", "dora", password), "log_level": 0})
        producer.produce("orders", b"one")
        found = producer.flush(1 if password == "wrong" else 20)
        producer.purge()
        return found

    mechanism = ScramMechanism.SCRAM_SHA_256
    with Cluster(security="SASL_PLAINTEXT", users=USERS, data=tmp_path) as kafka:
        kafka.create_topic("orders")
        admin = AdminClient(settings(kafka, "PLAIN"))
        added = UserScramCredentialUpsertion("dora", ScramCredentialInfo(mechanism, 8192), b"secret")
        admin.alter_user_scram_credentials([added])["dora"].result(20)
        assert (left(kafka, "wrong"), left(kafka, "secret")) == (1, 0)
    with Cluster(security="SASL_PLAINTEXT", users=USERS, data=tmp_path) as kafka:
        assert left(kafka, "secret") == 0
        admin = AdminClient(settings(kafka, "PLAIN"))
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("dora", mechanism)])["dora"].result(20)
        asked: Any = admin.describe_user_scram_credentials(["dora"])
        with pytest.raises(KafkaException, match="does not exist"):
            asked["dora"].result(20)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_kafka_python_writes_by_name_and_by_address(mechanism: str) -> None:
    with Cluster(security="SASL_SSL", users=USERS) as kafka:
        port = kafka.bootstrap.rpartition(":")[2]
        for host in ("localhost", "127.0.0.1"):
            producer = KafkaProducer(
                bootstrap_servers=f"{host}:{port}", security_protocol="SASL_SSL", ssl_cafile=str(kafka.ca_file),
                sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password=USERS["alice"],
            )  # fmt: skip
            producer.send("orders", b"one").get(timeout=20)
            producer.close()
        assert [record.value for record in kafka.records("orders")] == [b"one", b"one"]


def test_aiokafka_writes_on_the_same_loop() -> None:
    aio.run(_write_with_aiokafka())


async def _write_with_aiokafka() -> None:
    from aiokafka import AIOKafkaProducer

    async with Cluster(security="SASL_SSL", users=USERS) as kafka:
        trust = ssl.create_default_context(cafile=str(kafka.ca_file))
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka.bootstrap, security_protocol="SASL_SSL", ssl_context=trust,
            sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="alice", sasl_plain_password=USERS["alice"],
        )  # fmt: skip
        await producer.start()
        await producer.send_and_wait("orders", b"one")
        await producer.stop()
        assert [record.value for record in kafka.records("orders")] == [b"one"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_the_request_log_tells_who_came_and_how(tmp_path: Path, mechanism: str) -> None:
    with Cluster(security="SASL_SSL", users=USERS, request_log=tmp_path) as kafka:
        producer = Producer(settings(kafka, mechanism, "böb"))
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
    lines = (tmp_path / "broker-1" / "kafka-request.log").read_text().splitlines()
    told = [json.loads(line[line.index("{") : line.rindex("}") + 1]) for line in lines]
    assert {(one["securityProtocol"], one["listener"]) for one in told} == {("SASL_SSL", "SASL_SSL")}
    assert "PRODUCE" in {one["requestHeader"]["requestApiKeyName"] for one in told}
    # As in Kafka, nothing of what comes before: a line of SaslAuthenticate would have the password.
    assert {one["principal"] for one in told} == {"User:böb"}
    assert not [one for one in told if one["requestHeader"]["requestApiKeyName"].startswith("SASL")]


def test_the_request_log_has_no_secret_settings(tmp_path: Path) -> None:
    with Cluster(request_log=tmp_path) as kafka, WireClient(kafka.bootstrap) as client:
        given = {"ssl.key.password": "hunter2", "no.such.setting": "hunter2", "log.retention.ms": "100"}
        for key, extra in ((33, {}), (44, {"config_operation": 0})):
            configs = [{"name": name, "value": value, **extra} for name, value in given.items()]
            client.ask(
                key, 1, resources=[{"resource_type": 4, "resource_name": "1", "configs": configs}], validate_only=True
            )
    text = (tmp_path / "broker-1" / "kafka-request.log").read_text()
    assert "hunter2" not in text
    assert text.count('"value":"[hidden]"') == 4
    assert text.count('"value":"100"') == 2


# -- who is not let in ------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded() -> Iterator[Cluster]:
    with Cluster(security="SASL_PLAINTEXT", users=USERS) as kafka:
        yield kafka


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "open sesame")])
def test_a_wrong_name_or_password_is_told(guarded: Cluster, mechanism: str, user: str, password: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer({**settings(guarded, mechanism, user, password), "error_cb": errors.append})
    producer.poll(10)
    assert errors
    assert errors[0].code() == KafkaError._AUTHENTICATION
    assert "Authentication failed" in errors[0].str()


def asked(kafka: Cluster, frames: list[bytes]) -> list[bytes]:
    """The answers to frames, b"" where the connection was closed in place of one."""
    host, _, port = kafka.bootstrap.partition(":")
    answers = []
    with socket.create_connection((host, int(port)), timeout=10) as client:
        stream = client.makefile("rb")
        for frame in frames:
            client.sendall(struct.pack(">i", len(frame)) + frame)
            head = stream.read(4)
            answers.append(stream.read(*struct.unpack(">i", head)) if head else b"")
            if not head:
                break
    return answers


def request(key: int, version: int, body: bytes) -> bytes:
    return struct.pack(">hhih", key, version, 7, -1) + body


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
PLAIN = b"\0alice\0open sesame"
UNSUPPORTED_MECHANISM, ILLEGAL_STATE = 33, 34


def test_nothing_else_is_answered_before(guarded: Cluster) -> None:
    assert asked(guarded, [request(METADATA, 1, struct.pack(">i", 0))]) == [b""]


def test_a_token_before_the_handshake_is_out_of_order(guarded: Cluster) -> None:
    (answer,) = asked(guarded, [request(AUTHENTICATE, 0, struct.pack(">i", len(PLAIN)) + PLAIN)])
    assert struct.unpack(">ih", answer[:6]) == (7, ILLEGAL_STATE)


def test_a_mechanism_that_is_not_there_is_told_with_those_that_are(guarded: Cluster) -> None:
    (answer,) = asked(guarded, [request(HANDSHAKE, 1, text("GSSAPI"))])
    assert answer == struct.pack(">ihi", 7, UNSUPPORTED_MECHANISM, 3) + b"".join(
        map(text, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
    )


def test_after_handshake_0_tokens_come_bare(guarded: Cluster) -> None:
    metadata = request(METADATA, 1, struct.pack(">i", 0))
    first, token, answer = asked(guarded, [request(HANDSHAKE, 0, text("PLAIN")), PLAIN, metadata])
    assert struct.unpack(">ih", first[:6]) == (7, 0)
    assert token == b""
    assert struct.unpack(">i", answer[:4]) == (7,)
    assert asked(guarded, [request(HANDSHAKE, 0, text("PLAIN")), b"\0alice\0wrong"])[1:] == [b""]
    assert asked(guarded, [request(HANDSHAKE, 0, text("SCRAM-SHA-256")), b"\xff" * 9])[1:] == [b""]


@pytest.mark.parametrize(("before", "taken"), [("", True), ("mine", True), ("", False)])
def test_a_nonce_need_only_end_with_the_brokers(before: str, taken: bool) -> None:
    """librdkafka before 2.6.1 sends its own part twice; Kafka does not mind."""
    login = Login(Users(USERS, ("SCRAM-SHA-256",)), -1)
    assert login.begin("SCRAM-SHA-256", bare=True)
    bare = "n=alice,r=mine"
    first = login.answer(f"n,,{bare}".encode(), 0)[0].decode()
    said = dict(part.split("=", 1) for part in first.split(","))
    final = f"c=biws,r={before}{said['r'] if taken else 'mine'}"
    salted = hashlib.pbkdf2_hmac("sha256", USERS["alice"].encode(), base64.b64decode(said["s"]), int(said["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{first},{final}".encode(), "sha256")
    proof = base64.b64encode(bytes(one ^ other for one, other in zip(key, signature, strict=True))).decode()
    if taken:
        assert login.answer(f"{final},p={proof}".encode(), 0)[1]
    else:
        with pytest.raises(AuthenticationError):
            login.answer(f"{final},p={proof}".encode(), 0)


@pytest.mark.parametrize(
    ("limit", "size", "taken"), [(None, 524_289, False), (None, 524_288, True), (-1, 600_000, True)]
)
def test_a_client_that_is_not_in_cannot_send_much(limit: int | None, size: int, taken: bool) -> None:
    limits = {} if limit is None else {"sasl.server.max.receive.size": limit}
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings=limits) as kafka:
        host, _, port = kafka.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(struct.pack(">i", size))  # announced; not a byte of it has to come
            if taken:
                client.sendall(request(HANDSHAKE, 1, text("PLAIN")).ljust(size, b"\0"))
            assert bool(client.recv(4)) is taken


def test_a_handshake_of_who_is_in_is_out_of_order() -> None:
    with Cluster() as kafka:
        (answer,) = asked(kafka, [request(HANDSHAKE, 1, text("PLAIN"))])
        assert struct.unpack(">ih", answer[:6]) == (7, ILLEGAL_STATE)


def test_a_client_without_tls_does_not_harm_those_with() -> None:
    with Cluster(security="SSL") as kafka:
        host, _, port = kafka.bootstrap.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            frame = request(METADATA, 1, struct.pack(">i", 0))
            client.sendall(struct.pack(">i", len(frame)) + frame)
            assert client.recv(1000)[:1] in (b"", b"\x15")  # nothing, or an alert of TLS
        producer = Producer(settings(kafka, None))
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        assert len(kafka.records("orders")) == 1


def test_a_cluster_waits_for_no_handshake_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    kafka = Cluster(security="SSL").open()
    host, _, port = kafka.bootstrap.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as silent:
        listener: Any = kafka.brokers[1]._listener
        wait_until(lambda: listener._handshakes)
        kafka.close()  # asyncio would let the handshake wait for a minute
        silent.setblocking(False)
        assert silent.recv(1) == b""
    assert not caplog.records


# -- nonsense ---------------------------------------------------------------------------------------------------------


def test_nonsense_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="security must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'TLS'"):
        Cluster(security="TLS")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="SASL_SSL needs users"):
        Cluster(security="SASL_SSL")
    with pytest.raises(ValueError, match="users need SASL_PLAINTEXT or SASL_SSL, not SSL"):
        Cluster(security="SSL", users=USERS)
    with pytest.raises(ValueError, match="names and passwords must be non-empty strings"):
        Cluster(security="SASL_PLAINTEXT", users={"alice": ""})
    with pytest.raises(AbeyantError, match="'GSSAPI' is not supported, only PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        Cluster(security="SASL_PLAINTEXT", users=USERS, settings={"sasl.enabled.mechanisms": "PLAIN,GSSAPI"})
    (tmp_path / "store.pem").write_text("no certificate")
    with pytest.raises(AbeyantError, match=r"ssl.keystore.location: cannot use .*store.pem"):
        Cluster(security="SSL", settings={"ssl.keystore.location": str(tmp_path / "store.pem")})


def test_only_the_mechanisms_that_are_set_are_there() -> None:
    with Cluster(security="SASL_PLAINTEXT", users=USERS, settings={"sasl.enabled.mechanisms": "PLAIN"}) as kafka:
        assert kafka.settings.value("sasl.enabled.mechanisms", 1) == ("PLAIN",)
        (answer,) = asked(kafka, [request(HANDSHAKE, 1, text("SCRAM-SHA-256"))])
        assert answer == struct.pack(">ihi", 7, UNSUPPORTED_MECHANISM, 1) + text("PLAIN")


def test_a_certificate_of_the_users_own_is_shown(tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    store, trusted = tmp_path / "store.pem", tmp_path / "ca.pem"
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(store)
    authority.cert_pem.write_to_path(trusted)
    with Cluster(security="SSL", settings={"ssl.keystore.location": str(store)}) as kafka:
        assert kafka.ca_file is None
        producer = Producer({**settings(kafka, None), "ssl.ca.location": str(trusted)})
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0


@pytest.mark.parametrize(("password", "opens"), [("secret", True), ("wrong", False), (None, False)])
def test_a_key_with_a_password_is_opened_or_refused_and_nobody_is_asked(
    tmp_path: Path, password: str | None, opens: bool
) -> None:
    import trustme
    from cryptography.hazmat.primitives import serialization

    certificate = trustme.CA().issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    store = tmp_path / "store.pem"
    hidden = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    store.write_bytes(hidden + b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    given = {"ssl.keystore.location": str(store)} | ({"ssl.key.password": password} if password else {})
    if opens:
        Cluster(security="SSL", settings=given)
    else:
        with pytest.raises(AbeyantError, match=r"and in ssl\.key\.password the key's password, if the key has one"):
            Cluster(security="SSL", settings=given)


def test_the_authoritys_file_goes_with_the_cluster() -> None:
    with Cluster(security="SSL") as kafka:
        path = kafka.ca_file
        assert path is not None
        assert path.exists()
    assert not path.exists()


def client_certificate(folder: Path) -> dict[str, str]:
    """A client's certificate and key as librdkafka has them, and in `folder` the file of its authority."""
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "clients.pem")
    certificate = authority.issue_cert("client@example.org")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    return {"ssl.certificate.location": str(folder / "client.pem"), "ssl.key.location": str(folder / "client.pem")}


def produces(kafka: Cluster, **more: str) -> bool:
    producer = Producer(settings(kafka, None) | {"message.timeout.ms": 3000} | more)
    producer.produce("orders", b"one")
    return producer.flush(10) == 0 and bool(kafka.records("orders"))


@pytest.mark.parametrize(
    "name", with_slow(["ssl.client.auth", "listener.name.ssl.ssl.client.auth"], ["ssl.client.auth"])
)
def test_a_client_needs_a_certificate_where_that_is_required(tmp_path: Path, name: str) -> None:
    own = client_certificate(tmp_path)
    given = {name: "required", "ssl.truststore.location": str(tmp_path / "clients.pem")}
    with Cluster(security="SSL", settings=given) as kafka:
        kafka.create_topic("orders")
        assert not produces(kafka)
        (tmp_path / "other").mkdir()
        assert not produces(kafka, **client_certificate(tmp_path / "other"))
        assert produces(kafka, **own)


def test_a_certificate_that_is_requested_may_be_missing(tmp_path: Path) -> None:
    client_certificate(tmp_path)
    given = {"ssl.client.auth": "requested", "ssl.truststore.location": str(tmp_path / "clients.pem")}
    with Cluster(security="SSL", settings=given) as kafka:
        kafka.create_topic("orders")
        assert produces(kafka)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"ssl.client.auth": "required"}, "ssl.client.auth=required needs ssl.truststore.location"),
        (
            {"ssl.client.auth": "required", "ssl.truststore.location": "/no/such"},
            "ssl.truststore.location: cannot use /no/such",
        ),
        ({"ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols: 'TLSv1' is not among TLSv1.2, TLSv1.3"),
        ({"ssl.keystore.type": "PKCS12"}, "ssl.keystore.type: 'PKCS12' is not supported: convert the store to PEM"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.key and ssl.keystore.certificate.chain need each other"),
    ],
)
def test_settings_for_tls_that_cannot_be_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(AbeyantError) as caught:
        Cluster(security="SSL", settings=given)
    assert why in str(caught.value)


def test_a_broker_takes_another_key_store_while_it_runs(tmp_path: Path) -> None:
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "store.pem")
    name = "listener.name.ssl.ssl.keystore.location"
    with Cluster(security="SSL") as kafka:
        kafka.create_topic("orders")
        admin = AdminClient(settings(kafka, None))

        def set_to(path: Path) -> None:
            entry = ConfigEntry(name, str(path), incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
            [changed] = admin.incremental_alter_configs([resource]).values()
            changed.result(20)

        with pytest.raises(KafkaException, match=r"ssl.keystore.location: cannot use"):
            set_to(tmp_path / "missing.pem")
        set_to(tmp_path / "store.pem")
        assert produces(kafka, **{"ssl.ca.location": str(tmp_path / "ca.pem")})
