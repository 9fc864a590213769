"""Features: UpdateFeatures, what ApiVersions says then, and what is refused while one is off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..messages import Plain
from ..scenario import Stage, scenario, table
from .configs import BROKER, DELETE, SET, stepwise

API = "UpdateFeatures"
UPGRADE, SAFE, UNSAFE = 1, 2, 3
SHARE, STREAMS, GROUPS, TRANSACTIONS = "share.version", "streams.version", "group.version", "transaction.version"
METADATA, REPLICAS, KRAFT = "metadata.version", "eligible.leader.replicas.version", "kraft.version"
MIN_ISR = "min.insync.replicas"
LATEST = {SHARE: 1, STREAMS: 1, GROUPS: 1, TRANSACTIONS: 2, METADATA: 30, REPLICAS: 1}
_CONTROLLER = re.compile(r"[Cc]ontroller \d")


def update(*rows: tuple[str, int, int], validate_only: bool = False) -> dict[str, Plain]:
    """Levels by feature, and how to get there. Version 0 says that downgrades may be made, which Kafka 4 forgets."""
    changes = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind != UPGRADE}
        for name, level, kind in rows
    ]
    return {"feature_updates": changes, "validate_only": validate_only, "timeout": 10_000}


def ask(stage: Stage, *rows: tuple[str, int, int], validate_only: bool = False) -> None:
    """Write down what is said, without which broker is the controller."""
    version = stage.version(API)
    said = stage.do(API, update(*rows, validate_only=validate_only), version=version)
    stage.note(f"{API} v{version}", without_controller(said))


def without_controller(said: Plain) -> Plain:
    if isinstance(said, dict):
        return {name: without_controller(value) for name, value in said.items()}
    if isinstance(said, list):
        return [without_controller(one) for one in said]
    return _CONTROLLER.sub("a controller", said) if isinstance(said, str) else said


def finalized(stage: Stage, broker: int = 1) -> tuple[int, dict[str, int]]:
    """The epoch of the features that a broker knows, and their levels."""
    said = stage.do("ApiVersions", {"client_software_name": "conformance", "client_software_version": "1"}, to=broker)
    levels = {row["name"]: row["max_version_level"] for row in said["finalized_features"]}
    return said["finalized_features_epoch"], levels


def await_level(stage: Stage, name: str, level: int) -> None:
    """Until all brokers know it."""
    for broker in (1, 2, 3):

        def known(broker: int = broker) -> bool:
            return finalized(stage, broker)[1].get(name, 0) == level

        stage.until(known, f"{name} {level} at broker {broker}")


@contextmanager
def lowered(stage: Stage, name: str, level: int = 0) -> Iterator[None]:
    """A feature at a lower level, within the block."""
    stage.do(API, update((name, level, SAFE)))
    await_level(stage, name, level)
    try:
        yield
    finally:
        stage.do(API, update((name, LATEST[name], UPGRADE)))
        await_level(stage, name, LATEST[name])


@table(
    API,
    at=(1, 2),
    share=(SHARE,),
    streams=(STREAMS,),
    groups=(GROUPS,),
    replicas=(REPLICAS,),
    transactions=(TRANSACTIONS,),
)
def lowered_and_raised(stage: Stage, name: str) -> None:
    before, _ = finalized(stage)
    ask(stage, (name, 0, SAFE))
    await_level(stage, name, 0)
    between, levels = finalized(stage)
    stage.note("off", [name in levels, between > before])
    ask(stage, (name, LATEST[name], UPGRADE))
    await_level(stage, name, LATEST[name])
    after, levels = finalized(stage)
    stage.note("on", [levels[name], after > between])


@table(
    API,
    upgrade_to_the_same=(SHARE, 1, UPGRADE), downgrade_to_the_same=(SHARE, 1, SAFE),
    downgrade_without_saying_so=(SHARE, 0, UPGRADE), upgrade_as_a_downgrade=(TRANSACTIONS, 3, SAFE),
    too_high=(SHARE, 2, UPGRADE), far_too_high=(TRANSACTIONS, 99, UPGRADE), below_zero=(SHARE, -1, SAFE),
    unknown=("no.such.feature", 1, UPGRADE), unknown_off=("no.such.feature", 0, SAFE), no_name=("", 1, UPGRADE),
    metadata_too_high=(METADATA, 99, UPGRADE), metadata_next=(METADATA, 31, UPGRADE), metadata_off=(METADATA, 0, SAFE),
    metadata_too_low=(METADATA, 6, SAFE), metadata_before=(METADATA, 29, SAFE), metadata_first=(METADATA, 7, SAFE),
    metadata_lowered_by_force=(METADATA, 29, UNSAFE), metadata_lowered_as_upgrade=(METADATA, 29, UPGRADE),
    metadata_same=(METADATA, 30, UPGRADE), kraft_too_high=(KRAFT, 2, UPGRADE), kraft_off=(KRAFT, 0, SAFE),
)  # fmt: skip
def update_of(stage: Stage, name: str, level: int, kind: int) -> None:
    ask(stage, (name, level, kind))


@table(API, at=(1, 2), unknown=(0,), of_no_kind=(7,), negative=(-1,))
def upgrade_type(stage: Stage, kind: int) -> None:
    ask(stage, (SHARE, 0, kind))


@scenario(API)
def nothing_to_update(stage: Stage) -> None:
    ask(stage)


@scenario(API)
def one_is_wrong(stage: Stage) -> None:
    """Then none changes."""
    ask(stage, (SHARE, 0, SAFE), (STREAMS, 9, UPGRADE))
    stage.note("levels", [finalized(stage)[1].get(name) for name in (SHARE, STREAMS)])


@scenario(API, at=(1, 2))
def only_validated(stage: Stage) -> None:
    before = finalized(stage)
    ask(stage, (SHARE, 0, SAFE), (TRANSACTIONS, 0, UNSAFE), validate_only=True)
    ask(stage, (SHARE, 9, UPGRADE), validate_only=True)
    stage.note("levels", finalized(stage)[1] == before[1])


@scenario(API, at=(1, 2))
def two_at_once(stage: Stage) -> None:
    ask(stage, (SHARE, 0, SAFE), (TRANSACTIONS, 1, SAFE))
    await_level(stage, TRANSACTIONS, 1)
    await_level(stage, SHARE, 0)
    ask(stage, (SHARE, 1, UPGRADE), (TRANSACTIONS, 2, UPGRADE))
    await_level(stage, TRANSACTIONS, 2)
    await_level(stage, SHARE, 1)


@scenario()
def share_groups_that_are_off(stage: Stage) -> None:
    member = {"group_id": stage.name("group"), "member_id": "one", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    topic = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}
    fetch = {
        "group_id": stage.name("group"), "member_id": "one", "share_session_epoch": 0, "max_wait": 0, "min_bytes": 0,
        "max_bytes": 100, "max_records": 1, "batch_size": 1, "topics": [], "forgotten_topics_data": [],
    }  # fmt: skip
    with lowered(stage, SHARE):
        stage.ask("ShareGroupHeartbeat", member)
        stage.ask("ShareGroupDescribe", {"group_ids": [stage.name("group")]})
        stage.ask("ShareFetch", fetch)
        stage.ask("ShareAcknowledge", {"group_id": stage.name("group"), "member_id": "one", "topics": []})
        stage.ask("DescribeShareGroupOffsets", {"groups": [{"group_id": stage.name("group"), "topics": None}]})
        stage.ask("AlterShareGroupOffsets", {"group_id": stage.name("group"), "topics": [topic]})
        stage.ask("DeleteShareGroupOffsets", {"group_id": stage.name("group"), "topics": [{"topic_name": "t"}]})


@scenario()
def streams_groups_that_are_off(stage: Stage) -> None:
    member = {
        "group_id": stage.name("group"), "member_id": "one", "member_epoch": 0, "topology": None,
        "rebalance_timeout": 1000, "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
    }  # fmt: skip
    with lowered(stage, STREAMS):
        stage.ask("StreamsGroupHeartbeat", member)
        stage.ask("StreamsGroupDescribe", {"group_ids": [stage.name("group")]})


@scenario()
def consumer_groups_that_are_off(stage: Stage) -> None:
    member = {
        "group_id": stage.name("group"), "member_id": "one", "member_epoch": 0, "rebalance_timeout": 1000,
        "subscribed_topic_names": ["t"], "topic_partitions": [],
    }  # fmt: skip
    with lowered(stage, GROUPS):
        stage.ask("ConsumerGroupHeartbeat", member)
        stage.ask("ConsumerGroupDescribe", {"group_ids": [stage.name("group")]})


@scenario("IncrementalAlterConfigs", at=(1,))
def min_isr_without_eligible_replicas(stage: Stage) -> None:
    """Then a broker may have its own; it loses it when the feature comes back."""
    with lowered(stage, REPLICAS):
        stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "1", (SET, MIN_ISR, "2")))
        stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "1", (DELETE, MIN_ISR, None)))
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "1", (SET, MIN_ISR, "2")))
    stage.ask("IncrementalAlterConfigs", stepwise(BROKER, "", (DELETE, MIN_ISR, None)))
