"""Settings of groups: described, altered, refused, listed, obeyed by groups of the new protocol."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..bodies import settings
from ..grouped import Group
from ..messages import Plain
from ..scenario import Stage, scenario, table
from .configs import APPEND, DELETE, SET, described, stepwise
from .consumer_groups import beat, epoch, joined

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
LIMITS = "group.consumer.min.heartbeat.interval.ms"


@scenario("DescribeConfigs")
def of_a_group(stage: Stage) -> None:
    """Also of one that nobody has heard of."""
    stage.ask("DescribeConfigs", described(GROUP, stage.name("group"), None, synonyms=True))


@scenario("DescribeConfigs", at=(4,))
def some_of_a_group(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(GROUP, stage.name("group"), [SESSION, "no.such.setting", LIMITS]))


@scenario("DescribeConfigs", at=(1, 4))
def of_a_group_without_a_name(stage: Stage) -> None:
    stage.ask("DescribeConfigs", described(GROUP, "", None))


def now(stage: Stage, group: str, *keys: str) -> None:
    """Write down what a group's settings are."""
    said = stage.do("DescribeConfigs", described(GROUP, group, list(keys), synonyms=True))
    stage.note("now", said["results"][0]["configs"])


def value(stage: Stage, group: str, key: str) -> Plain:
    said = stage.do("DescribeConfigs", described(GROUP, group, [key]))
    return said["results"][0]["configs"][0]["value"]


@scenario("IncrementalAlterConfigs")
def set_and_deleted(stage: Stage) -> None:
    group = stage.name("group")
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "50000"), (SET, HEARTBEAT, "7000")))
    stage.until(lambda: value(stage, group, SESSION) == "50000", "the new setting")
    now(stage, group, SESSION, HEARTBEAT)
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (DELETE, SESSION, None)))
    stage.until(lambda: value(stage, group, SESSION) != "50000", "the default")
    now(stage, group, SESSION, HEARTBEAT)


@scenario("IncrementalAlterConfigs")
def only_validated(stage: Stage) -> None:
    group = stage.name("group")
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "50000"), validate_only=True))
    now(stage, group, SESSION)


@scenario("AlterConfigs")
def all_at_once(stage: Stage) -> None:
    """What is not named falls back to its default."""
    group = stage.name("group")
    stage.do("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "50000")))
    stage.until(lambda: value(stage, group, SESSION) == "50000", "the new setting")
    row = {"resource_type": GROUP, "resource_name": group, "configs": settings(consumer_heartbeat_interval_ms="7000")}
    stage.ask("AlterConfigs", {"resources": [row]})
    stage.until(lambda: value(stage, group, HEARTBEAT) == "7000", "the new setting")
    now(stage, group, SESSION, HEARTBEAT)


_ROWS: Mapping[str, tuple[int, str, str | None]] = {
    "session_too_short": (SET, SESSION, "100"),
    "session_too_long": (SET, SESSION, "100000"),
    "session_of_nothing": (SET, SESSION, "0"),
    "session_no_number": (SET, SESSION, "long"),
    "session_as_short_as_the_heartbeat": (SET, SESSION, "5000"),
    "heartbeat_too_short": (SET, HEARTBEAT, "10"),
    "heartbeat_too_long": (SET, HEARTBEAT, "20000"),
    "assignment_too_long": (SET, "consumer.assignment.interval.ms", "100000"),
    "unknown": (SET, "no.such.setting", "1"),
    "deleted_unknown": (DELETE, "no.such.setting", None),
    "null": (SET, SESSION, None),
    "appended_to_what_is_no_list": (APPEND, SESSION, "1"),
    "of_a_broker": (SET, LIMITS, "5000"),
    "share_session_too_short": (SET, "share.session.timeout.ms", "100"),
    "share_session_too_long": (SET, "share.session.timeout.ms", "100000"),
    "share_heartbeat_too_short": (SET, "share.heartbeat.interval.ms", "10"),
    "share_heartbeat_too_long": (SET, "share.heartbeat.interval.ms", "20000"),
    "share_assignment_too_long": (SET, "share.assignment.interval.ms", "100000"),
    "share_lock_too_short": (SET, "share.record.lock.duration.ms", "1000"),
    "share_lock_too_long": (SET, "share.record.lock.duration.ms", "100000"),
    "share_deliveries_too_few": (SET, "share.delivery.count.limit", "1"),
    "share_deliveries_too_many": (SET, "share.delivery.count.limit", "11"),
    "share_locks_too_few": (SET, "share.partition.max.record.locks", "10"),
    "share_locks_too_many": (SET, "share.partition.max.record.locks", "10000"),
    "share_isolation_unknown": (SET, "share.isolation.level", "none"),
    "share_isolation": (SET, "share.isolation.level", "read_committed"),
    "share_renew_no_boolean": (SET, "share.renew.acknowledge.enable", "maybe"),
    "share_offset_reset_unknown": (SET, "share.auto.offset.reset", "middle"),
    "share_offset_reset_earliest": (SET, "share.auto.offset.reset", "earliest"),
    "share_offset_reset_by_duration": (SET, "share.auto.offset.reset", "by_duration:PT1H"),
    "share_offset_reset_by_no_duration": (SET, "share.auto.offset.reset", "by_duration:an hour"),
    "streams_session_too_short": (SET, "streams.session.timeout.ms", "100"),
    "streams_session_too_long": (SET, "streams.session.timeout.ms", "100000"),
    "streams_heartbeat_too_short": (SET, "streams.heartbeat.interval.ms", "10"),
    "streams_heartbeat_too_long": (SET, "streams.heartbeat.interval.ms", "20000"),
    "streams_assignment_too_long": (SET, "streams.assignment.interval.ms", "100000"),
    "streams_too_many_standbys": (SET, "streams.num.standby.replicas", "5"),
    "streams_delay_negative": (SET, "streams.initial.rebalance.delay.ms", "-1"),
}  # fmt: skip


@table("IncrementalAlterConfigs", at=(1,), **{name: (row,) for name, row in _ROWS.items()})
def step(stage: Stage, row: tuple[int, str, str | None]) -> None:
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, stage.name("group"), row))


@scenario("IncrementalAlterConfigs")
def of_a_group_that_has_no_name(stage: Stage) -> None:
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, "", (SET, SESSION, "50000")))


@scenario("AlterConfigs")
def all_of_a_group_that_has_no_name(stage: Stage) -> None:
    row = {"resource_type": GROUP, "resource_name": "", "configs": settings(consumer_heartbeat_interval_ms="7000")}
    stage.ask("AlterConfigs", {"resources": [row]})


@scenario("IncrementalAlterConfigs", at=(1,))
def together_they_have_to_fit(stage: Stage) -> None:
    group = stage.name("group")
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "6000"), (SET, HEARTBEAT, "6000")))
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, HEARTBEAT, "7000")))
    stage.until(lambda: value(stage, group, HEARTBEAT) == "7000", "the new setting")
    stage.ask("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "6500")))
    now(stage, group, SESSION, HEARTBEAT)


def listed(stage: Stage, said: dict[str, Plain], *names: str) -> None:
    """Write down what is listed of these names, and of kinds that ours has: loggers of Java's classes it has not."""
    kinds = {TOPIC, BROKER, CLIENT_METRICS, GROUP}
    rows = [
        [row.get("resource_type"), row["resource_name"]]
        for row in said["config_resources"]
        if row["resource_name"] in names and row.get("resource_type", CLIENT_METRICS) in kinds
    ]
    stage.note("listed", [said["error_code"], said["throttle_time"], sorted(rows, key=str)])


@scenario("ListConfigResources", at=(0,))
def listed_metrics(stage: Stage) -> None:
    stage.ask("ListConfigResources", {})


@table(
    "ListConfigResources", at=(1,),
    all=((),), topics=((TOPIC,),), brokers=((BROKER,),), groups=((GROUP,),), metrics=((CLIENT_METRICS,),),
    topics_and_groups=((TOPIC, GROUP),), unknown=((TOPIC, 99),), none_that_there_is=((0,),),
)  # fmt: skip
def listed_resources(stage: Stage, kinds: tuple[int, ...]) -> None:
    topic, group = stage.topic(), stage.name("group")
    stage.do("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "50000")))
    stage.until(lambda: value(stage, group, SESSION) == "50000", "the new setting")
    said = stage.do("ListConfigResources", {"resource_types": list(kinds)}, version=1)
    listed(stage, said, topic.name, group, "1", "2", "3")


@scenario("ListConfigResources", at=(1,))
def listed_no_more(stage: Stage) -> None:
    """A group without settings of its own."""
    group = stage.name("group")
    stage.do("IncrementalAlterConfigs", stepwise(GROUP, group, (SET, SESSION, "50000")))
    stage.until(lambda: value(stage, group, SESSION) == "50000", "the new setting")
    stage.do("IncrementalAlterConfigs", stepwise(GROUP, group, (DELETE, SESSION, None)))
    stage.until(lambda: value(stage, group, SESSION) != "50000", "the default")
    listed(stage, stage.do("ListConfigResources", {"resource_types": [GROUP]}, version=1), group)


def setting(stage: Stage, group: Group, **values: str) -> None:
    """Set some, and wait until every broker knows them."""
    steps = [(SET, name.replace("_", "."), text) for name, text in values.items()]
    stage.do("IncrementalAlterConfigs", stepwise(GROUP, group.id, *steps))
    for broker in (1, 2, 3):
        for _, name, text in steps:
            stage.until(partial(_is, stage, group, broker, name, text), f"{name} at broker {broker}")


def _is(stage: Stage, group: Group, broker: int, name: str, text: str) -> bool:
    said = stage.do("DescribeConfigs", described(GROUP, group.id, [name]), to=broker)
    return bool(said["results"][0]["configs"][0]["value"] == text)


@scenario()
def heartbeats_as_the_group_has_them(stage: Stage) -> None:
    group, topic = joined(stage)
    for _ in range(2):
        said = group.do("ConsumerGroupHeartbeat", beat(topic, epoch=epoch(group)))
        stage.note("heartbeat interval", [said["error_code"], said["heartbeat_interval"]])
        setting(stage, group, consumer_heartbeat_interval_ms="700")


@scenario()
def sessions_as_the_group_has_them(stage: Stage) -> None:
    """It is over after the group's time, not the broker's."""
    group, topic = joined(stage)
    setting(stage, group, consumer_heartbeat_interval_ms="500", consumer_session_timeout_ms="3000")
    now = epoch(group)
    for seconds in (0, 2.0, 2.0, 4.5):
        if seconds:
            stage.brokers.elapse(seconds)
        stage.note("there", group.do("ConsumerGroupHeartbeat", beat(topic, epoch=now))["error_code"])
