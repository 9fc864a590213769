"""Clients' metrics (KIP-714): subscriptions as settings, and what clients are told, push and are refused.

Genuine Kafka plays this with a plugin that takes the metrics.
"""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..bodies import settings
from ..client import Connection
from ..messages import API_KEYS, ZERO_ID, Plain
from ..scenario import Stage, scenario, table
from .configs import APPEND, DELETE, SET, SUBTRACT, described, stepwise

CLIENT_METRICS = 16
DESCRIBE, ALTER, LIST = "DescribeConfigs", "IncrementalAlterConfigs", "ListConfigResources"
GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
CLIENT = {"client_software_name": "conformance", "client_software_version": "1.0"}
METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
GZIP = 1


def _field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


PAYLOAD = _field(1, _field(2, _field(2, _field(1, b"org.apache.kafka.producer.node.request.latency.max"))))


# -- subscriptions


def value(stage: Stage, name: str, key: str, broker: int = 1) -> Plain:
    said = stage.do(DESCRIBE, described(CLIENT_METRICS, name, [key]), to=broker)
    found = said["results"][0]["configs"]
    return found[0]["value"] if found else None


def until_set(stage: Stage, name: str, key: str, wanted: Plain) -> None:
    for broker in (1, 2, 3):
        stage.until(partial(_is, stage, name, key, wanted, broker), f"{key} at broker {broker}")


def _is(stage: Stage, name: str, key: str, wanted: Plain, broker: int = 1) -> bool:
    return bool(value(stage, name, key, broker) == wanted)


def delete(stage: Stage, name: str) -> None:
    stage.do(ALTER, stepwise(CLIENT_METRICS, name, *((DELETE, key, None) for key in (METRICS, INTERVAL, MATCH))))


@scenario(ALTER)
def set_and_deleted(stage: Stage) -> None:
    name = stage.name("subscription")
    steps = (SET, METRICS, "org.apache.kafka.producer.,x"), (SET, INTERVAL, "5000"), (SET, MATCH, "client_id=nobody")
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, *steps))
    until_set(stage, name, INTERVAL, "5000")
    stage.ask(DESCRIBE, described(CLIENT_METRICS, name, None, synonyms=True))
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (DELETE, INTERVAL, None)))
    stage.until(lambda: value(stage, name, INTERVAL) != "5000", "the default")
    stage.ask(DESCRIBE, described(CLIENT_METRICS, name, [INTERVAL, METRICS]))
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (DELETE, METRICS, None), (DELETE, MATCH, None)))
    stage.until(lambda: name not in listed(stage), "the end of it")


def listed(stage: Stage) -> list[str]:
    said = stage.do(LIST, {"resource_types": [CLIENT_METRICS]}, version=1)
    return [row["resource_name"] for row in said["config_resources"]]


@table(
    ALTER, at=(0, 1),
    interval_too_short=((SET, INTERVAL, "99"),), interval_too_long=((SET, INTERVAL, "3600001"),),
    interval_of_zero=((SET, INTERVAL, "0"),), negative_interval=((SET, INTERVAL, "-1"),),
    interval_that_is_no_number=((SET, INTERVAL, "soon"),), interval_as_a_float=((SET, INTERVAL, "1000.5"),),
    unknown=((SET, "no.such.setting", "1"),), setting_of_a_topic=((SET, "retention.ms", "1"),),
    match_without_value=((SET, MATCH, "client_id"),), match_of_nothing=((SET, MATCH, "client_id="),),
    match_with_two_signs=((SET, MATCH, "client_id=a=b"),), match_of_unknown_field=((SET, MATCH, "name=x"),),
    match_of_no_expression=((SET, MATCH, "client_id=("),), match_second_wrong=((SET, MATCH, "client_id=a,x=y"),),
    null_interval=((SET, INTERVAL, None),), append_to_a_number=((APPEND, INTERVAL, "1"),),
    append_to_unknown=((APPEND, "no.such.setting", "1"),), unknown_deleted=((DELETE, "no.such.setting", None),),
)  # fmt: skip
def setting_that_cannot_be(stage: Stage, step: tuple[int, str, str | None]) -> None:
    stage.ask(ALTER, stepwise(CLIENT_METRICS, stage.name("subscription"), step))


@table(ALTER, at=(1,), shortest=("100",), longest=("3600000",), with_spaces=(" 5000 ",))
def interval(stage: Stage, wanted: str) -> None:
    name = stage.name("subscription")
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (SET, INTERVAL, wanted), (SET, MATCH, "client_id=nobody")))
    until_set(stage, name, MATCH, "client_id=nobody")
    stage.ask(DESCRIBE, described(CLIENT_METRICS, name, [INTERVAL], synonyms=True))
    delete(stage, name)


@scenario(ALTER, at=(1,))
def metrics_appended_and_subtracted(stage: Stage) -> None:
    """Lists of topics and brokers take that; these do not."""
    name = stage.name("subscription")
    stage.do(ALTER, stepwise(CLIENT_METRICS, name, (SET, METRICS, "a"), (SET, MATCH, "client_id=nobody")))
    until_set(stage, name, METRICS, "a")
    for operation in (APPEND, SUBTRACT):
        stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (operation, METRICS, "a,b")))
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (SET, METRICS, "")))
    stage.until(lambda: value(stage, name, METRICS) == "", "no metrics")
    stage.ask(DESCRIBE, described(CLIENT_METRICS, name, None, synonyms=True))
    delete(stage, name)


@table(ALTER, at=(0, 1), altered=(False,), validated=(True,))
def subscription_without_a_name(stage: Stage, validate_only: bool) -> None:
    stage.ask(ALTER, stepwise(CLIENT_METRICS, "", (SET, INTERVAL, "5000"), validate_only=validate_only))


@scenario(ALTER, at=(1,))
def only_validated(stage: Stage) -> None:
    name = stage.name("subscription")
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (SET, INTERVAL, "5000"), validate_only=True))
    stage.ask(ALTER, stepwise(CLIENT_METRICS, name, (SET, INTERVAL, "5"), validate_only=True))
    stage.note("listed", name in listed(stage))


@scenario("AlterConfigs")
def all_at_once(stage: Stage) -> None:
    """What is not named falls back to its default."""
    name = stage.name("subscription")
    stage.do(ALTER, stepwise(CLIENT_METRICS, name, (SET, METRICS, "a"), (SET, MATCH, "client_id=nobody")))
    until_set(stage, name, METRICS, "a")
    row = {"resource_type": CLIENT_METRICS, "resource_name": name, "configs": settings(interval_ms="7000")}
    stage.ask("AlterConfigs", {"resources": [row]})
    until_set(stage, name, INTERVAL, "7000")
    stage.ask(DESCRIBE, described(CLIENT_METRICS, name, None))
    stage.ask("AlterConfigs", {"resources": [row | {"configs": []}]})
    stage.until(lambda: name not in listed(stage), "the end of it")


@scenario(DESCRIBE)
def described_that_is_not_there(stage: Stage) -> None:
    stage.ask(DESCRIBE, described(CLIENT_METRICS, stage.name("subscription"), None, synonyms=True))


@scenario(DESCRIBE, at=(1, 4))
def described_without_a_name(stage: Stage) -> None:
    stage.ask(DESCRIBE, described(CLIENT_METRICS, "", None))


@scenario(DESCRIBE, at=(4,))
def some_described(stage: Stage) -> None:
    stage.ask(DESCRIBE, described(CLIENT_METRICS, stage.name("subscription"), [INTERVAL, "no.such.setting"]))


@scenario(LIST, at=(0, 1))
def listed_by_kind(stage: Stage) -> None:
    name = stage.name("subscription")
    stage.do(ALTER, stepwise(CLIENT_METRICS, name, (SET, INTERVAL, "5000"), (SET, MATCH, "client_id=nobody")))
    until_set(stage, name, INTERVAL, "5000")
    version = stage.version(LIST)
    said = stage.do(LIST, {"resource_types": [CLIENT_METRICS]}, version=version)
    said["config_resources"] = [row for row in said["config_resources"] if row["resource_name"] == name]
    stage.note(LIST, said)
    delete(stage, name)


# -- clients


@scenario()
def versions_with_a_plugin(stage: Stage) -> None:
    with subscribed(stage):  # without one, ours does not list them
        said = stage.do("ApiVersions", CLIENT)
    keys = [API_KEYS[GET], API_KEYS[PUSH]]
    stage.note("versions", [row for row in said["api_keys"] if row["api_key"] in keys])


@contextmanager
def subscribed(stage: Stage, metrics: str = "a.,b.", interval: str = "200", match: str = "") -> Iterator[Connection]:
    """A connection of a client that a subscription matches, within the block."""
    name, client = stage.name("subscription"), stage.name("client")
    steps = (SET, METRICS, metrics), (SET, INTERVAL, interval), (SET, MATCH, f"client_id={client}{match}")
    stage.do(ALTER, stepwise(CLIENT_METRICS, name, *steps))
    until_set(stage, name, INTERVAL, interval)
    try:
        yield client_of(stage, client)
    finally:
        delete(stage, name)


def client_of(stage: Stage, client: str = "conformance") -> Connection:
    connection = stage.connect(client_id=client)
    connection.ask("ApiVersions", 4, CLIENT)
    return connection


def get(stage: Stage, over: Connection, client: str = ZERO_ID) -> dict[str, Plain]:
    """Ask for the subscriptions. Which metrics comes in no order."""
    said = over.ask(GET, 0, {"client_instance_id": client})
    said["requested_metrics"] = sorted(said["requested_metrics"])
    stage.note(GET, said)
    return said


def pushing(said: dict[str, Plain], data: bytes = PAYLOAD, **more: Plain) -> dict[str, Plain]:
    return {
        "client_instance_id": said["client_instance_id"], "subscription_id": said["subscription_id"],
        "terminating": False, "compression_type": 0, "metrics": data, **more,
    }  # fmt: skip


def push(stage: Stage, over: Connection, body: dict[str, Plain]) -> None:
    stage.ask(PUSH, body, over=over)


@scenario()
def not_subscribed(stage: Stage) -> None:
    get(stage, client_of(stage))


@scenario()
def asked_and_pushed(stage: Stage) -> None:
    with subscribed(stage) as over:
        said = get(stage, over)
        push(stage, over, pushing(said))
        stage.brokers.elapse(0.3)
        push(stage, over, pushing(said, b""))


@scenario()
def all_metrics(stage: Stage) -> None:
    with subscribed(stage, "*,a.") as over:
        get(stage, over)


@scenario()
def no_metrics(stage: Stage) -> None:
    with subscribed(stage, "") as over:
        get(stage, over)


@scenario()
def of_two_subscriptions(stage: Stage) -> None:
    """The shorter interval, and the metrics of both."""
    with subscribed(stage, "a.,b.", "60000") as over:
        second = stage.name("second")
        steps = (SET, METRICS, "b.,c."), (SET, INTERVAL, "30000"), (SET, MATCH, f"client_id={stage.name('client')}")
        stage.do(ALTER, stepwise(CLIENT_METRICS, second, *steps))
        until_set(stage, second, INTERVAL, "30000")
        get(stage, over)
        delete(stage, second)


@table(
    name=(",client_software_name=conf.*",), other_name=(",client_software_name=conf",),
    version=(",client_software_version=1\\.0",), other_version=(",client_software_version=2.*",),
    address=(",client_source_address=127\\.0\\.0\\.1",), port=(",client_source_port=[0-9]+",),
    instance=(",client_instance_id=[A-Za-z0-9_-]{22}",), with_spaces=(", client_software_name = conformance ",),
)  # fmt: skip
def match_of(stage: Stage, match: str) -> None:
    with subscribed(stage, match=match) as over:
        get(stage, over)


@scenario()
def asked_too_soon(stage: Stage) -> None:
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        get(stage, over, said["client_instance_id"])
        push(stage, over, pushing(said))
        push(stage, over, pushing(said))
        get(stage, over, said["client_instance_id"])


@scenario()
def pushed_each_interval(stage: Stage) -> None:
    with subscribed(stage, interval="500") as over:
        said = get(stage, over)
        push(stage, over, pushing(said))
        push(stage, over, pushing(said))
        stage.brokers.elapse(0.7)
        push(stage, over, pushing(said))
        stage.brokers.elapse(0.7)
        get(stage, over, said["client_instance_id"])
        push(stage, over, pushing(said))


@scenario()
def pushed_without_asking(stage: Stage) -> None:
    with subscribed(stage) as over:
        unknown = {"client_instance_id": str(uuid.uuid4()), "subscription_id": 7}
        push(stage, over, pushing(unknown))


@table(none=(ZERO_ID,), reserved=(str(uuid.UUID(int=1)),), also_reserved=(str(uuid.UUID(int=99)),))
def client_that_cannot_be(stage: Stage, client: str) -> None:
    with subscribed(stage) as over:
        push(stage, over, pushing({"client_instance_id": client, "subscription_id": 7}))


@scenario()
def client_with_an_id_of_its_own(stage: Stage) -> None:
    with subscribed(stage) as over:
        get(stage, over, str(uuid.uuid4()))


@scenario()
def subscription_that_is_unknown(stage: Stage) -> None:
    """Then it may ask again at once."""
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        push(stage, over, pushing(said, subscription_id=said["subscription_id"] ^ 1))
        get(stage, over, said["client_instance_id"])
        push(stage, over, pushing(said))


@scenario()
def subscription_that_has_changed(stage: Stage) -> None:
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        push(stage, over, pushing(said))
        name = stage.name("subscription")
        stage.do(ALTER, stepwise(CLIENT_METRICS, name, (SET, METRICS, "c.")))
        until_set(stage, name, METRICS, "c.")
        push(stage, over, pushing(said))
        then = get(stage, over, said["client_instance_id"])
        stage.note("another one", then["subscription_id"] != said["subscription_id"])
        push(stage, over, pushing(then))


@scenario()
def last_push(stage: Stage) -> None:
    """It may come too soon; nothing may come after it."""
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        push(stage, over, pushing(said))
        push(stage, over, pushing(said, terminating=True))
        push(stage, over, pushing(said, terminating=True))
        get(stage, over, said["client_instance_id"])


@table(gzip=(GZIP, gzip.compress(PAYLOAD)), unknown=(9, PAYLOAD), negative=(-1, PAYLOAD), wrong=(GZIP, PAYLOAD))
def compression(stage: Stage, codec: int, data: bytes) -> None:
    with subscribed(stage) as over:
        said = get(stage, over)
        push(stage, over, pushing(said, data, compression_type=codec))
        get(stage, over, said["client_instance_id"])


@scenario()
def codec_that_is_unknown(stage: Stage) -> None:
    """Then it may ask again at once."""
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        push(stage, over, pushing(said, compression_type=9))
        get(stage, over, said["client_instance_id"])


@table(just=(1_048_576, b"\x12"), one_more=(1_048_577, b"\x12"))
def as_large_as_may_be(stage: Stage, size: int, tag: bytes) -> None:
    """A field that nobody reads, as long as that takes."""
    body = size - 4
    length = bytes([body & 127 | 128, body >> 7 & 127 | 128, body >> 14])
    with subscribed(stage) as over:
        push(stage, over, pushing(get(stage, over), tag + length + bytes(body)))


@scenario()
def compressed_larger_than_may_be(stage: Stage) -> None:
    body = 2_000_000
    length = bytes([body & 127 | 128, body >> 7 & 127 | 128, body >> 14])
    data = gzip.compress(b"\x12" + length + bytes(body))
    with subscribed(stage) as over:
        push(stage, over, pushing(get(stage, over), data, compression_type=GZIP))


@table(rest_missing=(PAYLOAD[:-3],), no_message=(b"\xff" * 30,), text=(b"no metrics",))
def metrics_that_cannot_be_read(stage: Stage, data: bytes) -> None:
    with subscribed(stage) as over:
        push(stage, over, pushing(get(stage, over), data))


@scenario()
def ended_connection(stage: Stage) -> None:
    """The broker forgets the client, which another connection may go on with."""
    with subscribed(stage, interval="3000") as over:
        said = get(stage, over)
        over.close()
        stage.brokers.await_read(1)
        other = client_of(stage, stage.name("client"))
        stage.until(partial(_forgotten, stage, other, said["client_instance_id"]), "the end of the connection")
        push(stage, other, pushing(said))


def _forgotten(stage: Stage, over: Connection, client: str) -> bool:
    del stage
    return bool(over.ask(GET, 0, {"client_instance_id": client})["error_code"] == "NONE")
