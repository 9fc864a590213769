"""What is claimed of how late each design is."""

from __future__ import annotations

from typing import Final

from lab.report.claims.claim import VARGHESE, Claim, Finding
from lab.report.run import Run

__all__ = ["CLAIMS"]


def _exact(run: Run) -> Finding:
    wheel = run.of("wheel")
    hashed = run.of("hashed-wheel")
    longest = int(wheel["delay_us"].max()) / 86_400e6
    early = int(run.cells["early"].sum())
    said = (
        f"up to {longest:.1f} days ahead, the wheel is {wheel['latest'].max() / 1_000:.2f} ms late at most, with a"
        f" tick of 1 ms. The hashed wheel is {hashed['latest'].max() / 1_000:.0f} ms late, with a tick of 100 ms."
        f" {early} tasks of all designs are early"
    )
    held = wheel["latest"].max() < 1_000 and hashed["latest"].max() > 90_000 and not early
    return Finding("held" if held else "not held here", said)


def _eighth(run: Run) -> Finding:
    rows = run.of("kernel-wheel")
    rows = rows[rows["delay_us"] >= 63_000]
    worst = rows.loc[rows["of the delay"].idxmax()]
    share = float(worst["of the delay"])
    said = f"{share:.2%} at {worst['delay_us'] / 1_000:,.0f} ms"
    if share <= 0.125:
        return Finding("held", said)
    return Finding(
        "held in part" if share <= 8 / 63 + 1e-6 else "not held here",
        f"{said}: a level begins at 63 granules of the one below, not at 64, so that its bound is 8/63 = 12.7 %",
    )


CLAIMS: Final[list[Claim]] = [
    Claim(
        "A hashed wheel is approximate; a hierarchical one keeps its tick at any delay.",
        f"Netty; {VARGHESE}; law T2",
        _exact,
        "Held if the wheel is less than 1 ms late, the hashed wheel more than 90 ms, and no task is early.",
    ),
    Claim(
        "A wheel that does not cascade is late by 12.5 % of the delay at most.",
        "Linux kernel/time/timer.c, its introductory comment",
        _eighth,
        "Held up to 12.5 % of the delay; in part up to 8/63 of it.",
    ),
]
