"""The holder of a lease: what the lease says of its process, and how a message names it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

__all__ = ["describe_owner", "this_owner"]


def this_owner() -> dict[str, Any]:
    """Return what a lease of this process says: its host, its number, and since when."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "process": os.getpid(), "since": since}


def describe_owner(owner: Mapping[str, Any]) -> str:
    """Name the process that holds a lease; an empty `owner` is one that was cut short."""
    if not owner:
        return "a run whose lease is not whole, as one that was killed while it renewed it"
    return f"process {owner.get('process')} on {owner.get('host')}, since {owner.get('since')}"
