"""A program that copies topic "in" to topic "out" exactly once, with confluent-kafka: to be killed at any moment.

    python -m broker.copier BOOTSTRAP TRANSACTIONAL_ID classic|consumer [hold]

as a member of a group by the one protocol or the other.

It tells of itself by lines: "open" in the middle of each transaction, "copied" and how many when one is committed; and
before it ends by itself "fenced", or "failed" and why. With "hold" it waits, in each transaction, for a line of input.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

CLASSIC = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 100}  # by the new protocol the broker's settings count
MOST = 5  # messages in a transaction
MIDDLE = 0.01  # seconds in the middle of a transaction, to be killed in


def copy(bootstrap: str, transactional_id: str, protocol: str, *, hold: bool) -> None:
    """Until something fails. Raises KafkaException."""
    # Where all connections end at once, librdkafka 2.16 would forget all brokers, and then wait in
    # send_offsets_to_transaction for one of them, for ever (its issue 5511; it heeds no time-out there: 5456).
    common = {"bootstrap.servers": bootstrap, "log_level": 0, "metadata.recovery.strategy": "none"}
    consumer = Consumer(
        {
            **common, "group.id": "copy", "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "isolation.level": "read_committed", "group.protocol": protocol,
            **(CLASSIC if protocol == "classic" else {}),
        }
    )  # fmt: skip
    producer = Producer({**common, "transactional.id": transactional_id, "transaction.timeout.ms": 10_000})
    producer.init_transactions()
    messages: list[Message] = []
    member: list[Any] = []

    # What is copied is a member's of one generation. So its metadata is that of when it was assigned, and what it had
    # not copied when its partitions were taken is left to others. By the new protocol others may stay, with what
    # was read of them. Without a callback librdkafka takes them away in a thread of its own, be it in the
    # middle of a transaction.
    def assigned(*_: object) -> None:
        member[:] = [consumer.consumer_group_metadata()]

    def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
        gone = {one.partition for one in partitions}
        messages[:] = [one for one in messages if one.partition() not in gone]

    consumer.subscribe(["in"], on_assign=assigned, on_revoke=revoked)
    while True:
        messages.clear()
        while len(messages) < MOST:
            message = consumer.poll(0.1)
            if message is None:
                break
            if message.error() is None:
                messages.append(message)
        if messages:
            transfer(producer, messages, member[0], hold=hold)


def transfer(producer: Producer, messages: list[Message], member: Any, *, hold: bool) -> None:
    """One transaction."""
    producer.begin_transaction()
    ends: dict[int, int] = {}
    for message in messages:
        partition, offset = message.partition() or 0, message.offset() or 0
        producer.produce("out", message.value(), partition=partition)
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    producer.flush()
    print("open", flush=True)
    if hold:
        sys.stdin.readline()
    time.sleep(MIDDLE)
    places = [TopicPartition("in", partition, offset) for partition, offset in ends.items()]
    producer.send_offsets_to_transaction(places, member)
    producer.commit_transaction()
    print("copied", len(messages), flush=True)


def main() -> int:
    """The command line."""
    try:
        copy(*sys.argv[1:4], hold="hold" in sys.argv)
    except KafkaException as failed:
        error = failed.args[0]
        print("fenced" if error.name() == "_FENCED" else f"failed {error}", flush=True)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
