"""Settings that change while brokers run: which may, at which level, what is refused, how each is read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from abeyant.broker.definitions import Definition, definitions

from ..bodies import produce
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table
from .configs import BROKER, DELETE, SET, SUBTRACT, TOPIC, described, stepwise

API = "IncrementalAlterConfigs"
_DEFAULT = 5  # a source of DescribeConfigs
LISTENER = "listener.name.plaintext."
# What depends on how the cluster was set up: where it listens, how many threads it began with.
_SET_UP = {
    "advertised.listeners", "cordoned.log.dirs", "group.initial.rebalance.delay.ms",
    "group.streams.initial.rebalance.delay.ms", "listener.security.protocol.map", "listeners", "log.dirs",
    "num.io.threads", "num.network.threads",
}  # fmt: skip
# Ours has 0 by default, so that tests need not wait: the default is not compared.
_OUR_DEFAULT = {f"group.{kind}.assignment.interval.ms" for kind in ("consumer", "share", "streams")}
# Kafka passes its authorizer's settings on, and does not define them.
_OF_AUTHORIZER = {"allow.everyone.if.no.acl.found", "super.users"}
BROKERS = {name: found for name, found in definitions("broker").items() if name not in _SET_UP | _OF_AUTHORIZER}
_OF_TYPES = {
    "boolean": "true", "string": "text", "int": "5", "short": "5", "long": "5", "double": "0.5", "list": "text",
    "class": "a.Class", "password": "secret",
}  # fmt: skip


@scenario()
def every_setting_of_a_broker(stage: Stage) -> None:
    """Its type, its default, whether it may change and whether it is secret."""
    rows = stage.do("DescribeConfigs", described(BROKER, "1", None, synonyms=True))["results"][0]["configs"]
    for row in sorted(rows, key=lambda row: str(row["name"])):
        if row["name"] not in _SET_UP:
            defaults = [one for one in row["synonyms"] if one["source"] == _DEFAULT]
            stage.note(str(row["name"]), short(row | {"value": None, "config_source": _DEFAULT, "synonyms": defaults}))


def value_for(found: Definition) -> str:
    """A value that it may have."""
    return _OF_TYPES[found.type] if found.default in (None, "") else str(found.default)


@scenario()
def every_setting_at_each_level(stage: Stage) -> None:
    """Of one broker and of all, by its own name; those that may change also by a listener's."""
    for name, found in sorted(BROKERS.items()):
        if name in ("max.connections.per.ip.overrides", "ssl.engine.factory.class"):
            continue  # they take no text of this kind
        names = [name] if found.change in ("fixed", "internal") else [name, LISTENER + name]
        answers: list[Plain] = []
        for one in names:
            for broker in ("1", ""):
                step = (SET, one, value_for(found))
                said = stage.do(API, stepwise(BROKER, broker, step, validate_only=True))["responses"][0]
                answers.append([one, broker, said["error_code"], said["error_message"]])
        stage.note(name, answers)


# An index of less than one entry would break a topic of a coordinator that rolls meanwhile, and it stays broken.
_LOGS = {
    "compression.gzip.level": ("1", "2"), "compression.lz4.level": ("1", "2"), "compression.type": ("gzip", "zstd"),
    "compression.zstd.level": ("1", "2"), "log.cleaner.delete.retention.ms": ("1", "2"),
    "log.cleaner.max.compaction.lag.ms": ("10", "20"), "log.cleaner.min.cleanable.ratio": ("0.1", " 1 "),
    "log.cleaner.min.compaction.lag.ms": ("1", "2"), "log.cleanup.policy": ("compact", " delete , compact"),
    "log.flush.interval.messages": ("11", "12"), "log.flush.interval.ms": ("11", "12"),
    "log.index.interval.bytes": ("11", "12"), "log.index.size.max.bytes": ("1011", "1012"),
    "log.local.retention.bytes": ("11", "12"), "log.local.retention.ms": ("11", "12"),
    "log.message.timestamp.after.max.ms": ("11", "12"), "log.message.timestamp.before.max.ms": ("11", "12"),
    "log.message.timestamp.type": ("LogAppendTime", "CreateTime"), "log.preallocate": ("TRUE", "False"),
    "log.retention.bytes": ("100", "200"), "log.retention.ms": ("1000", "2000"), "log.roll.jitter.ms": ("11", "12"),
    "log.roll.ms": ("1000", "2000"), "log.segment.bytes": ("1048577", "1048578"),
    "log.segment.delete.delay.ms": ("1000", "2000"), "message.max.bytes": (" 3000000 ", "2000000"),
    "unclean.leader.election.enable": ("true", "FALSE"),
}  # fmt: skip
_CLEANER = {
    "log.cleaner.backoff.ms": ("1000", "2000"), "log.cleaner.dedupe.buffer.size": ("2097152", "3145728"),
    "log.cleaner.io.buffer.load.factor": ("1", "0.25"), "log.cleaner.io.buffer.size": ("1000", "2000"),
    "log.cleaner.io.max.bytes.per.second": ("1000", "1e7"), "log.cleaner.threads": ("1", "2"),
}  # fmt: skip
_THREADS = {
    "background.threads": ("11", "12"), "num.recovery.threads.per.data.dir": ("3", "4"),
    "remote.log.manager.copier.thread.pool.size": ("11", "12"),
    "remote.log.manager.expiration.thread.pool.size": ("11", "12"),
    "remote.log.manager.follower.thread.pool.size": ("3", "4"), "remote.log.reader.threads": ("11", "12"),
}  # fmt: skip
_CONNECTIONS = {
    "max.connection.creation.rate": ("1000", "2000"), "max.connections": ("1000", "2000"),
    "max.connections.per.ip": ("1000", "2000"), "max.connections.per.ip.overrides": ("10.0.0.1:5", "10.0.0.1:6"),
    LISTENER + "max.connections": ("1000", " 2000 "), LISTENER + "max.connection.creation.rate": ("1000", "2000"),
}  # fmt: skip
_COORDINATORS = {
    "group.consumer.assignment.interval.ms": ("11", "12"), "group.share.assignment.interval.ms": ("11", "12"),
    "group.streams.assignment.interval.ms": ("11", "12"),
    "group.coordinator.cached.buffer.max.bytes": ("600000", "700000"),
    "share.coordinator.cached.buffer.max.bytes": ("600000", "700000"), "producer.id.expiration.ms": ("86400001",) * 2,
    "transaction.partition.verification.enable": ("true", "TRUE"),
}  # fmt: skip
_REMOTE = {
    "follower.fetch.last.tiered.offset.enable": ("true", "false"), "remote.fetch.max.wait.ms": ("11", "12"),
    "remote.list.offsets.request.timeout.ms": ("11", "12"),
    "remote.log.index.file.cache.total.size.bytes": ("11", "12"),
    "remote.log.manager.copy.max.bytes.per.second": ("11", "12"),
    "remote.log.manager.fetch.max.bytes.per.second": ("11", "12"),
}  # fmt: skip
_QUOTAS = {
    "follower.replication.throttled.rate": ("1000000", " 2000000 "),
    "leader.replication.throttled.rate": ("1000000", "2000000"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("1000000", "2000000"),
}
_REPORTERS = {"metric.reporters": ("", ""), "config.providers": ("file", "file,other")}


@table(
    logs=(_LOGS,), cleaner=(_CLEANER,), threads=(_THREADS,), connections=(_CONNECTIONS,),
    coordinators=(_COORDINATORS,), remote=(_REMOTE,), quotas=(_QUOTAS,), reporters=(_REPORTERS,),
)  # fmt: skip
def set_for_all_brokers_and_for_one(stage: Stage, values: Mapping[str, tuple[str, str]]) -> None:
    """The broker's own comes first, on that broker; topics have it there."""
    topic = stage.topic()
    with changed(stage, "", {name: for_all for name, (for_all, _) in values.items()}):
        shown(stage, topic, values, "of all brokers")
        with changed(stage, "1", {name: for_one for name, (_, for_one) in values.items()}):
            shown(stage, topic, values, "of all brokers, and of broker 1")
        shown(stage, topic, values, "of all brokers again")
    shown(stage, topic, values, "of none")


@contextmanager
def changed(stage: Stage, broker: str, values: Mapping[str, str]) -> Iterator[None]:
    """Set these for a broker, or for all, until the block ends. Written down are the answers."""
    stage.ask(API, stepwise(BROKER, broker, *((SET, name, text) for name, text in values.items())))
    known(stage, broker, values)
    try:
        yield
    finally:
        stage.ask(API, stepwise(BROKER, broker, *((DELETE, name, None) for name in values)))
        known(stage, broker, dict.fromkeys(values))


def known(stage: Stage, broker: str, values: Mapping[str, str | None]) -> None:
    """Wait until a broker, or with "" all of them, know of these changes; with None, of none of that name any more."""
    for to in (int(broker),) if broker else (1, 2, 3):
        stage.until(partial(has, stage, broker, values, to), "the change")


def has(stage: Stage, broker: str, values: Mapping[str, str | None], to: int) -> bool:
    """Whether a broker knows of all these changes; with None, of none of that name."""
    source = 2 if broker else 3
    said = stage.do("DescribeConfigs", described(BROKER, str(to), list(values), synonyms=True), to=to)
    there = {
        row["name"]: one["value"] for row in said["results"][0]["configs"] for one in row["synonyms"]
        if one["source"] == source and one["name"] == row["name"]
    }  # fmt: skip
    if None in values.values():
        return not there
    return all(there.get(name, "") in (text, None) for name, text in values.items()) and len(there) == len(values)


def shown(stage: Stage, topic: Topic, values: Mapping[str, object], what: str) -> None:
    """Write down what is read back: from the broker, from all, and from the topic on two brokers."""
    for kind, name, to in ((BROKER, "1", 1), (BROKER, "", 1), (TOPIC, topic.name, 1), (TOPIC, topic.name, 2)):
        names = of_topics(values) if kind == TOPIC else list(values)
        if kind == BROKER or names:
            said = stage.do("DescribeConfigs", described(kind, name, names, synonyms=True), to=to)
            for row in sorted(said["results"][0]["configs"], key=lambda row: str(row["name"])):
                where = f"{row['name']} of {'the topic' if kind == TOPIC else name or 'all'}, on broker {to}"
                stage.note(f"{what}: {where}", short(row))


def short(row: Mapping[str, Plain]) -> list[Plain]:
    """What is described of a setting, in less room."""
    kind = ["read-only" if row["read_only"] else "dynamic", "secret" if row["is_sensitive"] else "shown"]
    synonyms = [[one["name"], one["value"], one["source"]] for one in row["synonyms"]]
    value = row["value"]
    if row["name"] in _OUR_DEFAULT:
        synonyms = [one for one in synonyms if one[2] != _DEFAULT]
        value = None if row["config_source"] == _DEFAULT else value
    return [value, row["config_source"], row["config_type"], *kind, *synonyms]


def of_topics(values: Mapping[str, object]) -> list[str]:
    """The settings of topics that fall back on these."""
    return [one.name for one in definitions("topic").values() if one.fallback in values]


_OF_LISTENERS = {
    LISTENER + "ssl.keystore.location": "/a/file", LISTENER + "ssl.keystore.password": "secret",
    LISTENER + "ssl.keystore.type": "PEM", LISTENER + "ssl.truststore.location": "/a/file",
    LISTENER + "ssl.client.auth": "required", LISTENER + "scram-sha-256.sasl.jaas.config": "secret",
    LISTENER + "sasl.enabled.mechanisms": " PLAIN , SCRAM-SHA-256", "listener.name.other.ssl.key.password": "secret",
    LISTENER + "num.partitions": "5",
}  # fmt: skip
_OF_ONE_BROKER = {
    "sasl.jaas.config": "secret", "sasl.enabled.mechanisms": "PLAIN, SCRAM-SHA-256",
    "ssl.client.auth": "requested", "sasl.login.refresh.window.jitter": "0.1", "sasl.kerberos.kinit.cmd": "/bin/kinit",
}  # fmt: skip


@table(listeners=(_OF_LISTENERS,), one_broker=(_OF_ONE_BROKER,))
def set_for_one_broker(stage: Stage, values: Mapping[str, str]) -> None:
    """What all brokers cannot have."""
    topic = stage.topic()
    with changed(stage, "1", values):
        shown(stage, topic, values, "set")
    shown(stage, topic, values, "not set")


@scenario()
def topic_comes_before_brokers(stage: Stage) -> None:
    topic = stage.topic(config={"retention.ms": " 5000 ", "cleanup.policy": "delete,delete", "preallocate": "TRUE"})
    values = {"log.retention.ms": "1000", "log.cleanup.policy": "compact", "log.preallocate": "false"}
    with changed(stage, "", values):
        shown(stage, topic, values, "set")


@scenario()
def list_of_a_topic_begins_with_kafkas_default(stage: Stage) -> None:
    """And not with what brokers have."""
    topic = stage.topic()
    with changed(stage, "", {"log.cleanup.policy": "compact"}):
        stage.ask(API, stepwise(TOPIC, topic.name, (SUBTRACT, "cleanup.policy", "delete")))
        for to in (1, 2):
            stage.until(partial(is_own, stage, topic, "cleanup.policy", to), "the change")
        shown(stage, topic, {"log.cleanup.policy": ""}, "with nothing left")


def is_own(stage: Stage, topic: Topic, name: str, to: int) -> bool:
    """Return whether a broker knows that the topic has a setting of its own."""
    said = stage.do("DescribeConfigs", described(TOPIC, topic.name, [name]), to=to)
    return bool(said["results"][0]["configs"][0]["config_source"] == 1)


@scenario()
def setting_of_one_broker_takes_effect(stage: Stage) -> None:
    """On the topics that it leads, before that of all brokers; those of others have that one."""
    here, there = stage.topic("here"), stage.topic("there", replicas=(2, 3, 1))
    large = Batch((b"v" * 3000,), at=stage.base_time)
    with changed(stage, "", {"message.max.bytes": "1000", "log.message.timestamp.type": "LogAppendTime"}):
        stage.ask("Produce", produce(here, large))
        with changed(stage, "1", {"message.max.bytes": "5000", "log.message.timestamp.type": "CreateTime"}):
            stage.ask("Produce", produce(here, large))
            stage.ask("Produce", produce(there, large), to=2)
        stage.ask("Produce", produce(here, large))
    stage.ask("Produce", produce(there, large), to=2)


@scenario()
def other_broker_has_its_own(stage: Stage) -> None:
    """A broker knows of its own changes, and of those of all."""
    topic = stage.topic()
    stage.do(API, stepwise(BROKER, "2", (SET, "message.max.bytes", "2000000")), to=2)
    known(stage, "2", {"message.max.bytes": "2000000"})
    shown(stage, topic, {"message.max.bytes": ""}, "of broker 2")
    stage.do(API, stepwise(BROKER, "2", (DELETE, "message.max.bytes", None)), to=2)
    known(stage, "2", {"message.max.bytes": None})


@table(at_broker=("1",), at_all=("",))
def all_anew(stage: Stage, broker: str) -> None:
    """AlterConfigs: what is not named is gone. min.insync.replicas has to stay where all brokers have it."""
    keep = {} if broker else {"min.insync.replicas": "1"}
    for name, text in (
        ("message.max.bytes", "2000000"), ("log.retention.ms", "5000"), ("num.partitions", "5"),
        ("log.retention.ms", "soon"), ("message.max.bytes", None),
    ):  # fmt: skip
        rows = [{"name": key, "value": value} for key, value in {name: text, **keep}.items()]
        resource = {"resource_type": BROKER, "resource_name": broker, "configs": rows}
        said = stage.ask("AlterConfigs", {"resources": [resource]})
        if said["responses"][0]["error_code"] == "NONE":
            known(stage, broker, {name: text})
    kept = [{"name": key, "value": value} for key, value in keep.items()]
    resource = {"resource_type": BROKER, "resource_name": broker, "configs": kept}
    stage.ask("AlterConfigs", {"resources": [resource]})
    known(stage, broker, {"log.retention.ms": None})
    shown(stage, stage.topic(), {"message.max.bytes": "", "log.retention.ms": ""}, "in the end")


@table(
    "IncrementalAlterConfigs",
    at=(1,),
    of_one_broker=("1", (SET, "min.insync.replicas", "1")),
    of_one_broker_only_deleted=("1", (DELETE, "min.insync.replicas", None)),
    of_all_brokers_deleted=("", (DELETE, "min.insync.replicas", None)),
    of_all_brokers_set_as_it_is=("", (SET, "min.insync.replicas", "1")),
    of_all_brokers_too_low=("", (SET, "min.insync.replicas", "0")),
)
def least_number_in_sync(stage: Stage, broker: str, step: tuple[int, str, str | None]) -> None:
    """All brokers have one, since leaders are elected by it (KIP-966)."""
    stage.ask(API, stepwise(BROKER, broker, step))
    stage.ask("DescribeConfigs", described(BROKER, "1", ["min.insync.replicas"], synonyms=True))
    stage.ask("DescribeConfigs", described(BROKER, "", ["min.insync.replicas"], synonyms=True))


@scenario()
def least_number_in_sync_of_all_brokers(stage: Stage) -> None:
    topic = stage.topic()
    stage.ask(API, stepwise(BROKER, "", (SET, "min.insync.replicas", "2")))
    known(stage, "", {"min.insync.replicas": "2"})
    shown(stage, topic, {"min.insync.replicas": ""}, "2")
    stage.ask(API, stepwise(BROKER, "", (SET, "min.insync.replicas", "1")))
    known(stage, "", {"min.insync.replicas": "1"})


_REFUSED = {
    "background.threads": ("4", "21", "0"), "num.recovery.threads.per.data.dir": ("5",), "num.replica.fetchers": ("3",),
    "remote.log.manager.copier.thread.pool.size": ("4", "21", "0"), "remote.log.reader.threads": ("4", "21"),
    "remote.log.manager.expiration.thread.pool.size": ("4", "21"),
    "remote.log.manager.follower.thread.pool.size": ("5", "0"), "log.cleaner.threads": ("-1",),
    "log.cleaner.dedupe.buffer.size": ("5", "1048576", "-1"), "log.cleaner.backoff.ms": ("-1",),
    "log.cleaner.io.buffer.size": ("-1",), "log.cleaner.min.cleanable.ratio": ("2", "-0.5", "x"),
    "max.connections.per.ip": ("0", "-1"), "max.connections.per.ip.overrides": ("10.0.0.1:x", "10.0.0.1", "a:1,b"),
    "max.connections": ("0", "-1", "x"), "max.connection.creation.rate": ("0", "-1"),
    "message.max.bytes": ("x", "-1", "", "2147483648", "1.5"), "log.retention.ms": ("0", "", "x"),
    "log.local.retention.ms": ("604800001", "-1", "-3"), "log.local.retention.bytes": ("-3",),
    "log.cleanup.policy": ("x", "compact,x"), "log.message.timestamp.type": ("x", "createtime"),
    "compression.type": ("x", "none", "GZIP"), "compression.gzip.level": ("0", "10", "-2"),
    "compression.lz4.level": ("0", "18"), "compression.zstd.level": ("23",), "log.preallocate": ("yes", ""),
    "log.roll.ms": ("0", "-1"), "log.roll.jitter.ms": ("-1",), "log.flush.interval.messages": ("0",),
    "log.segment.bytes": ("1048575",), "log.segment.delete.delay.ms": ("-1",), "log.index.size.max.bytes": ("3",),
    "log.index.interval.bytes": ("-1",), "log.message.timestamp.after.max.ms": ("-1",),
    "log.cleaner.delete.retention.ms": ("-1",), "log.cleaner.min.compaction.lag.ms": ("-1",),
    "log.cleaner.max.compaction.lag.ms": ("0",), "unclean.leader.election.enable": ("1",),
    "leader.replication.throttled.rate": ("-1", "x", ""), "follower.replication.throttled.rate": ("-1", "1.5"),
    "replica.alter.log.dirs.io.max.bytes.per.second": ("-1",), "producer.id.expiration.ms": ("0",),
    "transaction.partition.verification.enable": ("maybe",), "remote.fetch.max.wait.ms": ("0",),
    "remote.list.offsets.request.timeout.ms": ("0",), "remote.log.index.file.cache.total.size.bytes": ("0",),
    "remote.log.manager.copy.max.bytes.per.second": ("0",), "remote.log.manager.fetch.max.bytes.per.second": ("0",),
    "group.consumer.assignment.interval.ms": ("-1", "15001"), "group.share.assignment.interval.ms": ("-1", "15001"),
    "group.streams.assignment.interval.ms": ("-1", "15001"), "group.coordinator.cached.buffer.max.bytes": ("524287",),
    "share.coordinator.cached.buffer.max.bytes": ("524287",), "metric.reporters": ("a.Class",),
    "principal.builder.class": ("a.Class", ""), "ssl.engine.factory.class": ("a.Class", ""),
    "ssl.client.auth": ("x", "REQUIRED"), "ssl.keystore.location": ("/a/file",), "ssl.truststore.type": ("PEM",),
    "listener.security.protocol.map": ("x",), "cordoned.log.dirs": ("/no/such",), "num.partitions": ("5", "x"),
    "advertised.listeners": ("PLAINTEXT://10.0.0.1:9092",), "broker.id": ("1",), "node.id": ("2",),
    LISTENER + "max.connections": ("x", "-1"), LISTENER + "ssl.client.auth": ("x", "REQUIRED"),
    "producer.id.expiration.check.interval.ms": ("5",),
}  # fmt: skip


@table(None, at=None, **{name: (name, values) for name, values in _REFUSED.items() if values})
def value_refused(stage: Stage, name: str, values: tuple[str, ...]) -> None:
    """By one broker and by all."""
    for text in values:
        for broker in ("1", ""):
            said = stage.do(API, stepwise(BROKER, broker, (SET, name, text), validate_only=True))["responses"][0]
            stage.note(f"{name}={text} of {broker or 'all'}", [said["error_code"], said["error_message"]])


@table(
    two_that_are_fixed=("1", ((SET, "num.partitions", "1"),)),
    fixed_and_of_listeners=("1", ((SET, "ssl.keystore.location", "/x"), (SET, "num.partitions", "1"))),
    of_listeners_and_wrong=("1", ((SET, "message.max.bytes", "x"), (SET, "ssl.keystore.location", "/x"))),
    wrong_and_of_one_broker=("", ((SET, "message.max.bytes", "x"), (SET, "ssl.client.auth", "none"))),
    one_right_and_one_wrong=("1", ((SET, "message.max.bytes", "5"), (SET, "log.roll.ms", "0"))),
    deleted_that_is_fixed=("1", ((DELETE, "num.partitions", None),)),
    deleted_that_nobody_knows=("1", ((DELETE, "no.such.setting", None),)),
    appended_to_no_list=("1", ((2, "message.max.bytes", "5"),)),
    subtracted_from_no_list=("1", ((SUBTRACT, "message.max.bytes", "5"),)),
    appended_to_what_nobody_knows=("1", ((2, "no.such.setting", "5"),)),
    operation_that_does_not_exist=("1", ((9, "message.max.bytes", "5"),)),
    of_a_broker_below_zero=("-1", ((SET, "message.max.bytes", "5"),)),
    of_another_broker=("2", ((SET, "message.max.bytes", "5"),)),
)
def changes_refused(stage: Stage, broker: str, steps: tuple[tuple[int, str, str | None], ...]) -> None:
    stage.ask(API, stepwise(BROKER, broker, *steps, validate_only=True))


_BOTH = {
    "ssl.keystore.type": "PKCS12", "ssl.client.auth": "none", "sasl.enabled.mechanisms": "PLAIN",
    "ssl.truststore.location": "/a/file", "max.connections": "1000", "max.connection.creation.rate": "1000",
    "num.network.threads": "3", "num.partitions": "1", "message.max.bytes": "1000000",
    "ssl.keystore.password": "secret", "connections.max.reauth.ms": "5", "max.connections.per.ip": "1000",
}  # fmt: skip


@table(None, at=None, **{name: (name, text) for name, text in _BOTH.items()})
def for_one_listener_and_for_all(stage: Stage, name: str, text: str) -> None:
    """In one request, in either order, and each beside another setting, or one of another listener."""
    own, plain, other = (SET, LISTENER + name, text), (SET, name, text), (SET, "message.max.bytes", "2000000")
    second = (SET, "listener.name.other." + name, text)
    quite_other = (SET, LISTENER + "num.partitions", "5")
    for steps in (
        (own, plain), (plain, own), (own, other), (plain, second), (own, second), (own, plain, other),
        (plain, quite_other),
    ):  # fmt: skip
        if len({step[1] for step in steps}) == len(steps):
            stage.ask(API, stepwise(BROKER, "1", *steps, validate_only=True))


@scenario()
def for_all_listeners_once_one_has_its_own(stage: Stage) -> None:
    """None may change for all of them but those that count connections, until the listener's own is gone."""
    own, plain = LISTENER + "ssl.client.auth", "ssl.client.auth"
    with changed(stage, "1", {own: "none"}):
        for steps in (
            ((SET, plain, "none"),), ((SET, plain, "none"), (SET, own, "none")),
            ((SET, plain, "none"), (SET, own, "required")),
            ((SET, plain, "none"), (DELETE, own, None)), ((DELETE, plain, None), (DELETE, own, None)),
        ):  # fmt: skip
            stage.ask(API, stepwise(BROKER, "1", *steps, validate_only=True))


@scenario()
def list_of_brokers_appended_to_and_subtracted_from(stage: Stage) -> None:
    """From what was set, else from Kafka's default."""
    name = "log.cleanup.policy"
    for operation, text, after in ((2, "compact", "delete,compact"), (SUBTRACT, "delete", "compact")):
        stage.ask(API, stepwise(BROKER, "1", (operation, name, text)))
        known(stage, "1", {name: after})
        stage.ask("DescribeConfigs", described(BROKER, "1", [name], synonyms=True))
    stage.ask(API, stepwise(BROKER, "1", (DELETE, name, None)))
    known(stage, "1", {name: None})


_TOPIC_REFUSED = {
    "remote.storage.enable": "true", "leader.replication.throttled.replicas": "x", "compression.gzip.level": "0",
    "follower.replication.throttled.replicas": "0:1,x", "cleanup.policy": "compact,x", "retention.ms": "-2",
    "local.retention.ms": "-3", "max.compaction.lag.ms": "0", "message.timestamp.type": "x", "segment.bytes": "5",
    "min.cleanable.dirty.ratio": "1.1", "min.insync.replicas": "0", "preallocate": "maybe", "segment.ms": "0",
    "segment.jitter.ms": "-1", "flush.messages": "0", "index.interval.bytes": "2147483648", "file.delete.delay.ms": "",
}  # fmt: skip


@table(None, at=None, **{name: (name, text) for name, text in _TOPIC_REFUSED.items()})
def value_of_a_topic_refused(stage: Stage, name: str, text: str) -> None:
    stage.ask(API, stepwise(TOPIC, stage.topic().name, (SET, name, text)))
    row = {"name": stage.name("new"), "num_partitions": 1, "replication_factor": 1, "assignments": []}
    body = {"topics": [row | {"configs": [{"name": name, "value": text}]}], "timeout": 10_000, "validate_only": True}
    stage.ask("CreateTopics", body)


@scenario()
def every_setting_of_a_topic(stage: Stage) -> None:
    """Set to what it is anyway, each is the topic's own, before that of the broker."""
    topic = stage.topic()
    values = {one.name: one.default or "" for one in definitions("topic").values() if not one.hidden}
    stage.ask(API, stepwise(TOPIC, topic.name, *((SET, name, text) for name, text in values.items())))
    stage.until(lambda: all(is_own(stage, topic, name, 1) for name in values), "the change")
    rows = stage.do("DescribeConfigs", described(TOPIC, topic.name, None, synonyms=True))["results"][0]["configs"]
    for row in sorted(rows, key=lambda row: str(row["name"])):
        stage.note(str(row["name"]), short(row))


@table(no_name=("",), name_that_cannot_be=("a/b",))
def of_a_topic_that_cannot_be(stage: Stage, name: str) -> None:
    stage.ask(API, stepwise(TOPIC, name, (SET, "retention.ms", "5")))


@scenario()
def of_a_kind_that_does_not_exist(stage: Stage) -> None:
    stage.ask(API, stepwise(3, "x", (SET, "retention.ms", "5")))
