"""What is claimed of idle connections."""

from __future__ import annotations

from typing import Final

from lab.report.claims.claim import Claim, Finding, Verdict
from lab.report.look import title
from lab.report.run import Run

__all__ = ["CLAIMS"]


def _cheapest(run: Run) -> Finding:
    rate = run.choices("packets_s")[-1]
    cost = run.of(packets_s=rate).set_index("design")
    packet, pause = cost["a packet"], cost["longest turn"]
    said = f"at {rate:,} packets/s a packet costs " + ", ".join(
        f"{packet[way]:,.0f} ns ({title(way)})" for way in ("refresh", "add-again", "ring-of-sets", "scan-all")
    )
    said += f"; the longest turn is {pause['scan-all']:.1f} ms to scan all, {pause['refresh']:.1f} ms with refresh"
    beats = packet["refresh"] < packet["add-again"] and packet["refresh"] < packet["ring-of-sets"]
    verdict: Verdict = "held" if beats else "not held here"
    return Finding(verdict, said)


def _precise(run: Run) -> Finding:
    latest = run.cells.groupby("design")["latest"].max()
    said = ", ".join(f"{title(way)} {latest[way]:,.0f} ms" for way in latest.index)
    held = latest["refresh"] <= 10 and latest["ring-of-sets"] > 500 and latest["scan-all"] > 500
    return Finding("held" if held else "not held here", f"latest notice of silence: {said} (the clock steps by 10 ms)")


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Refreshing in place costs least of those that do not scan.",
        "Linux mod_timer; Netty's IdleStateHandler; law T4",
        _cheapest,
        "Held if at the highest rate a packet costs less to refresh than to remove and add again, and "
        "than in the ring.",
    ),
    Claim(
        "The wheel notices silence to the tick; scan and ring to the second.",
        "law T2",
        _precise,
        "Held if refresh notices within 10 ms, and scan and ring after more than 500 ms.",
    ),
]
