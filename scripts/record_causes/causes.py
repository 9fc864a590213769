"""The causes that are planted, one a recording, and the recordings without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scripts.capture_kafka_request_log.stage import Stage

    from .cluster import RecordedCluster

WARM_UP = 22.0
"""Seconds before what is kept begins: Java has compiled the common paths, groups have come together."""
PLANT = WARM_UP + 20
SECONDS = 60.0
"""Seconds that are kept."""

TOPICS = ("orders=1,2,3/2,3,1/3,1,2", "payments=1,2,3/2,3,1/3,1,2", "clicks=2,1,3/3,1,2", "alerts=1,3,2")


@dataclass(frozen=True)
class Cause:
    """What is planted, and who has to be named for it."""

    name: str
    what: str
    suspect: str | None
    """None in a recording without a cause: there nobody may be named."""
    plant: Callable[[Stage, RecordedCluster], None]
    settings: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[Stage], None] = lambda stage: None
    """Starts what this recording has besides the everyday clients."""
    far: int | None = None
    slow: int | None = None


def everyday(stage: Stage) -> None:
    """Start what runs in every recording: producers, a group of two, long polls."""
    stage.python("create-topics", "create-topics", *TOPICS, quiet=True)
    stage.finish("create-topics")
    stage.python("shop", "produce", "--topic", "orders", "--rate", 5, "--instances", 3, quiet=True)
    stage.python("billing", "produce", "--topic", "payments", "--rate", 4, "--instances", 2, "--seed", 2, quiet=True)
    stage.python("web", "produce", "--topic", "clicks", "--rate", 3, "--acks", 1, "--seed", 3, quiet=True)
    stage.python("watch", "consume", "alerts", "--max-wait-ms", 2000, quiet=True)
    for letter in "ab":
        member = ("consume", "orders", "payments", "--group", "orders-app", "--max-wait-ms", 1000)
        stage.python(f"app-{letter}", *member, quiet=True)


def _follower_frozen(stage: Stage, cluster: RecordedCluster) -> None:
    stage.freeze(3)
    stage.until(PLANT + 7)
    stage.thaw(3)


def _leader_frozen(stage: Stage, cluster: RecordedCluster) -> None:
    stage.freeze(2)
    stage.until(PLANT + 4)
    stage.thaw(2)


def _broker_killed(stage: Stage, cluster: RecordedCluster) -> None:
    cluster.kill(3)
    stage.note("broker 3 killed with kill -9")
    stage.ended.add(3)


def _disk_slowed(stage: Stage, cluster: RecordedCluster) -> None:
    cluster.limit_disk(4)
    stage.note("broker 3's disk limited to 4 writes a second")
    stage.until(PLANT + 12)
    cluster.limit_disk(0)
    stage.note("broker 3's disk is fast again")


def _network_delayed(stage: Stage, cluster: RecordedCluster) -> None:
    cluster.delay_network(0.3)
    stage.note("replication from and to broker 2 delayed by 300 ms each way")
    stage.until(PLANT + 12)
    cluster.delay_network(0)
    stage.note("replication from and to broker 2 is fast again")


def _group_storm(stage: Stage, cluster: RecordedCluster) -> None:
    for turn in range(5):
        for letter in "cd":
            stage.python(f"app-{letter}{turn}", "consume", "orders", "payments", "--group", "orders-app")
        stage.until(PLANT + 3 * turn + 1.5)
        stage.kill(f"app-c{turn}")
        stage.until(PLANT + 3 * turn + 3)
        stage.leave(f"app-d{turn}")


def _member_frozen(stage: Stage, cluster: RecordedCluster) -> None:
    stage.freeze_client("bill-b")
    stage.until(PLANT + 1)
    for letter in "cde":
        stage.python(f"bill-{letter}", "consume", "payments", *_PATIENT)
    stage.until(PLANT + 18)
    stage.thaw_client("bill-b")


def _quota(stage: Stage, cluster: RecordedCluster) -> None:
    stage.python("loader", "produce", "--topic", "orders", "--rate", 12, "--size", 3000, "--seed", 5)
    stage.until(PLANT + 3)
    quota = ("--alter", "--add-config", "producer_byte_rate=4000", "--entity-type", "clients")
    stage.tool("quota", "ConfigCommand", *quota, "--entity-name", "loader-1", main="kafka.admin.")
    stage.note("quota of 4 kB/s for client loader-1")


def _huge_batches(stage: Stage, cluster: RecordedCluster) -> None:
    bulk = ("--topic", "orders", "--rate", 3, "--size", 9_000_000, "--instances", 1, "--seed", 5)
    stage.python("bulk", "produce", *bulk)
    stage.until(PLANT + 12)
    stage.leave("bulk")


def _leaders_moved(stage: Stage, cluster: RecordedCluster) -> None:
    cluster.stop_one(1)
    stage.note("broker 1 told to stop: it hands over its leaders")
    stage.ended.add(1)


def _impatient_client(stage: Stage, cluster: RecordedCluster) -> None:
    options = ("--topic", "payments", "--rate", 6, "--seed", 5, "--request-timeout-ms", 1, "--linger-ms", 0)
    stage.python("impatient", "produce", *options)
    stage.until(PLANT + 12)
    stage.leave("impatient")


def _slow_reader(stage: Stage, cluster: RecordedCluster) -> None:
    stage.note("client report polls every 2.5 s only")
    for turn in range(7):
        stage.freeze_client("report", quiet=True)
        stage.until(PLANT + 2.5 * turn + 2.2)
        stage.thaw_client("report", quiet=True)
        stage.until(PLANT + 2.5 * turn + 2.5)
    stage.note("client report polls all of the time")


def _report(stage: Stage) -> None:
    stage.python("report", "consume", "clicks", "--max-wait-ms", 1000, quiet=True)


def _crowd(stage: Stage) -> None:
    stage.python("sale", "produce", "--topic", "orders", "--rate", 8, "--instances", 8, "--seed", 6, quiet=True)


def _patient_group(stage: Stage) -> None:
    for letter in "ab":
        stage.python(f"bill-{letter}", "consume", "payments", *_PATIENT, quiet=True)


_PATIENT = ("--group", "bills", "--session-timeout-ms", 14_000, "--rebalance-timeout-ms", 20_000)


def _nothing(stage: Stage, cluster: RecordedCluster) -> None:
    stage.note("nothing is planted")


def _deployed(stage: Stage, cluster: RecordedCluster) -> None:
    stage.python("app-c", "consume", "orders", "payments", "--group", "orders-app", "--max-wait-ms", 1000)
    stage.until(PLANT + 10)
    stage.leave("app-a")


def _busy(stage: Stage, cluster: RecordedCluster) -> None:
    stage.python("sale", "produce", "--topic", "orders", "--rate", 25, "--instances", 2, "--seed", 6)
    stage.until(PLANT + 12)
    stage.leave("sale")


BIG = {"message.max.bytes": "20000000", "replica.fetch.max.bytes": "1048576"}
FLUSHED = {"log.flush.interval.messages": "1"}

CAUSES = (
    Cause("follower-frozen", "broker 3 stands still for 7 s", "broker 3", _follower_frozen),
    Cause("leader-frozen", "broker 2 stands still for 4 s", "broker 2", _leader_frozen),
    Cause("broker-killed", "broker 3 is killed", "broker 3", _broker_killed),
    Cause("disk-slowed", "broker 3's disk does 4 writes a second", "broker 3", _disk_slowed, FLUSHED, slow=3),
    Cause("network-delayed", "the network of broker 2 is slow", "broker 2", _network_delayed, far=2),
    Cause("group-storm", "members join and leave group orders-app", "group orders-app", _group_storm),
    Cause("member-frozen", "a rebalance waits for a member", "group bills", _member_frozen, before=_patient_group),
    Cause("quota", "a quota throttles client loader-1", "client loader-1", _quota),
    Cause("huge-batches", "client bulk-1 sends batches of 9 MB", "client bulk-1", _huge_batches, BIG),
    Cause("leaders-moved", "broker 1 hands its leaders over", "broker 1", _leaders_moved, before=_crowd),
    Cause("impatient-client", "client impatient-1 allows 1 ms", "client impatient-1", _impatient_client),
    Cause("slow-reader", "client report polls seldom", "client report", _slow_reader, before=_report),
    Cause("clean-steady", "nothing", None, _nothing),
    Cause("clean-deployed", "a member joins, another leaves", None, _deployed),
    Cause("clean-busy", "twice the load for 12 s", None, _busy),
)
