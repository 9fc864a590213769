"""What may differ between two brokers' answers gets a name in its place; all else is compared as it is.

| may differ | stands in its place |
|---|---|
| ids of topics, producers, sessions, members, clients | `topic 1`, `session 2`, in order; one id has one name |
| the cluster's id | `the cluster` |
| hosts and ports, folders, sizes of disks, epochs of features | what they are |
| times | `T+5` is 5 ms after the time that the scenario counts from; any other is `a time` |
| which broker is named as the controller | `a broker`: with KRaft that is any broker |
| order in lists of rows | sorted, but for a setting's synonyms, whose order has a meaning |
| a topic's name | the part of it that the scenario chose |

Errors that the client could not even read are compared by name.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .messages import ZERO_ID, Plain
from .records import summary

SECONDS_OF_T = 100
NO_TIME = (-1, -2)

_NAMED = {
    "host": "a host", "port": "a port", "cluster_id": "the cluster", "controller_id": "a broker",
    "log_dir": "a folder", "total_bytes": "bytes", "usable_bytes": "bytes", "finalized_features_epoch": "an epoch",
    "coordinator_epoch": "an epoch", "hmac": "a key",
}  # fmt: skip
_SIZES = frozenset({"total_bytes", "usable_bytes"})
_IDS = {
    "topic_id": "topic", "producer_id": "producer", "session_id": "session", "member_id": "member", "leader": "member",
    "token_id": "token", "client_instance_id": "client", "subscription_id": "subscription",
}  # fmt: skip
_NO_ID = {
    "topic_id": ZERO_ID, "producer_id": -1, "session_id": 0, "member_id": "", "leader": "", "token_id": "",
    "client_instance_id": ZERO_ID, "subscription_id": 0,
}  # fmt: skip
_TIMES = frozenset({
    "timestamp", "base_timestamp", "max_timestamp", "log_append_time", "last_timestamp", "transaction_start_time",
})  # fmt: skip
_TOKEN_TIMES = frozenset({"issue_timestamp", "expiry_timestamp"})
_TIME_IN_TEXT = re.compile(r"-?\d{12,}")
_REQUEST_IN_TEXT = re.compile(r"Request .* needs (\w+) permission", re.DOTALL)
_ORDERED = frozenset({"synonyms", "records"})


class Names:
    """The names that one run of a scenario gives to what may differ."""

    def __init__(self, prefix: str, base_time: int) -> None:
        self._prefix = re.compile(re.escape(prefix) + "-?")
        self._base_time = base_time
        self._ids: dict[tuple[str, Plain], str] = {}

    def known(self, kind: str, value: Plain) -> str:
        """The name of an id."""
        number = sum(1 for found, _ in self._ids if found == kind) + 1
        return self._ids.setdefault((kind, value), f"{kind} {number}")

    def settled(self, said: Plain, key: str = "") -> Plain:
        """The same answer with names in place of what may differ."""
        if key in _SIZES or (key in _NAMED and said not in (None, "", b"", -1)):
            return _NAMED[key]
        if key in _IDS and isinstance(said, str | int):
            return said if said == _NO_ID[key] else self.known(_IDS[key], said)
        if key in _TIMES and isinstance(said, int):
            return self._time(said)
        if key in _TOKEN_TIMES and isinstance(said, int):
            return "a time" if said > 0 else said
        if key == "records" and isinstance(said, bytes):
            return self.settled(summary(said), key)
        if isinstance(said, dict):
            return {name: self.settled(value, name) for name, value in said.items()}
        if isinstance(said, list):
            rows = [self.settled(value, key) for value in said]
            return rows if key in _ORDERED or not all(isinstance(row, dict) for row in rows) else sorted(rows, key=line)
        if isinstance(said, bytes):
            return said.decode("latin-1")
        return self._text(said) if isinstance(said, str) else said

    def _text(self, said: str) -> str:
        found = _TIME_IN_TEXT.sub("a time", self._prefix.sub("", said))
        return _REQUEST_IN_TEXT.sub(r"A request needs \1 permission", found)

    def _time(self, value: int) -> Plain:
        after = value - self._base_time
        if value in NO_TIME:
            return value
        return f"T+{after}" if 0 <= after < SECONDS_OF_T * 1000 else "a time"


def line(value: Any) -> str:
    """One line of JSON, keys sorted."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
