"""Compresses the captured logs and writes the page that explains them."""

from __future__ import annotations

import gzip
import shutil
from string import Template
from typing import TYPE_CHECKING

from .scenario import TOPICS
from .toolchain import CLIENTS, HERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from .requestlog import Summary
    from .stage import Event

LOG = "kafka-request.log"


def captured(work: Path) -> list[Path]:
    """List the request logs of all brokers, rolled ones included."""
    return sorted(work.glob(f"broker-*/logs/{LOG}*"))


def publish(logs: Sequence[Path], target: Path, page: str) -> list[Path]:
    """Put the compressed logs and the page into `target`, in place of an earlier capture's.

    What is there is complete: it is built beside `target` and then renamed.
    """
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    written = []
    for log in logs:
        folder = fresh / log.parent.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        # As `gzip -9 -n`: no name and no time in the header, so equal logs give equal files.
        packed = gzip.compress(log.read_bytes(), compresslevel=9, mtime=0)
        (folder / f"{log.name}.gz").write_bytes(packed)
        written.append(target / folder.name / f"{log.name}.gz")
    (fresh / "README.md").write_text(page, encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return written


def page(version: str, summary: Summary, logs: Sequence[Path], events: Sequence[Event], level: str) -> str:
    """Write the text of the data's README.md."""
    template = Template((HERE / "data-readme.md.template").read_text(encoding="utf-8"))
    return template.substitute(
        version=version,
        level=level,
        first=summary.first,
        last=summary.last,
        requests=f"{summary.requests:,}",
        topics="\n".join(f"- `{topic}`" for topic in TOPICS),
        clients=", ".join(f"`{client}`" for client in CLIENTS),
        faults=_faults(events),
        events=_rows((_clock(event.at), event.what) for event in events),
        kinds=_rows(
            (name, kind.requests, kind.waited, kind.expired, f"{kind.longest_ms:,.1f}")
            for name, kind in sorted(summary.kinds.items())
        ),
        fetches=_rows(sorted(summary.fetches.items())),
        errors=_rows((str(code), count) for code, count in sorted(summary.produce_errors.items())),
        files=_rows((f"{log.parent.parent.name}/{log.name}", _lines(log), log.stat().st_size) for log in logs),
    )


def _rows(rows: Iterable[tuple[str | int, ...]]) -> str:
    cells = ([f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _faults(events: Sequence[Event]) -> str:
    """List what stood still, for how long, and what was killed."""
    begun: dict[str, datetime] = {}
    lines = []
    for event in events:
        kind, name, *_ = event.what.split()
        who = f"{kind} {name}"
        if event.what.endswith("SIGSTOP"):
            begun[who] = event.at
        elif event.what.endswith("SIGCONT"):
            seconds = (event.at - begun[who]).total_seconds()
            lines.append(f"- {_clock(begun[who])}: SIGSTOP of {who} for {seconds:.2f} s")
        elif "kill -9" in event.what:
            lines.append(f"- {_clock(event.at)}: kill -9 of {who}, a member of a consumer group")
    return "\n".join(sorted(lines)) or "None."


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"


def _lines(log: Path) -> int:
    with log.open("rb") as content:
        return sum(1 for _ in content)
