"""The table of a row: rivals down, sizes across, and the ratios to asyncio and to Kafka."""

from __future__ import annotations

from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS, Row
from lab.benchmarks.results import Results
from lab.peers import LABELS

PEERS = {"asyncio": "asyncio", "kafka": "Kafka", "heap-loop": "heapq"}


def cells(results: Results, row: Row) -> list[list[str]]:
    """The table with its heading; empty where the row was not measured.

    The ratios are a rival's cost over the peer's, at the largest size that both have: below 1 is ahead. (Where
    higher is better, above 1 is.)
    """
    found = {(measurement.rival, measurement.size): measurement for measurement in results.of_row(row.name)}
    if not found:
        return []
    if row.name == "lateness":
        return _lateness(results, row)
    sizes = sorted({size for _, size in found})
    peers = [peer for peer in PEERS if any(rival == peer for rival, _ in found)]
    heading = [f"{row.title}, {row.unit}", *map(wording.size, sizes), *(f"to {PEERS[peer]}" for peer in peers)]
    table = [heading]
    for rival in LABELS:
        if not any(name == rival for name, _ in found):
            continue
        line = [LABELS[rival], *(wording.median(found.get((rival, size))) for size in sizes)]
        for peer in peers:
            common = [size for size in sizes if (rival, size) in found and (peer, size) in found]
            line.append(
                wording.ratio(found[rival, common[-1]], found[peer, common[-1]])
                if common and rival != peer
                else wording.NONE
            )
        table.append(line)
    return table


def _lateness(results: Results, row: Row) -> list[list[str]]:
    """How early, how late, how often: a median and its ratio would say nothing."""
    table = [[f"{row.title}, {row.unit}", "earliest", "median", "99 %", "latest", "early"]]
    for one in results.of_row(row.name):
        late = [wording.shown(row, value) for value in one.extra["late"]]
        picked = [late[0], late[len(late) // 2], late[int(len(late) * 0.99)], late[-1]]
        early = sum(value < 0 for value in late) / len(late)
        table.append([LABELS[one.rival], *map(wording.number, picked), f"{early:.0%}"])
    return table


def as_text(results: Results) -> str:
    """All tables, for the terminal."""
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
    """One table, for the page."""
    table = cells(results, row)
    if not table:
        return ""
    heading, *lines = table
    ruler = ["---", *("---:" for _ in heading[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heading, ruler, *lines])
