"""Exactly once, in real time: copiers in processes that are killed and stopped, beside a plain model.

The model: every input is in the output once, for whoever reads what is committed. A copier is any program that does as
`copier.py` does. By hand, with confluent-kafka, as long as one likes:

    PYTHONPATH=tests python -m broker.copying --rounds 100
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from abeyant.broker import Cluster
from abeyant.broker.genuine import die_with_parent
from abeyant.errors import AbeyantError
from broker.clients import producing, send, settle
from waiting import wait_until

TESTS = Path(__file__).parents[1]
PARTITIONS = 3
MORE = 40  # records for each step
SETTINGS = {
    "min.insync.replicas": 2,
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 100,
}
IDS = ("copier-1", "copier-2")
STEPS = ("kill", "zombie", "fence", "drop", "pause", "stop")
_STUCK = 15.0  # seconds in the middle of a transaction: sessions, time-outs and retries are over by then
_PATIENCE = 150.0  # seconds, for what takes one unless the machine has other things to do

Command = Callable[..., list[str]]
"""Given a bootstrap, a transactional id, a group protocol and maybe "hold": the command line of a copier."""


def confluent(*arguments: str) -> list[str]:
    """That of confluent-kafka's."""
    return [sys.executable, "-m", "broker.copier", *arguments]


class Copier:
    """One process."""

    def __init__(self, command: Sequence[str]) -> None:
        self.said: Counter[str] = Counter()
        self._heard = 0.0
        self._lines = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=TESTS,
            preexec_fn=die_with_parent,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._lines:
                self.said[line.split()[0]] += 1
                self._heard = time.monotonic()
                self._lines.notify_all()

    def until(self, word: str) -> None:
        """Return once it has said so."""
        with self._lines:
            assert self._lines.wait_for(lambda: self.said[word] > 0, _PATIENCE), self.said

    @property
    def ended(self) -> bool:
        """Whether it has, by itself or not."""
        return self._process.poll() is not None

    def seconds_in_the_middle(self) -> float:
        """For how long it has had its transaction open; 0 where it has none."""
        with self._lines:
            return time.monotonic() - self._heard if self.said["open"] > self.said["copied"] else 0.0

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT, as often as one likes; SIGKILL once."""
        self._process.send_signal(number)

    def go_on(self) -> None:
        """Let one that holds a transaction open go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Kill it, whatever it does, and hear the rest of what it said."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


class Story:
    """A cluster, what is to be copied, and who copies it."""

    def __init__(self, kafka: Cluster, command: Command, protocol: str, seed: int) -> None:
        self._kafka = kafka
        self._command = command
        self._protocol = protocol
        self._luck = random.Random(seed)
        self._inputs = 0
        self._copiers = {name: self.begin(name) for name in IDS}
        self._zombies: list[Copier] = []
        self.said: Counter[str] = Counter()
        """What those have said that are gone."""

    def begin(self, name: str) -> Copier:
        return Copier(self._command(self._kafka.bootstrap, name, self._protocol))

    def play(self, steps: Sequence[str]) -> None:
        """Take the steps, each among new inputs and in the middle of a transaction; then check the output."""
        try:
            for step in steps:
                self._write(MORE)
                self._await(self._inputs - MORE // 2)
                name = self._luck.choice(IDS)
                getattr(self, f"_{step}")(name)
            self._write(MORE)
            self._await(self._inputs)
            found = Counter(self.copied())
            wrong = {value: found[value] for value in range(self._inputs) if found[value] != 1}
            assert not wrong, f"so many times there is each of these in the output: {wrong}"
        finally:
            for copier in (*self._copiers.values(), *self._zombies):
                self._end(copier)

    def copied(self) -> list[int]:
        """What a reader of committed data sees, in order."""
        return sorted(int(one.value or b"-1") for one in self._kafka.records("out", isolation="read_committed"))

    def _write(self, count: int) -> None:
        values = range(self._inputs, self._inputs + count)
        with producing(self._kafka, acks="all", enable_idempotence=True, retries=1_000) as producer:
            sent = [send(producer, "in", b"%d" % value, value % PARTITIONS) for value in values]
            assert set(settle(producer, *sent)) == {None}
        self._inputs += count

    def _await(self, least: int) -> None:
        """Until so many are copied; copiers that end by themselves begin anew, as under any supervisor.

        So do those that are stuck in a transaction, which is counted: librdkafka may wait for a coordinator that was
        stopped for ever (its issues 5456 and 5511).
        """
        give_up = time.monotonic() + _PATIENCE
        while (count := len(self.copied())) < least:
            assert time.monotonic() < give_up, f"{count} of {least} are copied"
            for name, copier in self._copiers.items():
                stuck = copier.seconds_in_the_middle() > _STUCK
                self.said["stuck"] += stuck
                if copier.ended or stuck:
                    self._replace(name)
            time.sleep(0.02)

    def _replace(self, name: str) -> None:
        self._end(self._copiers[name])
        self._copiers[name] = self.begin(name)

    def _end(self, copier: Copier) -> None:
        copier.end()
        self.said.update(copier.said)

    # -- steps

    def _kill(self, name: str) -> None:
        self._replace(name)

    def _zombie(self, name: str) -> None:
        """It stands still while another takes its id over, and then goes on where it was."""
        zombie = self._copiers[name]
        zombie.signal(signal.SIGSTOP)
        self._copiers[name] = self.begin(name)
        self._zombies.append(zombie)
        self._write(MORE)
        self._await(self._inputs - MORE // 2)
        zombie.signal(signal.SIGCONT)

    def _fence(self, name: str) -> None:
        with suppress(AbeyantError):  # its transaction is being ended
            self._kafka.fence(name)

    def _drop(self, _: str) -> None:
        self._kafka.drop_connections()

    def _pause(self, _: str) -> None:
        with self._kafka.paused(self._luck.choice((1, 2, 3))):
            time.sleep(self._luck.uniform(0.1, 0.5))

    def _stop(self, _: str) -> None:
        """So a coordinator moves, of the group or of a transaction, or none."""
        broker = self._luck.choice((1, 2, 3))
        with self._kafka.stopped(broker):
            time.sleep(self._luck.uniform(0.0, 0.3))
        wait_until(lambda: self._kafka._on_loop(self._in_sync))

    def _in_sync(self) -> bool:
        topics = self._kafka.controller.topics.values()
        return all(len(state.isr) == len(state.replicas) for topic in topics for state in topic.partitions)


def _begin_at_0(kafka: Cluster) -> None:
    """Give the group its offsets beforehand.

    Where there are none, librdkafka 2.16 asks for the earliest. If its partitions change before that is answered, it
    asks once more half a second later, and then begins there again, whatever it has read and committed by then.
    """
    places = [TopicPartition("in", partition, 0) for partition in range(PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions("copy", places)]).values():
        done.result(30)


def run(command: Command, protocol: str, steps: Sequence[str], seed: int) -> Counter[str]:
    """Three brokers, two copiers, and the steps. What copiers said, counted. AssertionError where the model differs."""
    with Cluster(3, settings=SETTINGS) as kafka:
        for topic in ("in", "out"):
            kafka.create_topic(topic, partitions=PARTITIONS)
        _begin_at_0(kafka)
        story = Story(kafka, command, protocol, seed)
        story.play(steps)
        return story.said


def fence_a_zombie(command: Command, protocol: str) -> None:
    """One that has a transaction open, while another takes its id over, is fenced; only the other's is committed."""
    with Cluster(3, settings=SETTINGS) as kafka:
        for topic in ("in", "out"):
            kafka.create_topic(topic)
        with producing(kafka) as producer:
            assert settle(producer, send(producer, "in", b"once")) == [None]
        zombie = Copier(command(kafka.bootstrap, "copier", protocol, "hold"))
        copiers = [zombie]
        try:
            zombie.until("open")
            zombie.signal(signal.SIGSTOP)
            copiers.append(Copier(command(kafka.bootstrap, "copier", protocol)))
            copiers[1].until("copied")
            zombie.go_on()
            zombie.signal(signal.SIGCONT)
            zombie.until("fenced")
        finally:
            for copier in copiers:
                copier.end()
        assert not zombie.said["copied"]
        assert [one.value for one in kafka.records("out", isolation="read_committed")] == [b"once"]
        assert [one.value for one in kafka.records("out")] == [b"once", b"once"], "one of them aborted"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    steps = random.Random(options.seed).choices(STEPS, k=options.rounds)
    said = run(confluent, options.protocol, steps, options.seed)
    print(f"{options.rounds} faults in {time.monotonic() - began:.0f} s, every input copied once: {dict(said)}")


if __name__ == "__main__":
    main()
