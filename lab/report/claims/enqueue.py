"""What is claimed of purgatories under load."""

from __future__ import annotations

from typing import Final

from lab.report.claims.claim import MATSUDA, Claim, Finding, Verdict
from lab.report.run import Run

__all__ = ["CLAIMS"]


def _kilo(rate: float) -> str:
    return f"{rate / 1_000:,.0f} k/s"


def _peaks(run: Run, metric: str) -> dict[str, float]:
    """Each design's best rate, with few time-outs."""
    rows = run.of(load="low").dropna(subset=[metric])
    return {str(design): float(rate) for design, rate in rows.groupby("design")[metric].max().items()}


def _saturation(run: Run) -> Finding:
    peaks = _peaks(run, "sustained rate")
    if not {"old", "kafka", "ours"} <= set(peaks):
        return Finding("not decided", "the run has not measured the old design, Kafka's and ours")
    named = {"old": "the old design", "kafka": "Kafka's design in Python", "ours": "ours", "kafka-jvm": "genuine Kafka"}
    said = ", ".join(f"{words} {_kilo(peaks[design])}" for design, words in named.items() if design in peaks)
    ratio = peaks["kafka"] / peaks["old"]
    verdict: Verdict = "held" if ratio >= 2 else "held in part" if ratio >= 1.2 else "not held here"
    said = f"enqueued and ended, at best: {said}; Kafka's design {ratio:.1f} times the old one (2 decides)"
    few, many = (_kilo(_kept_up(run, "old", load)) for load in ("low", "high"))
    return Finding(verdict, f"{said}. The old one keeps up with {few} where few time out, with {many} where many do")


def _kept_up(run: Run, design: str, load: str) -> float:
    """The highest target rate of which a design ended 95 %; 0 for none."""
    rows = run.of(design, load=load)
    kept = rows[rows["sustained rate"] >= 0.95 * rows["rate"]]["rate"]
    return float(kept.max()) if len(kept) else 0.0


def _ours_at_300k(run: Run) -> Finding:
    rates = _peaks(run, "sustained rate")
    if "ours" not in rates:
        return Finding("not decided", "the run has not measured ours")
    best = rates["ours"]
    verdict: Verdict = "held" if best >= 300_000 else "held in part" if best >= 200_000 else "not held here"
    return Finding(verdict, f"ours enqueued and ended {_kilo(best)} at best, time-outs included (300 k/s decides)")


def _cpu(run: Run) -> Finding:
    rows = run.of(load="low")
    kept = rows[rows["sustained rate"] >= 0.95 * rows["rate"]]
    both = set(kept[kept["design"] == "old"]["rate"]) & set(kept[kept["design"] == "kafka"]["rate"])
    if not both:
        return Finding("not decided", "there is no rate that both designs kept up with")
    rate = max(both)
    old, new = (float(run.of(design, load="low", rate=rate)["CPU a request"].iloc[0]) for design in ("old", "kafka"))
    verdict: Verdict = "held" if old >= 1.1 * new else "not held here"
    return Finding(
        verdict, f"at {rate:,} requests/s the old design spends {old:.1f} µs a request, Kafka's {new:.1f} µs"
    )


def _on_time(run: Run) -> Finding:
    rows = run.cells[run.cells["sustained rate"] >= 0.95 * run.cells["rate"]]
    ours = rows[rows["design"] == "ours"]
    if ours.empty:
        return Finding("not decided", "ours kept up with no rate")
    off = float((ours["timed out"] - ours["timed out, expected"]).abs().max())
    early = int(ours["early"].sum())
    said = f"ours: {off:.2%} of requests at most have another outcome than their latency calls for, {early} are early"
    theirs = rows[rows["design"] == "kafka-jvm"]
    if len(theirs):
        share = float((theirs["early"] / (theirs["timed out"] * theirs["submitted"])).max())
        said += f"; genuine Kafka expires up to {share:.0%} of its time-outs a fraction of a millisecond early"
    verdict: Verdict = "held" if off < 0.02 and not early else "not held here"
    return Finding(verdict, said)


CLAIMS: Final[list[Claim]] = [
    Claim(
        "The old purgatory saturates at 25,000 to 40,000 requests a second; the one with the timing wheel goes on.",
        MATSUDA,
        _saturation,
        "Held if the best rate of Kafka's design is at least 2 times the old one's; in part from 1.2 times.",
    ),
    Claim(
        "The new design needs less CPU at the same rate.",
        MATSUDA,
        _cpu,
        "Held if the old design spends at least 1.1 times the CPU, at the highest rate of which both end 95 %.",
    ),
    Claim(
        "Ours takes 300,000 requests a second from Python, on two cores.",
        "Abeyant's own aim",
        _ours_at_300k,
        "Held from 300,000 requests/s; in part from 200,000.",
    ),
    Claim(
        "What times out is what should: never early, and nothing that would have completed.",
        "laws T1, P1; Kafka truncates both ends to milliseconds",
        _on_time,
        "Held if fewer than 2 % of ours end otherwise than their latency calls for, and none is early.",
    ),
]
