"""The claims of the literature, where each is made, and how a run decides it: by a stated figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import pandas as pd

from abeyance.lab.experiments import EXPERIMENTS
from abeyance.lab.report.look import title
from abeyance.lab.report.run import Run

Verdict = Literal["held", "held in part", "not held here", "inconclusive", "not decided"]

_MATSUDA: Final = "Matsuda, “Apache Kafka, Purgatory, and Hierarchical Timing Wheels”, Confluent, 2015"
_VARGHESE: Final = "Varghese and Lauck, “Hashed and Hierarchical Timing Wheels”, SOSP 1987"
_FLAT: Final = 1.5  # a cost that grows by less over the whole range counts as constant: caches account for that much


class Finding(NamedTuple):
    """What a run says to a claim. `figure` is what decided it."""

    verdict: Verdict
    figure: str


class Claim(NamedTuple):
    """What is claimed, and by whom; `judge` decides it, by the `rule` that the page shows."""

    text: str
    source: str
    judge: Callable[[Run], Finding]
    rule: str


def _kilo(rate: float) -> str:
    return f"{rate / 1_000:,.0f} k/s"


# -- enqueue


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


# -- cost


def _growth(run: Run, design: str, metric: str, *, calls: bool = True) -> float:
    """How many times as much it costs with the most pending as with the least, the call from Python apart.

    The call is the same whatever is called: the least that any cell measured, for each is one measure on a machine
    that is now and then slower.
    """
    rows = run.of(design).sort_values("pending").dropna(subset=[metric])
    call = float(run.cells["the call alone"].min()) if calls else 0.0
    alone = (rows[metric] - call).clip(lower=1)
    return float(alone.iloc[-1] / alone.iloc[0])


def _insert(run: Run) -> Finding:
    wheel = max(_growth(run, "wheel", f"insert {order}") for order in ("random", "earliest", "latest"))
    heap = {order: _growth(run, "indexed-heap", f"insert {order}") for order in ("earliest", "random", "latest")}
    most = int(run.of("wheel")["pending"].max())
    said = (
        f"from 1,000 to {most:,} pending the wheel's insert grows {wheel:.1f}-fold at most ({_FLAT} is flat). The"
        f" heap's grows {heap['earliest']:.1f}-fold where each deadline is the earliest so far,"
        f" {heap['random']:.1f}-fold at random, and {heap['latest']:.1f}-fold where each is the latest, as with one"
        " time-out for all"
    )
    if wheel > _FLAT and wheel > heap["random"]:
        return Finding("not held here", said)
    if heap["earliest"] <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if min(heap.values()) > _FLAT and wheel <= _FLAT else "held in part", said)


def _delete(run: Run) -> Finding:
    growths = {name: _growth(run, name, "delete random") for name in ("wheel", "indexed-heap", "delay-queue")}
    slowest = float(run.of("delay-queue")["delete random"].max())
    said = (
        f"the wheel's delete grows {growths['wheel']:.1f}-fold, the heap's with places"
        f" {growths['indexed-heap']:.1f}-fold, the delay queue's {growths['delay-queue']:,.0f}-fold, to"
        f" {slowest / 1_000:,.0f} µs"
    )
    parts = [growths["delay-queue"] > 10, growths["indexed-heap"] > _FLAT, growths["wheel"] <= _FLAT]
    if not parts[0]:
        return Finding("not held here", said)
    return Finding("held" if all(parts) else "held in part", f"{said} ({_FLAT} is flat)")


def _expiring(run: Run) -> Finding:
    wheel, heap = (_growth(run, name, "expire", calls=False) for name in ("wheel", "indexed-heap"))
    most = int(run.of("wheel")["pending"].max())
    each, other = (float(run.of(name, pending=most)["expire"].iloc[0]) for name in ("wheel", "indexed-heap"))
    said = (
        f"from 1,000 to {most:,} pending the cost per task that comes due grows {heap:.1f}-fold in the heap and"
        f" {wheel:.1f}-fold on the wheel, cascades included. At {most:,} it is {other:,.0f} ns in the heap and"
        f" {each:,.0f} ns on the wheel"
    )
    if heap <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if wheel <= _FLAT else "held in part" if wheel < heap else "not held here", said)


def _stall(run: Run) -> Finding:
    if "turn after stops" not in run.cells:
        return Finding("not decided", "the run has not measured it")
    most = int(run.of("lazy-heap").dropna(subset=["turn after stops"])["pending"].max())
    lazy, wheel = (float(run.of(name, pending=most)["turn after stops"].iloc[0]) for name in ("lazy-heap", "wheel"))
    said = f"with six in ten of {most:,} stopped, the next turn takes {lazy:.1f} ms, and {wheel:.3f} ms on the wheel"
    return Finding("held" if lazy > 10 * wheel else "not held here", said)


# -- precision


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


# -- purge


def _memory(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    kafka = run.of("kafka", keys=keys).set_index("purge_interval")["memory, most"].sort_index()
    ours = float(run.of("ours", keys=keys)["memory, most"].iloc[0])
    ratio = float(kafka.iloc[-1] / kafka.iloc[0])
    said = (
        f"with {keys} keys an operation Kafka's design needs {kafka.iloc[0]:,.1f} MiB at a purge interval of"
        f" {kafka.index[0]:,}, {kafka.iloc[-1]:,.1f} MiB at {kafka.index[-1]:,}; ours {ours:,.1f} MiB, it has none"
    )
    return Finding("held" if ratio >= 3 else "held in part" if ratio >= 1.3 else "not held here", said)


def _frequent(run: Run) -> Finding:
    keys = run.choices("keys")[-1]
    visits = run.of("kafka", keys=keys).set_index("purge_interval")["looked at by purges"].sort_index()
    cpu = run.of("kafka", keys=keys).set_index("purge_interval")["CPU an operation"].sort_index()
    ours = float(run.of("ours", keys=keys)["CPU an operation"].iloc[0])
    ratio = float(cpu.iloc[0] / cpu.min())
    said = (
        f"with {keys} keys, purges look at {visits.iloc[0]:,.0f} watches per operation at an interval of"
        f" {visits.index[0]:,}, and at {visits.iloc[-1]:,.0f} at {visits.index[-1]:,}. CPU per operation is"
        f" {cpu.iloc[0]:,.1f} µs against {cpu.min():,.1f} µs at best; ours takes {ours:,.1f} µs"
    )
    return Finding(
        "held" if ratio >= 1.2 else "held in part" if visits.iloc[0] > visits.iloc[-1] else "not held here", said
    )


# -- geometry


def _kafkas(run: Run) -> pd.DataFrame:
    rows = run.of(tick_us=1_000, wheel_size=20)
    return rows if len(rows) else run.cells


def _cascades(run: Run) -> Finding:
    over = run.cells[run.cells["cascades"] > run.cells["levels"] - 1]
    usual = _kafkas(run)
    worst = usual.loc[usual["cascades"].idxmax()]
    most = run.cells.loc[run.cells["cascades"].idxmax()]
    said = (
        f"never more often than levels less one ({len(over)} of {len(run.cells)} cells are over it). With Kafka's 1 ms"
        f" and 20 buckets it is {worst['cascades']:.2f} times per task at most. The most of all is"
        f" {most['cascades']:.2f}, with {most['wheel_size']} buckets per wheel"
    )
    return Finding("held" if over.empty else "not held here", said)


def _bucket_queue(run: Run) -> Finding:
    usual = _kafkas(run)
    low, high = float(usual["bucket-queue operations"].min()), float(usual["bucket-queue operations"].max())
    said = (
        f"with 1 ms and 20 buckets {low:.2f} to {high:.2f} operations a task, depending on the trace, where a queue"
        " of tasks has 2 (1 decides)"
    )
    return Finding("held" if high < 1 else "held in part" if low < 1 else "not held here", said)


# -- idle


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


CLAIMS: Final[dict[str, list[Claim]]] = {
    "enqueue": [
        Claim(
            "The old purgatory saturates at 25,000 to 40,000 requests a second; the one with the timing wheel goes on.",
            _MATSUDA,
            _saturation,
            "Held if the best rate of Kafka's design is at least 2 times the old one's; in part from 1.2 times.",
        ),
        Claim(
            "The new design needs less CPU at the same rate.",
            _MATSUDA,
            _cpu,
            "Held if the old design spends at least 1.1 times the CPU, at the highest rate of which both end 95 %.",
        ),
        Claim(
            "Ours takes 300,000 requests a second from Python, on two cores.",
            "Abeyance's own aim",
            _ours_at_300k,
            "Held from 300,000 requests/s; in part from 200,000.",
        ),
        Claim(
            "What times out is what should: never early, and nothing that would have completed.",
            "laws T1, P1; Kafka truncates both ends to milliseconds",
            _on_time,
            "Held if fewer than 2 % of ours end otherwise than their latency calls for, and none is early.",
        ),
    ],
    "cost": [
        Claim(
            "Starting a timer is O(log n) in a heap, and O(1) on a timing wheel.",
            f"{_VARGHESE}; {_MATSUDA}",
            _insert,
            "Held if the wheel's cost grows 1.5-fold at most, and the heap's more in each order. Not held if the "
            "heap's grows no more even where each is the earliest, or if the wheel's grows more than 1.5-fold and "
            "more than the heap's at random.",
        ),
        Claim(
            "Stopping one is O(n) in a delay queue, O(log n) in a heap that knows places, and O(1) on a wheel.",
            f"{_VARGHESE}; {_MATSUDA}",
            _delete,
            "Held if the cost grows more than 10-fold in the delay queue, more than 1.5-fold in the heap, "
            "and at most 1.5-fold on the wheel. Held in part if it does so in the delay queue only.",
        ),
        Claim(
            "Taking out what is due is O(log n) in a heap, and O(1) on a wheel.",
            _VARGHESE,
            _expiring,
            "Held if the heap's cost grows more than 1.5-fold, and the wheel's at most 1.5-fold. Held in part if "
            "the wheel's grows less than the heap's.",
        ),
        Claim(
            "A heap that deletes lazily pays for it in a stall.",
            "CPython's asyncio; law T4",
            _stall,
            "Held if the heap's turn takes more than 10 times the wheel's.",
        ),
    ],
    "precision": [
        Claim(
            "A hashed wheel is approximate; a hierarchical one keeps its tick at any delay.",
            f"Netty; {_VARGHESE}; law T2",
            _exact,
            "Held if the wheel is less than 1 ms late, the hashed wheel more than 90 ms, and no task is early.",
        ),
        Claim(
            "A wheel that does not cascade is late by 12.5 % of the delay at most.",
            "Linux kernel/time/timer.c, its introductory comment",
            _eighth,
            "Held up to 12.5 % of the delay; in part up to 8/63 of it.",
        ),
    ],
    "purge": [
        Claim(
            "Completed operations stay on the lists of slow keys; with a large purge interval they fill the memory.",
            "Apache Kafka: fetch and producer purgatory purge intervals; law P4",
            _memory,
            "Held if the largest interval needs at least 3 times the memory of the smallest; in part from 1.3 times.",
        ),
        Claim(
            "A small purge interval costs CPU.",
            "the same trade-off, from its other side",
            _frequent,
            "Held if the smallest interval costs at least 1.2 times the least CPU; in part if purges look at"
            " more than at the largest interval.",
        ),
    ],
    "geometry": [
        Claim(
            "A task cascades once for each overflow wheel at most; in practice much less.",
            _VARGHESE,
            _cascades,
            "Held if no cell has more cascades a task than levels less one.",
        ),
        Claim(
            "A delay queue of buckets is touched far less often than one of tasks, so its O(log n) does not matter.",
            _MATSUDA,
            _bucket_queue,
            "Held if with 1 ms and 20 buckets every trace has less than 1 operation a task; in part if some has.",
        ),
    ],
    "idle": [
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
    ],
}


def judged(claim: Claim, run: Run) -> Finding:
    """The finding; not decided where the run lacks what the claim is about.

    Times of a quick run or a busy machine may speak for a claim, never against it: that is inconclusive.
    """
    try:
        found = claim.judge(run)
    except (KeyError, IndexError, ValueError):
        return Finding("not decided", "the run lacks cells that decide it")
    fell_short = found.verdict in ("held in part", "not held here")
    if fell_short and run.doubt is not None and EXPERIMENTS[run.experiment].clock == "real":
        return Finding("inconclusive", f"{found.figure}; {run.doubt}")
    return found
