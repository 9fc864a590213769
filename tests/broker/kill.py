"""kill -9 under load: brokers with a data directory are killed while producers with acks=all write, and start again.

Every record that was acknowledged has to be there afterwards, in the order in which one producer wrote them to one
partition, and the in-sync replicas have to have the same bytes. By hand, as long as one likes:

    PYTHONPATH=tests python -m broker.kill --rounds 20
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

BROKERS = 3
PARTITIONS = 3
TOPIC = "orders"
_PATIENCE = 60.0  # seconds, for what takes a fraction of one unless the machine has other things to do

_COMMAND = (
    *(sys.executable, "-m", "abeyant", "broker", "--brokers", str(BROKERS), "--port", "0"),
    *("--topic", f"{TOPIC}:{PARTITIONS}:{BROKERS}", "--set", "min.insync.replicas=2"),
    *("--set", "log.segment.bytes=1048576", "--data"),
)


class Brokers:
    """A process with three brokers, for one life."""

    def __init__(self, data: Path) -> None:
        self.process = subprocess.Popen([*_COMMAND, str(data)], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.bootstrap = self.process.stdout.readline().strip().removeprefix("bootstrap.servers=")
        assert self.bootstrap, f"the brokers did not start: exit status {self.process.wait(_PATIENCE)}"

    def kill(self) -> None:
        """As the system does it when memory runs out: no chance to tidy up."""
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def end(self) -> None:
        """Ask it to end, as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self._wait()

    def _wait(self) -> None:
        self.process.wait(_PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()


class Load:
    """Producers that write for as long as there is somebody to write to, and note what was acknowledged."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self.acknowledged: list[tuple[int, int, bytes]] = []  # partition, offset, value
        self.enough = threading.Event()
        self._ended = threading.Event()
        self._number = number
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 1, "log_level": 0}
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        count = 0
        while not self._ended.is_set():
            value = b"%d-%d-%s" % (self._number, count, b"x" * (count % 300))
            try:
                self._producer.produce(TOPIC, value, partition=count % PARTITIONS, on_delivery=self._told)
                count += 1
            except BufferError:
                pass
            self._producer.poll(0 if count % 50 else 0.001)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        if error is None and partition is not None and offset is not None and value is not None:
            self.acknowledged.append((partition, offset, value))
            if len(self.acknowledged) >= 500:
                self.enough.set()

    def end(self) -> list[tuple[int, int, bytes]]:
        """What was acknowledged, once nothing can come any more."""
        self._ended.set()
        self._thread.join(_PATIENCE)
        self._producer.purge()
        self._producer.poll(0.1)
        return self.acknowledged


def everything(bootstrap: str, acknowledged: Collection[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
    """All records there are: by partition and offset."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "kill", "log_level": 0, "enable.auto.commit": False}
    )
    found: dict[tuple[int, int], bytes] = {}
    try:
        deadline = time.monotonic() + _PATIENCE
        ends: dict[int, int] = {}
        for partition in range(PARTITIONS):
            # The followers have to be heard of first, before a leader knows again what was committed.
            least = max((offset + 1 for other, offset in acknowledged if other == partition), default=0)
            ends[partition] = -1
            while ends[partition] < least and time.monotonic() < deadline:
                marks = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=_PATIENCE)
                ends[partition] = marks[1] if marks else -1
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        while len(found) < sum(ends.values()):
            assert time.monotonic() < deadline, f"only {len(found)} of {sum(ends.values())} records came"
            message = consumer.poll(1.0)
            if message is None or message.error() is not None:
                continue
            place = message.partition(), message.offset()
            assert place[0] is not None
            assert place[1] is not None
            found[place[0], place[1]] = message.value() or b""
    finally:
        consumer.close()
    return found


def logs_are_equal(data: Path) -> bool:
    """Whether all replicas of each partition have the same batches, once their brokers were closed."""
    for partition in range(PARTITIONS):
        contents = {
            b"".join(path.read_bytes() for path in sorted(data.glob(f"broker-{broker}/{TOPIC}-{partition}/*.log")))
            for broker in range(1, BROKERS + 1)
        }
        if len(contents) > 1:
            return False
    return True


def run(data: Path, rounds: int, seed: int) -> int:
    """Kill so many times; return how many records were acknowledged, all of which are there. AssertionError else."""
    luck = random.Random(seed)
    acknowledged: dict[tuple[int, int], bytes] = {}
    for number in range(rounds):
        brokers = Brokers(data)
        try:
            load = Load(brokers.bootstrap, number)
            assert load.enough.wait(_PATIENCE), f"round {number}: only {len(load.acknowledged)} were acknowledged"
            time.sleep(luck.uniform(0.0, 0.2))  # anywhere in what it does
        finally:
            brokers.kill()
        for partition, offset, value in load.end():
            assert acknowledged.setdefault((partition, offset), value) == value
        brokers = Brokers(data)
        try:
            found = everything(brokers.bootstrap, acknowledged)
        finally:
            brokers.end()
        lost = [place for place, value in acknowledged.items() if found.get(place) != value]
        assert not lost, f"round {number}: of {len(acknowledged)} acknowledged records {len(lost)} are lost: {lost[:5]}"
        values = list(found.values())
        assert len(set(values)) == len(values), f"round {number}: records are there twice"
        assert logs_are_equal(data), f"round {number}: replicas differ"
        print(f"kill {number + 1}: {len(acknowledged):,} acknowledged records, all there", flush=True)
    return len(acknowledged)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        count = run(Path(folder), options.rounds, options.seed)
    print(f"{options.rounds} of {options.rounds} kills: all of {count:,} acknowledged records are there")


if __name__ == "__main__":
    main()
