"""Settings by Kafka's names: values, defaults, what a topic falls back on, what is refused, what is described."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from abeyant import broker
from abeyant.broker.cluster import Cluster
from abeyant.broker.definitions import ConfigError, definitions, duration_ms
from abeyant.broker.log import LogConfig
from abeyant.broker.settings import ALL_BROKERS, BROKER, DEFAULT, STATIC, TOPIC, Settings
from abeyant.errors import AbeyantError
from broker.conformance.client import Connection
from broker.wire import WireClient


def test_every_default_is_allowed() -> None:
    for found in (*definitions("broker").values(), *definitions("topic").values()):
        found.parse(found.default)
    assert len(definitions("broker")) > 300


def test_defaults_of_a_log_are_kafkas() -> None:
    assert Settings().for_topic({}).log_config() == LogConfig()


@pytest.mark.parametrize("name", ["group.initial.rebalance.delay.ms", "group.streams.initial.rebalance.delay.ms"])
def test_a_default_that_differs_says_so(name: str) -> None:
    settings = Settings()

    assert settings[name] == 0
    (entry,) = settings.describe(1, [name])
    assert "Kafka has 3000" in entry.documentation


def test_what_a_setting_does_is_said_of_those_that_the_code_asks_for_and_of_no_others() -> None:
    room = Path(broker.__file__).parent
    others = ("definitions.py", "reconfiguration.py", "request_log.py")  # they check values, or redact them
    sources = [path for path in room.rglob("*.py") if "genuine" not in path.parts and path.name not in others]
    named = set(re.findall(r'"\{?([a-z]+(?:\.[a-z]+)+)\}?"', "".join(path.read_text("utf-8") for path in sources)))
    fallbacks = {one.fallback for scope in ("topic", "group") for one in definitions(scope).values() if one.text}
    limits = re.compile(
        r"group\.(consumer\.(max|min)\.(session|heartbeat)|share\.(max|min)\.(session|heartbeat|record|delivery|partition)|"
        r"streams\.(max|min)\.(session|heartbeat|standby))\..*"
    )  # their names are put together
    without = {"log.roll.jitter.ms", "log.roll.jitter.hours"}  # asked for, and not heeded
    found = definitions("broker").values()
    told = {one.name for one in found if one.has_effect and not limits.fullmatch(one.name)}
    asked = {one.name for one in found if one.unsupported is None and (one.name in named or one.name in fallbacks)}
    assert told == asked - without


def test_what_may_change_without_effect_is_listed_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "broker-settings.md").read_text("utf-8")
    table = page.partition("## Settings that change nothing\n")[2].partition("\n## ")[0]
    listed = {
        scope: set(re.findall(r"`([a-z0-9.]+)`", "".join(re.findall(rf"^\| {scope}s.*", table, re.MULTILINE))))
        for scope in ("broker", "topic")
    }
    for scope in ("broker", "topic", "group", "client-metrics"):
        without = {one.name for one in definitions(scope).values() if one.dynamic and not one.has_effect}
        assert listed.get(scope, set()) == without


def test_what_may_change_is_not_only_read_when_something_is_made() -> None:
    """A value kept since then would make a change without effect."""
    changing = {
        one.name for scope in ("broker", "topic", "group") for one in definitions(scope).values()
        if one.dynamic and one.has_effect
    }  # fmt: skip
    kept = []
    for path in Path(broker.__file__).parent.rglob("*.py"):
        if path.name == "settings.py" or "genuine" in path.parts:
            continue  # a topic's settings are made anew for each change
        for made in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                names = {one.value for one in ast.walk(made) if isinstance(one, ast.Constant)}
                kept += [(path.name, name) for name in names & changing]
    assert kept == []


def test_a_change_without_effect_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with broker.Cluster() as kafka:
        kafka.create_topic("t")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for kind, name, setting, value in (
            ("BROKER", "1", "num.io.threads", "9"), ("TOPIC", "t", "preallocate", "true"),
            ("TOPIC", "t", "retention.ms", "5"),
        ):  # fmt: skip
            entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(kind, name, incremental_configs=[entry])
            admin.incremental_alter_configs([resource])[resource].result(20)
    assert [text for text in caplog.messages if "without effect" in text] == [
        "settings without effect in this broker: num.io.threads",
        "settings without effect in this broker: preallocate",
    ]


def test_settings_without_effect_are_named(caplog: pytest.LogCaptureFixture) -> None:
    broker.Cluster(settings={"num.partitions": 2, "num.io.threads": 4, "log.preallocate": "true"})
    assert caplog.messages == ["settings without effect in this broker: log.preallocate, num.io.threads"]


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("listeners", "PLAINTEXT://:9092", "=PLAINTEXT://:9092 has no effect in this broker: give the cluster"),
        (
            "authorizer.class.name",
            "an.Authorizer",
            "is not supported: leave it out, or use org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ),
        ("transaction.two.phase.commit.enable", True, "has no effect in this broker"),
        (
            "sasl.jaas.config",
            "a secret",
            "sasl.jaas.config has no effect in this broker: give the cluster",
        ),
        ("listener.name.plaintext.sasl.jaas.config", "a secret", "sasl.jaas.config has no effect"),
        ("listener.name.ssl.max.connections", 1, "the only listener's settings begin with listener.name.plaintext."),
        ("create.topic.policy.class.name", "a.Policy", "Class a.Policy could not be found"),
        ("leader.replication.throttled.rate", 1000, "can only be set while brokers run"),
        ("log.retention.ms", 0, "log.retention.ms must be unlimited"),
        (
            "ssl.client.auth",
            "required",
            "ssl.client.auth has no effect: security is PLAINTEXT",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(name: str, given: object, why: str) -> None:
    with pytest.raises(AbeyantError) as caught:
        broker.Cluster(settings={name: given})
    assert why in str(caught.value)
    assert "secret" not in str(caught.value).replace("a.secret", "")


def test_every_refused_setting_can_have_its_default() -> None:
    for found in definitions("broker").values():
        if found.unsupported is not None and found.default is not None and found.name != "listeners":
            assert Settings({found.name: found.default})[found.name] == found.parse(found.default)


def test_clients_are_told_the_rack() -> None:
    with broker.Cluster(settings={"broker.rack": "r1"}) as kafka, WireClient(kafka.bootstrap) as client:
        assert [node.rack for node in client.ask(3, 12, topics=None).brokers] == ["r1"]
        assert [node.rack for node in client.ask(60, 0).brokers] == ["r1"]  # DescribeCluster


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("auto.create.topics.enable", "FALSE", False),
        ("auto.create.topics.enable", True, True),
        ("log.retention.ms", " 5 ", 5),
        ("log.cleaner.min.cleanable.ratio", "0.25", 0.25),
        ("log.cleanup.policy", "compact, delete", ("compact", "delete")),
        ("log.cleanup.policy", ["compact"], ("compact",)),
        ("log.cleanup.policy", "", ()),
        ("broker.rack", "r1", "r1"),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("compression.gzip.level", -1, -1),
    ],
)
def test_types(name: str, given: object, value: object) -> None:
    assert Settings({name: given})[name] == value


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", 1 << 31, "Not a number of type INT"),
        ("num.partitions", "1.5", "Not a number of type INT"),
        ("num.partitions", 0, "Value must be at least 1"),
        ("log.cleaner.min.cleanable.ratio", 1.5, "Value must be no more than 1"),
        ("log.cleaner.min.cleanable.ratio", "much", "Not a number of type DOUBLE"),
        ("compression.gzip.level", 0, "Value must be between 1 and 9 or equal to -1"),
        ("log.cleanup.policy", "burn", "String must be one of: compact, delete"),
        ("group.consumer.migration.policy", "x", "String must be one of (case insensitive): DISABLED, DOWNGRADE"),
    ],
)
def test_values_that_kafka_refuses(name: str, given: object, reason: str) -> None:
    with pytest.raises(AbeyantError) as caught:
        Settings({name: given})

    assert str(caught.value).startswith(f"Invalid value {given} for configuration {name}: {reason}")


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"Unknown broker config name: replica.lag.max.ms; did you mean replica.lag"):
        Settings({"replica.lag.max.ms": 1})
    with pytest.raises(
        ConfigError, match=r"Unknown topic config name: retention; did you mean retention.ms?"
    ) as caught:
        Settings().for_topic({"retention": 1})
    assert caught.value.kafka_message == "Unknown topic config name: retention"
    with pytest.raises(ConfigError, match=r"Unknown broker config name: zzzzz$"):
        Settings()["zzzzz"]


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"log.retention.ms": 5, "log.retention.minutes": 3}, "retention.ms", 5),
        ({"log.retention.minutes": 3, "log.retention.hours": 9}, "retention.ms", 180_000),
        ({"log.retention.hours": 2}, "retention.ms", 7_200_000),
        ({"log.retention.hours": -1}, "retention.ms", -1),
        ({"log.roll.hours": 1}, "segment.ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": 70}, "flush.ms", 70),
        ({"message.max.bytes": 70}, "max.message.bytes", 70),
        ({"log.segment.delete.delay.ms": 70}, "file.delete.delay.ms", 70),
        ({}, "remote.storage.enable", False),
    ],
)
def test_topics_fall_back_on_the_broker(given: dict[str, Any], name: str, value: object) -> None:
    settings = Settings(given)

    assert settings.for_topic({})[name] == value
    (entry,) = settings.for_topic({}).describe([name])
    assert entry.value == str(value).lower()
    own = definitions("topic")[name].fallback in given
    assert entry.source == (STATIC if own else DEFAULT)  # as Kafka, which drops what comes before the name itself


def test_topics_own_settings_come_first() -> None:
    topic = Settings({"log.retention.hours": 2}).for_topic(
        {"retention.ms": 7, "internal.segment.bytes": 100, "cleanup.policy": "compact"}
    )

    assert topic["retention.ms"] == 7
    config = topic.log_config()
    assert (config.retention_ms, config.segment_bytes, config.cleanup_policy) == (7, 100, frozenset({"compact"}))


def test_compaction_lags_that_contradict() -> None:
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(9\) > max.compaction.lag.ms \(8\)"):
        Settings().for_topic({"min.compaction.lag.ms": 9, "max.compaction.lag.ms": 8})


def test_changes_while_running() -> None:
    settings = Settings({"message.max.bytes": 2})
    topic = settings.for_topic({})
    assert topic["max.message.bytes"] == 2

    settings.change(None, {"message.max.bytes": 3})
    settings.change(1, {"message.max.bytes": 4})

    assert (settings["message.max.bytes"], topic["max.message.bytes"]) == (3, 3)
    assert [settings.value("message.max.bytes", broker) for broker in (1, 2)] == [4, 3]
    assert [topic.value("max.message.bytes", broker) for broker in (1, 2)] == [4, 3]
    assert [topic.log_config(broker).max_message_bytes for broker in (1, 2)] == [4, 3]
    assert settings.dynamic(1) == {"message.max.bytes": "4"}
    (entry,) = settings.describe(1, ["message.max.bytes"])
    assert [place.source for place in entry.synonyms] == [BROKER, ALL_BROKERS, STATIC, DEFAULT]
    assert (entry.value, entry.source) == ("4", BROKER)
    assert [one.name for one in settings.describe(None)] == ["message.max.bytes"]
    settings.change(None, {})
    settings.change(1, {})
    assert (settings["message.max.bytes"], settings.value("message.max.bytes", 1)) == (2, 2)
    with pytest.raises(ConfigError, match=r"Cannot update these configs dynamically: \[num.partitions\]"):
        settings.change(None, {"num.partitions": 3})


def test_described_as_kafka_does() -> None:
    """Kafka 4.3.1's own answers for a topic without settings, and for a broker's."""
    topic = Settings().for_topic({"cleanup.policy": "compact"})

    found = {entry.name: entry for entry in topic.describe()}
    assert len(found) == 33
    assert [place[:] for place in found["cleanup.policy"].synonyms] == [
        ("cleanup.policy", "compact", TOPIC),
        ("log.cleanup.policy", "delete", DEFAULT),
    ]
    entry = found["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms, entry.type) == ("604800000", DEFAULT, (), 5)
    entry = found["min.cleanable.dirty.ratio"]
    assert (entry.value, entry.type, entry.read_only) == ("0.5", 6, False)
    assert [entry.name for entry in topic.describe(["retention.ms", "nonsense"])] == ["retention.ms"]
    secret, port = Settings({"ssl.key.password": "x"}).describe(1, ["ssl.key.password", "num.partitions"])[::-1]
    assert (secret.value, secret.sensitive, secret.synonyms[0].value) == (None, True, None)
    assert (port.value, port.read_only, port.type) == ("1", True, 3)


OVERRIDES = ("x" * 64 + ":1", "a\0b:1", "..:1", "127.0.0.1:" + "9" * 5000, "127.0.0.1:+-5", "127.0.0.1:\u0661")


def altered(kafka: Cluster, kind: int, resource: str, name: str, value: str) -> str:
    """Set a setting as an admin client does; return the error."""
    host, _, port = kafka.bootstrap.rpartition(":")
    config = {"name": name, "config_operation": 0, "value": value}
    body = {"resources": [{"resource_type": kind, "resource_name": resource, "configs": [config]}]}
    with Connection(host, int(port), "admin") as admin:
        [row] = admin.ask("IncrementalAlterConfigs", 1, {**body, "validate_only": False})["responses"]
    return str(row["error_code"])


@pytest.mark.parametrize("value", OVERRIDES, ids=range(len(OVERRIDES)))
def test_limits_of_what_can_be_no_host_or_no_number_are_refused(value: str) -> None:
    """At the start, and while brokers run: Python's resolver and int() raise errors of several kinds for them."""
    name = "max.connections.per.ip.overrides"
    with pytest.raises(AbeyantError, match=re.escape(name)):
        Cluster(settings={name: value}).open()
    with Cluster() as kafka:
        assert altered(kafka, 4, "1", name, value) == "INVALID_REQUEST"


DURATIONS = {
    "PT1H": 3_600_000, "pt1.5s": 1500, "P1DT2H3M4.0056S": 93_784_005,
    "PT2562047788015215H": 9_223_372_036_854_774_000_000,
    "PT2562047788015216H": None, "P106751991167301D": None, "PT" + "9" * 400 + "H": None, "PT" + "9" * 5000 + "S": None,
    "PT\u0661H": None, "PT1.2.3S": None, "PT.5S": None, "P": None, "PT": None, "P1H": None, "-PT1H": None,
}  # fmt: skip


def test_durations_are_those_that_java_can_have() -> None:
    assert {text: duration_ms(text) for text in DURATIONS} == DURATIONS
    with Cluster() as kafka:
        for text, found in DURATIONS.items():
            error = altered(kafka, 32, "group", "share.auto.offset.reset", f"by_duration:{text}")
            assert error == ("INVALID_CONFIG" if found is None else "NONE"), text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("0.5", 0.5), (" .5 ", 0.5), ("5e-1f", 0.5), ("1.", 1.0), ("1D", 1.0), ("1_0", None), ("inf", None), ("nan", None),
     ("\u0661", None), ("", None), ("1e", None), ("e1", None), ("1ff", None)],
)  # fmt: skip
def test_numbers_are_written_as_in_java_and_not_as_in_python(text: str, wanted: float | None) -> None:
    ratio = definitions("topic")["min.cleanable.dirty.ratio"]
    if wanted is None:
        with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
            ratio.parse(text)
    else:
        assert ratio.parse(text) == wanted
