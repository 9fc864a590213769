"""The clients of the workload, one process each: `python clients.py ROLE ...`.

Runs in the capture's own virtual environment (confluent-kafka and kafka-python). A role ends
cleanly on SIGTERM (a consumer leaves its group); scenario.py also freezes and kills some.
"""

# These two are installed in the environment of the capture only.
# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

Arguments = argparse.Namespace


class Running:
    """True until SIGTERM or SIGINT asks this process to end."""

    def __init__(self) -> None:
        self._running = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._running = False

    def __bool__(self) -> bool:
        return self._running


def create_topics(arguments: Arguments, running: Running) -> None:
    """Create topics with given replicas: `name=1,2,3/2,1,3` (the first of each is the leader)."""
    admin = AdminClient({"bootstrap.servers": arguments.bootstrap})
    topics = []
    for spec in arguments.topics:
        name, _, layout = spec.partition("=")
        replicas = [[int(n) for n in part.split(",")] for part in layout.split("/")]
        topics.append(NewTopic(name, len(replicas), replica_assignment=replicas))
    for future in admin.create_topics(topics).values():
        future.result()


def produce(arguments: Arguments, running: Running) -> None:
    """Send records at random moments, `rate` a second on average.

    A broker handles one request of a connection at a time, so one producer has at most one
    produce waiting on each broker: `instances` makes several producers, each with its own.
    """
    producers = [_producer(arguments, number) for number in range(arguments.instances)]
    chance = random.Random(arguments.seed)
    due = time.monotonic()
    while running:
        due += chance.expovariate(arguments.rate)
        while running and (wait := due - time.monotonic()) > 0:
            time.sleep(min(wait, 0.5))
        payload = chance.randbytes(arguments.size // 2).hex().encode()
        producer = chance.choice(producers)
        # A full queue (nothing moves in a freeze) drops the record; that is no error here.
        with contextlib.suppress(BufferError):
            producer.produce(arguments.topic, payload, key=str(chance.randrange(1000)))
        producer.poll(0)
    for producer in producers:
        producer.flush(2)


def _producer(arguments: Arguments, number: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": arguments.bootstrap,
            "client.id": f"{arguments.name}-{number + 1}",
            "acks": arguments.acks,
            "enable.idempotence": arguments.idempotent,
            # What the broker reads in the request as its time-out.
            "request.timeout.ms": arguments.request_timeout_ms,
            "message.timeout.ms": arguments.message_timeout_ms,
            "linger.ms": arguments.linger_ms,
            "message.max.bytes": max(1_000_000, 2 * arguments.size),
            "topic.metadata.refresh.interval.ms": 60_000,
        }
    )


def consume(arguments: Arguments, running: Running) -> None:
    """Long-poll topics, as a member of a group or (without --group) alone."""
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": arguments.bootstrap,
        "client.id": arguments.name,
        "group.id": arguments.group or arguments.name,
        "auto.offset.reset": "latest",
        "fetch.wait.max.ms": arguments.max_wait_ms,
        "fetch.min.bytes": arguments.min_bytes,
        # An incomplete fetch would otherwise be followed by the next one at once; a deep local
        # queue would stop the polling.
        "queued.min.messages": 1000,
        "topic.metadata.refresh.interval.ms": 60_000,
    }
    if arguments.protocol == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = arguments.session_timeout_ms
        settings["heartbeat.interval.ms"] = 1000
        # A classic member's rebalance time-out.
        settings["max.poll.interval.ms"] = arguments.rebalance_timeout_ms
    if not arguments.group:
        settings["enable.auto.commit"] = False
    consumer = Consumer(settings)
    if arguments.group:
        consumer.subscribe(arguments.topics)
    else:
        found = [consumer.list_topics(name, timeout=10).topics[name] for name in arguments.topics]
        consumer.assign([TopicPartition(str(topic.topic), n) for topic in found for n in topic.partitions])
    try:
        while running:
            consumer.consume(500, timeout=0.2)
    finally:
        consumer.close()


def python_group_member(arguments: Arguments, running: Running) -> None:
    """Be a member of a classic group, by kafka-python.

    Its assignor is Python: a leader that takes long to assign lets the others' SYNC_GROUP wait.
    And its session time-out may be longer than its rebalance time-out, which librdkafka forbids.
    """
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class SlowAssignor(RangePartitionAssignor):  # type: ignore[misc,unused-ignore]
        name = "slow-range"

        @classmethod
        def assign(cls, cluster: object, members: object) -> object:
            time.sleep(arguments.assign_seconds)
            return super().assign(cluster, members)

    consumer = KafkaConsumer(
        *arguments.topics,
        bootstrap_servers=arguments.bootstrap.split(","),
        client_id=arguments.name,
        group_id=arguments.group,
        auto_offset_reset="latest",
        session_timeout_ms=arguments.session_timeout_ms,
        heartbeat_interval_ms=1000,
        max_poll_interval_ms=arguments.rebalance_timeout_ms,
        fetch_max_wait_ms=1000,
        fetch_min_bytes=5000,
        partition_assignment_strategy=[SlowAssignor],
    )
    try:
        while running:
            consumer.poll(timeout_ms=300)
    finally:
        consumer.close()


def delete_records(arguments: Arguments, running: Running) -> None:
    """Ask once that the records before the newest `keep` be deleted; wait for the answer."""
    admin = AdminClient({"bootstrap.servers": arguments.bootstrap, "client.id": arguments.name})
    probe = Consumer({"bootstrap.servers": arguments.bootstrap, "group.id": arguments.name})
    partition = TopicPartition(arguments.topic, arguments.partition)
    _low, high = probe.get_watermark_offsets(partition, timeout=10)
    probe.close()
    target = TopicPartition(arguments.topic, arguments.partition, max(0, high - arguments.keep))
    seconds = arguments.timeout_ms / 1000
    futures = admin.delete_records([target], operation_timeout=seconds, request_timeout=seconds + 5)
    for future in futures.values():
        try:
            print("deleted up to", future.result().low_watermark, flush=True)
        except KafkaException as error:
            print("not deleted:", error, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)

    def role(run: Callable[[Arguments, Running], None], *, name: str) -> argparse.ArgumentParser:
        sub = roles.add_parser(name, help=(run.__doc__ or "").split("\n")[0])
        sub.set_defaults(run=run)
        sub.add_argument("--bootstrap", required=True)
        sub.add_argument("--name", required=True, help="the client.id in the log")
        return sub

    sub = role(create_topics, name="create-topics")
    sub.add_argument("topics", nargs="+")

    sub = role(produce, name="produce")
    sub.add_argument("--topic", required=True)
    sub.add_argument("--acks", default="all")
    sub.add_argument("--idempotent", action="store_true")
    sub.add_argument("--rate", type=float, default=10.0)
    sub.add_argument("--size", type=int, default=200)
    sub.add_argument("--linger-ms", type=int, default=5)
    sub.add_argument("--request-timeout-ms", type=int, default=30_000)
    sub.add_argument("--message-timeout-ms", type=int, default=120_000)
    sub.add_argument("--instances", type=int, default=1)
    sub.add_argument("--seed", type=int, default=1)

    sub = role(consume, name="consume")
    sub.add_argument("topics", nargs="+")
    sub.add_argument("--group", default="")
    sub.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    sub.add_argument("--min-bytes", type=int, default=1)
    sub.add_argument("--max-wait-ms", type=int, default=500)
    sub.add_argument("--session-timeout-ms", type=int, default=6000)
    sub.add_argument("--rebalance-timeout-ms", type=int, default=10_000)

    sub = role(python_group_member, name="python-group-member")
    sub.add_argument("topics", nargs="+")
    sub.add_argument("--group", required=True)
    sub.add_argument("--assign-seconds", type=float, default=0.0)
    sub.add_argument("--session-timeout-ms", type=int, default=12_000)
    sub.add_argument("--rebalance-timeout-ms", type=int, default=20_000)

    sub = role(delete_records, name="delete-records")
    sub.add_argument("--topic", required=True)
    sub.add_argument("--partition", type=int, required=True)
    sub.add_argument("--keep", type=int, default=20)
    sub.add_argument("--timeout-ms", type=int, default=5000)
    return parser


def main() -> int:
    """Play the role that the command line names."""
    arguments = _parser().parse_args()
    arguments.run(arguments, Running())
    return 0


if __name__ == "__main__":
    sys.exit(main())
