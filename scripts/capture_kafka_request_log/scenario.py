"""What happens in a capture, second by second. Read it next to the time line in the README."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .stage import Stage

SECONDS = 270

# Replicas by partition, the leader first. Broker 3 follows everywhere, so that freezing it holds
# up every acks=all produce; it leads some partitions of "clicks" only.
TOPICS = (
    "orders=1,2,3/2,1,3/1,3,2/2,3,1",
    "clicks=1,2,3/2,3,1/3,1,2/1,3,2/2,1,3/3,2,1",
    "ledger=1,3/2,3",  # two replicas, both required: nothing can be written while 3 is out
    "alerts=2,1,3/1,2,3",  # a record now and then: the long polls mostly expire
    "audit=1,2,3/2,1,3",  # records are deleted from it
)


def play(stage: Stage) -> None:
    """Play the whole capture."""
    stage.python("create-topics", "create-topics", *TOPICS, quiet=True)
    stage.finish("create-topics")
    _producers(stage)
    _consumers(stage)
    _groups_come_together(stage)
    _short_freeze(stage)
    _member_killed(stage)
    _long_freeze(stage)
    _member_frozen_in_a_rebalance(stage)
    _slow_leader_of_a_group(stage)
    _middle_freeze(stage)
    _leader_frozen(stage)
    stage.until(SECONDS)


def _producers(stage: Stage) -> None:
    stage.until(1)
    # The patient one: its produces wait for as long as the follower is in the ISR.
    stage.python(
        "orders-web", "produce", "--topic", "orders", "--rate", 16, "--idempotent",
        "--instances", 6,
    )  # fmt: skip
    # The impatient one: its produces expire in a freeze of more than 2.5 s.
    stage.python(
        "orders-batch", "produce", "--topic", "orders", "--rate", 8, "--seed", 2, "--instances", 8,
        "--request-timeout-ms", 2500, "--message-timeout-ms", 6000,
    )  # fmt: skip
    # For contrast: waits for nobody.
    stage.python("clicks-web", "produce", "--topic", "clicks", "--rate", 15, "--acks", 1, "--seed", 3)
    stage.python(
        "ledger-writer", "produce", "--topic", "ledger", "--rate", 3, "--seed", 4,
        "--request-timeout-ms", 4000, "--message-timeout-ms", 9000,
    )  # fmt: skip
    stage.python("alert-source", "produce", "--topic", "alerts", "--rate", 0.4, "--seed", 5)
    stage.python("audit-writer", "produce", "--topic", "audit", "--rate", 5, "--seed", 6, "--size", 80)
    stage.python("probe", "produce", "--topic", "clicks", "--rate", 1, "--acks", 0, "--seed", 7)
    # Kafka's own producer puts several partitions into one request, each in its own batch.
    stage.tool(
        "perf", "ProducerPerformance", "--topic", "clicks", "--num-records", 70 * SECONDS,
        "--record-size", 120, "--throughput", 70, "--reporting-interval", 60_000,
        "--command-property", "acks=all", "client.id=perf", "linger.ms=120", "batch.size=700",
        "request.timeout.ms=3000", "delivery.timeout.ms=12000", "enable.idempotence=false",
        "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner",
    )  # fmt: skip


def _consumers(stage: Stage) -> None:
    stage.until(5)
    # Long polls without a group, from impatient to patient.
    stage.python("alerts-3s", "consume", "alerts", "--max-wait-ms", 3000)
    stage.python("clicks-1s", "consume", "clicks", "--max-wait-ms", 1000, "--min-bytes", 4000)
    stage.until(9)
    # Kafka's own consumer: incremental fetch sessions.
    stage.tool(
        "console", "consumer.ConsoleConsumer", "--topic", "clicks", "--group", "console",
        "--formatter-property", "print.value=false", "--command-property", "client.id=console",
        "--command-property", "fetch.max.wait.ms=2000", "--command-property", "fetch.min.bytes=9000",
    )  # fmt: skip


def _groups_come_together(stage: Stage) -> None:
    stage.until(14)
    stage.python("app-a", "consume", "orders", "ledger", "--group", "orders-app")
    stage.until(15)
    stage.python("app-b", "consume", "orders", "ledger", "--group", "orders-app")
    stage.until(18)
    for letter in "ab":
        stage.python(
            f"analytics-{letter}", "consume", "orders", "clicks", "--group", "analytics",
            "--protocol", "consumer", "--max-wait-ms", 3000, "--min-bytes", 30_000,
        )  # fmt: skip
    stage.until(26)
    stage.python("app-c", "consume", "orders", "ledger", "--group", "orders-app")
    stage.until(30)
    stage.python("delete-1", "delete-records", "--topic", "audit", "--partition", 0)
    stage.until(34)
    stage.python("alerts-100ms", "consume", "alerts", "--max-wait-ms", 100)
    stage.leave("analytics-b")


def _short_freeze(stage: Stage) -> None:
    """Nobody expires: everything waits for two seconds."""
    stage.until(40)
    stage.freeze(3)
    stage.until(42)
    stage.thaw(3)


def _member_killed(stage: Stage) -> None:
    """Kill one: the group learns of it when the session (6 s) has expired."""
    stage.until(48)
    stage.kill("app-b")
    stage.until(52)
    stage.tool(
        "share", "consumer.ConsoleShareConsumer", "--topic", "alerts", "--group", "alert-share",
        "--formatter-property", "print.value=false",
        "--command-property", "client.id=share", "--command-property", "fetch.max.wait.ms=1500",
    )  # fmt: skip


def _long_freeze(stage: Stage) -> None:
    """Freeze a follower for longer than replica.lag.time.max.ms.

    Impatient produces expire, patient ones end when the ISR shrinks, and the ledger refuses all
    that comes after.
    """
    stage.until(62)
    stage.freeze(3)
    stage.until(62.5)
    stage.python("delete-2", "delete-records", "--topic", "audit", "--partition", 0, "--timeout-ms", 3000)
    stage.python("delete-3", "delete-records", "--topic", "audit", "--partition", 1, "--timeout-ms", 25_000)
    stage.until(76)
    stage.thaw(3)
    stage.until(80)
    stage.leave("alerts-100ms")


def _member_frozen_in_a_rebalance(stage: Stage) -> None:
    """Let the joins of the others wait until the rebalance time-out gives the frozen one up."""
    options = ("--group", "payments", "--session-timeout-ms", 30_000, "--rebalance-timeout-ms", 7000)
    stage.until(88)
    for letter in "ab":
        stage.python(f"payments-{letter}", "python-group-member", "ledger", *options)
    stage.until(96)
    stage.freeze_client("payments-b")
    stage.until(97)
    stage.python("payments-c", "python-group-member", "ledger", *options)
    stage.until(110)
    stage.thaw_client("payments-b")
    stage.until(114)
    stage.leave("app-c")
    stage.tool(
        "transactions", "ProducerPerformance", "--topic", "orders", "--num-records", 150,
        "--record-size", 100, "--throughput", 10, "--transactional-id", "settlement",
        "--transaction-duration-ms", 500, "--reporting-interval", 60_000,
        "--command-property", "client.id=transactions",
    )  # fmt: skip


def _slow_leader_of_a_group(stage: Stage) -> None:
    """Let the others' SYNC_GROUP wait for the leader; once for longer than the group allows."""
    stage.until(130)
    for letter in "abc":
        stage.python(
            f"report-{letter}", "python-group-member", "clicks", "--group", "reports",
            "--assign-seconds", 2.5,
        )  # fmt: skip
    stage.until(146)
    for letter in "ab":
        stage.python(
            f"stuck-{letter}", "python-group-member", "clicks", "--group", "stuck",
            "--assign-seconds", 9, "--rebalance-timeout-ms", 5000,
        )  # fmt: skip
    stage.until(156)
    stage.python("app-d", "consume", "orders", "ledger", "--group", "orders-app")
    stage.until(166)
    stage.leave("report-c", "share")
    stage.until(172)
    stage.kill("stuck-a")
    stage.leave("stuck-b")


def _middle_freeze(stage: Stage) -> None:
    """Shorter than replica.lag.time.max.ms: the ISR stays, the impatient expire."""
    stage.until(184)
    stage.freeze(3)
    stage.until(184.5)
    stage.python("delete-4", "delete-records", "--topic", "audit", "--partition", 0, "--timeout-ms", 2000)
    stage.until(189)
    stage.thaw(3)
    stage.until(196)
    stage.tool_delete_records("delete-5", "audit", 1)
    stage.until(205)
    stage.python("alerts-250ms", "consume", "alerts", "--max-wait-ms", 250)


def _leader_frozen(stage: Stage) -> None:
    """Freeze a leader of many partitions.

    Its own long polls end late, and a controller election may follow.
    """
    stage.until(225)
    stage.freeze(1)
    stage.until(229)
    stage.thaw(1)
    stage.until(245)
    stage.kill("payments-a")
