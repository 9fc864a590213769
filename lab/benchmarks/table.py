"""Make the table of a row: a line per rival, a column per size, and the ratios to asyncio and to Kafka."""

from __future__ import annotations

from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS, Row
from lab.benchmarks.results import Results
from lab.peers import LABELS

PEERS = {"asyncio": "asyncio", "kafka": "Kafka", "heap-loop": "heapq"}


def cells(results: Results, row: Row) -> list[list[str]]:
    """Return the table with its heading; empty if the row was not measured.

    A ratio is a rival's cost divided by the peer's, at the largest size that both have: below 1 the rival is ahead.
    (In rows where higher is better, it is ahead above 1.)
    """
    by_key = {(measurement.rival, measurement.size): measurement for measurement in results.of_row(row.name)}
    if not by_key:
        return []
    if row.name == "lateness":
        return _lateness(results, row)
    sizes = sorted({size for _, size in by_key})
    peers = [peer for peer in PEERS if any(rival == peer for rival, _ in by_key)]
    heading = [f"{row.title}, {row.unit}", *map(wording.size, sizes), *(f"to {PEERS[peer]}" for peer in peers)]
    table = [heading]
    for rival in LABELS:
        if not any(name == rival for name, _ in by_key):
            continue
        line = [LABELS[rival], *(wording.median(by_key.get((rival, size))) for size in sizes)]
        for peer in peers:
            common = [size for size in sizes if (rival, size) in by_key and (peer, size) in by_key]
            line.append(
                wording.ratio(by_key[rival, common[-1]], by_key[peer, common[-1]])
                if common and rival != peer
                else wording.NONE
            )
        table.append(line)
    return table


def _lateness(results: Results, row: Row) -> list[list[str]]:
    """Return the table of the row on lateness: quantiles, and the share of timers that ran early."""
    table = [[f"{row.title}, {row.unit}", "earliest", "median", "99 %", "latest", "early"]]
    for one in results.of_row(row.name):
        late = [wording.shown(row, value) for value in one.extra["late"]]
        picked = [late[0], late[len(late) // 2], late[int(len(late) * 0.99)], late[-1]]
        early = sum(value < 0 for value in late) / len(late)
        table.append([LABELS[one.rival], *map(wording.number, picked), f"{early:.0%}"])
    return table


def as_text(results: Results) -> str:
    """Return all tables as text for the terminal."""
    blocks = []
    for row in ROWS.values():
        table = cells(results, row)
        if not table:
            continue
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for line in table:
            first, *rest = line
            others = (text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))
            lines.append("  ".join([first.ljust(widths[0]), *others]).rstrip())
        lines.insert(1, "-" * (sum(widths) + 2 * len(widths) - 2))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def as_markdown(results: Results, row: Row) -> str:
    """Return one table in Markdown."""
    table = cells(results, row)
    if not table:
        return ""
    heading, *lines = table
    ruler = ["---", *("---:" for _ in heading[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, ruler, *lines])
