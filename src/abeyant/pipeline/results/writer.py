"""Who writes a result: what a claim says of its process, and what another is told of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

__all__ = ["about_us", "named"]


def about_us() -> dict[str, Any]:
    """Return what a claim of this process says: its host, its number, and since when."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "process": os.getpid(), "since": since}


def named(told: Mapping[str, Any]) -> str:
    """Name the process of which a claim tells; where it tells of none, it was cut short."""
    if not told:
        return "a run whose claim is not whole, as one that was killed while it renewed it"
    return f"process {told.get('process')} on {told.get('host')}, since {told.get('since')}"
