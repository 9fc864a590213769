"""Check that acknowledged records can be read at the end, and that aborted records are never read (K1, K4)."""

from __future__ import annotations

from collections import Counter

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History, Item


def acknowledged_is_readable(topic: str, dead_letters: str | None = None) -> Check:
    """Check that each acknowledged record of `topic` is at its offset, or its value is in the topic `dead_letters`.

    Only records sent with acks=all are checked: with acks=0 or acks=1, Kafka may lose acknowledged records. Records of
    transactions are checked, too, even of aborted transactions, since they stay in the log.
    """

    def look(history: History) -> Verdict:
        places = {(record.partition, record.offset): record.item for record in history.stored if record.topic == topic}
        dead = Counter(record.item.value for record in history.stored_committed if record.topic == dead_letters)
        count, missing = 0, []
        for response in history.produced:
            if response.topic != topic or response.error != "NONE" or response.acks != -1:
                continue
            for number, item in enumerate(response.items):
                count += 1
                offset = response.offset + number
                if places.get((response.partition, offset)) != item and not dead[item.value]:
                    location = f"{topic}-{response.partition} offset {offset}"
                    missing.append(f"{_shown(item)} was acknowledged at {location}, and is not there")
        return Verdict(count, f"record acknowledged in {topic}", (), tuple(missing))

    return Check(f"acknowledged is readable ({topic})", look)


def acknowledged_by_enough(topic: str) -> Check:
    """Check that records of `topic` with acks=all are acknowledged only while `min.insync.replicas` are in sync.

    The check counts the in-sync replicas that the leader knows when it responds. Requests for several partitions are
    not checked, as their response waits for the last partition.
    """

    def look(history: History) -> Verdict:
        count, wrong = 0, []
        for response in history.produced:
            if (
                response.topic == topic
                and response.error == "NONE"
                and response.acks == -1
                and response.in_sync is not None
            ):
                count += 1
                number, required = response.in_sync
                if number < required:
                    location = f"{topic}-{response.partition} offset {response.offset}"
                    wrong.append(
                        f"{location} was acknowledged by {number} of {required} in-sync replicas at {response.at:.3f} s"
                    )
        return Verdict(count, f"request acknowledged in {topic}", tuple(wrong))

    return Check(f"acknowledged by enough ({topic})", look)


def aborted_is_never_seen(topic: str) -> Check:
    """Check that no read_committed consumer was handed a record of `topic` that is not committed at the end.

    A record is not committed if its transaction was aborted, or has not ended.
    """

    def look(history: History) -> Verdict:
        committed = {(record.partition, record.offset) for record in history.stored_committed if record.topic == topic}
        count, wrong = 0, []
        for record in history.handed:
            if record.topic == topic and record.committed_only:
                count += 1
                if (record.partition, record.offset) not in committed:
                    location = f"{topic}-{record.partition} offset {record.offset}"
                    wrong.append(
                        f"{record.client} was handed {_shown(record.item)} at {location}, which was not committed"
                    )
        return Verdict(count, f"record of {topic} handed to consumers of committed records", (), tuple(wrong))

    return Check(f"aborted is never seen ({topic})", look)


def _shown(item: Item) -> str:
    value = item.value if item.value is not None else b""
    return repr(value[:40].decode(errors="replace"))
