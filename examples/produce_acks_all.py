"""A produce with acks=all, from the leader's append to the answer, as in Apache Kafka; and with no follower.

    python examples/produce_acks_all.py

A record counts as committed when every in-sync replica has it, that is, when it lies below the partition's *high
watermark*. With acks=all the answer to a produce waits for that: the request goes to the purgatory, watched on
each of its partitions, and followers' fetches let it out. The clock is virtual: the story takes no time to tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from abeyant.purgatory import DelayedOperation, Purgatory
from abeyant.timer import ManualTimer

NONE, REQUEST_TIMED_OUT = "NONE", "REQUEST_TIMED_OUT"
TIMEOUT = 30.0  # seconds


class TopicPartition(NamedTuple):
    """The name of a partition, and the key on which operations wait for it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Partition:
    """The leader's copy of a log, and how far each follower has come."""

    def __init__(self, followers: tuple[str, ...]) -> None:
        self.log: list[str] = []
        self.fetched = dict.fromkeys(followers, 0)  # the offset from which each fetches next: it has all before it
        self.high_watermark = 0

    def append(self, records: list[str]) -> int:
        """The leader's append. Returns the offset that the high watermark must reach for these to be committed."""
        self.log += records
        return len(self.log)

    def fetch(self, follower: str, offset: int) -> list[str]:
        """A follower's fetch says what it has, gets what it lacks, and may advance the high watermark."""
        self.fetched[follower] = offset
        self.high_watermark = max(self.high_watermark, min(self.fetched.values()))
        return self.log[offset:]


class DelayedProduce(DelayedOperation):
    """A produce that waits until its partitions' high watermarks have passed what it appended."""

    def __init__(self, required: Mapping[Partition, int], respond: Callable[[list[str]], None]) -> None:
        super().__init__(timeout=TIMEOUT)
        self.required = required
        self.respond = respond

    def try_complete(self) -> bool:
        """Are they all committed? Called on submission, and when one of the high watermarks has moved."""
        done = all(partition.high_watermark >= offset for partition, offset in self.required.items())
        return done and self.force_complete()

    def on_complete(self) -> None:
        """Completed or expired, the client gets its answer, once."""
        reached = [partition.high_watermark >= offset for partition, offset in self.required.items()]
        self.respond([NONE if committed else REQUEST_TIMED_OUT for committed in reached])


class Leader:
    """A broker that leads some partitions."""

    def __init__(self, partitions: dict[TopicPartition, Partition], timer: ManualTimer) -> None:
        self.partitions = partitions
        self.purgatory: Purgatory[DelayedProduce] = Purgatory("produce", timer)

    def produce(self, records: dict[TopicPartition, list[str]], respond: Callable[[list[str]], None]) -> bool:
        """Append, then answer: now if all is committed already, else when it is, else when time is over."""
        required = {self.partitions[name]: self.partitions[name].append(batch) for name, batch in records.items()}
        return self.purgatory.try_complete_else_watch(DelayedProduce(required, respond), records)

    def fetch(self, name: TopicPartition, follower: str, offset: int) -> list[str]:
        """Serve a follower; where that advances the high watermark, look who waited for it."""
        partition = self.partitions[name]
        before = partition.high_watermark
        records = partition.fetch(follower, offset)
        if partition.high_watermark > before:
            self.purgatory.check_and_complete(name)
        return records


def main() -> None:
    timer = ManualTimer()
    orders, stock = TopicPartition("orders", 0), TopicPartition("stock", 3)
    leader = Leader({orders: Partition(("broker-2",)), stock: Partition(("broker-2",))}, timer)

    def say(what: str) -> None:
        print(f"{timer.time():5.1f} s  {what}")

    def respond(errors: list[str]) -> None:
        say("        the client is answered: " + ", ".join(errors))

    def fetch(name: TopicPartition, offset: int) -> None:
        say(f"broker-2 fetches {name} from offset {offset}")
        leader.fetch(name, "broker-2", offset)
        say(f"        high watermark of {name}: {leader.partitions[name].high_watermark}")

    with leader.purgatory as purgatory:
        say("produce two records to orders-0, one to stock-3, acks=all")
        leader.produce({orders: ["o1", "o2"], stock: ["s1"]}, respond)
        say(f"        tried, not complete: watched on {purgatory.watched} keys, {purgatory.delayed} timer started")
        timer.advance(0.2)
        fetch(orders, 0)
        fetch(stock, 0)
        timer.advance(0.3)
        fetch(orders, 2)
        timer.advance(0.1)
        fetch(stock, 1)
        say(f"        {purgatory.watched} watched, {purgatory.delayed} timers")

        timer.advance(9.4)
        say("produce one record to each, acks=all; no follower fetches any more")
        leader.produce({orders: ["o3"], stock: ["s2"]}, respond)
        timer.advance(TIMEOUT)
        say(f"        {purgatory.watched} watched, {purgatory.delayed} timers")


if __name__ == "__main__":
    main()
