"""Check that acknowledged records can be read at the end, and aborted ones never (K1, K4)."""

from __future__ import annotations

from collections import Counter

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History, Item


def acknowledged_is_readable(topic: str, dead_letters: str | None = None) -> Check:
    """Check that each acknowledged record of `topic` is at its offset, or its value is in the topic `dead_letters`.

    Only for producers with acks=all: with less, Kafka may lose acknowledged records. Transactional records are
    checked like all others, even aborted ones, as they stay in the log.
    """

    def look(history: History) -> Verdict:
        places = {(one.partition, one.offset): one.item for one in history.stored if one.topic == topic}
        dead = Counter(one.item.value for one in history.stored_committed if one.topic == dead_letters)
        seen, wrong = 0, []
        for made in history.produced:
            if made.topic != topic or made.error != "NONE" or made.acks != -1:
                continue
            for number, item in enumerate(made.items):
                seen += 1
                offset = made.offset + number
                if places.get((made.partition, offset)) != item and not dead[item.value]:
                    where = f"{topic}-{made.partition} offset {offset}"
                    wrong.append(f"{_shown(item)} was acknowledged at {where}, and is not there")
        return Verdict(seen, f"record acknowledged in {topic}", (), tuple(wrong))

    return Check(f"acknowledged is readable ({topic})", look)


def acknowledged_by_enough(topic: str) -> Check:
    """Check that records of `topic` with acks=all are acknowledged only while `min.insync.replicas` are in sync.

    The in-sync replicas are those that the leader knows when it responds. Requests for several partitions are not
    checked, as their response waits for the last partition.
    """

    def look(history: History) -> Verdict:
        seen, wrong = 0, []
        for made in history.produced:
            if made.topic == topic and made.error == "NONE" and made.acks == -1 and made.in_sync is not None:
                seen += 1
                number, needed = made.in_sync
                if number < needed:
                    where = f"{topic}-{made.partition} offset {made.offset}"
                    wrong.append(
                        f"{where} was acknowledged by {number} of {needed} in-sync replicas at {made.at:.3f} s"
                    )
        return Verdict(seen, f"request acknowledged in {topic}", tuple(wrong))

    return Check(f"acknowledged by enough ({topic})", look)


def aborted_is_never_seen(topic: str) -> Check:
    """Check that no read_committed consumer was handed a record of `topic` that is not committed at the end.

    Such a record belongs to an aborted transaction, or to one that has not ended.
    """

    def look(history: History) -> Verdict:
        committed = {(one.partition, one.offset) for one in history.stored_committed if one.topic == topic}
        seen, wrong = 0, []
        for one in history.handed:
            if one.topic == topic and one.committed_only:
                seen += 1
                if (one.partition, one.offset) not in committed:
                    where = f"{topic}-{one.partition} offset {one.offset}"
                    wrong.append(f"{one.client} was handed {_shown(one.item)} at {where}, which was not committed")
        return Verdict(seen, f"record of {topic} handed to consumers of committed records", (), tuple(wrong))

    return Check(f"aborted is never seen ({topic})", look)


def _shown(item: Item) -> str:
    value = item.value if item.value is not None else b""
    return repr(value[:40].decode(errors="replace"))
