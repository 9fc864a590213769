"""Metrics independent of an output format: families of series, and readings of them.

A family has two names: ours, and the one under which Kafka's own metric arrives in Prometheus through the usual rules
of its JMX exporter (`kafka_server_delayedoperationpurgatory_purgatorysize`), so that dashboards made for Kafka work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable


class Family(NamedTuple):
    """A metric: all series of one name, which differ by their labels."""

    name: str
    """The name without the prefix `abeyant_`, and for a counter without the suffix `_total`."""
    kind: Literal["gauge", "counter", "histogram"]
    text: str
    mbean: str = ""
    """Kafka's name in JMX; empty where Kafka has no such metric."""
    kafka: Callable[[Mapping[str, str]], tuple[str, dict[str, str]] | None] | None = None
    """A function from our labels to the name and labels of Kafka's series; None for a series that Kafka lacks."""


class Histogram(NamedTuple):
    """Counts of durations by size."""

    bounds: Sequence[float]
    """The inclusive upper bounds in seconds, ascending."""
    counts: Sequence[int]
    """The number of durations in each interval that ends at a bound; last the number above all bounds."""
    total: float
    """The sum of all durations, in seconds."""


class Reading(NamedTuple):
    """The value of one series now."""

    family: Family
    labels: Mapping[str, str]
    value: float | Histogram


@runtime_checkable
class Measured(Protocol):
    """An object that lists its own readings, a `Cluster` for instance."""

    def readings(self) -> Iterable[Reading]:
        """Return the object's current readings. Called from the thread that scrapes; it must not block."""


def renamed(name: str, **labels: str) -> Callable[[Mapping[str, str]], tuple[str, dict[str, str]]]:
    """Return a function for `Family.kafka`: it returns `name`, and our `labels` under Kafka's names for them."""
    return lambda values: (name, {kafka_name: values[label] for label, kafka_name in labels.items() if label in values})


def _kafka_expires(labels: Mapping[str, str]) -> tuple[str, dict[str, str]] | None:
    operation = labels["purgatory"]
    if operation not in ("Produce", "Fetch", "DeleteRecords"):
        return None
    kafka_labels = {"broker": labels["broker"]} if "broker" in labels else {}
    return f"kafka_server_delayed{operation.lower()}metrics_expires", kafka_labels


_PURGATORY = "kafka.server:type=DelayedOperationPurgatory"
_KAFKA_PURGATORY = "kafka_server_delayedoperationpurgatory_"

TIMER_PENDING = Family("timer_pending", "gauge", "Tasks that wait for their deadline.")
TIMER_STARTED = Family("timer_started", "counter", "Tasks started.")
TIMER_EXPIRED = Family("timer_expired", "counter", "Tasks handed to their callbacks.")
TIMER_CANCELLED = Family("timer_cancelled", "counter", "Tasks cancelled, or handed back by close().")
TIMER_FAILED = Family("timer_failed", "counter", "Callbacks that raised.")
TIMER_CASCADED = Family("timer_cascaded", "counter", "Times that a task was filed again, in a nearer bucket.")
TIMER_WAKEUPS = Family("timer_wakeups", "counter", "Times that the timer woke to look for due tasks.")
TIMER_UP = Family("timer_up", "gauge", "1 while the timer runs tasks, 0 once it is closed or its thread has ended.")
TIMER_LATENESS = Family(
    "timer_lateness_seconds", "histogram", "Time from a task's deadline to its callback, of a sample of the callbacks."
)
TIMER_CALLBACK = Family(
    "timer_callback_seconds", "histogram", "Time that a callback took, of a sample of the callbacks."
)

LOOP_PENDING = Family("loop_pending", "gauge", "Timers of the event loop that wait for their deadline.")
LOOP_STARTED = Family("loop_started", "counter", "Timers started by call_later and call_at.")
LOOP_EXPIRED = Family("loop_expired", "counter", "Timers whose callbacks the loop has taken.")
LOOP_CANCELLED = Family("loop_cancelled", "counter", "Timers cancelled.")
LOOP_CASCADED = Family("loop_cascaded", "counter", "Times that a timer was filed again, in a nearer bucket.")
LOOP_RUNNING = Family("loop_running", "gauge", "1 while the event loop runs.")

WATCHED = Family(
    "purgatory_watched", "gauge", "Watches: an operation counts once for each of its keys.",
    f"PurgatorySize of {_PURGATORY}",
    renamed(f"{_KAFKA_PURGATORY}purgatorysize", purgatory="delayedoperation", broker="broker"),
)  # fmt: skip
WATCHED_KEYS = Family("purgatory_watched_keys", "gauge", "Keys on which at least one operation waits.")
DELAYED = Family(
    "purgatory_pending", "gauge", "Operations that wait to be completed or to expire.",
    f"NumDelayedOperations of {_PURGATORY}",
    renamed(f"{_KAFKA_PURGATORY}numdelayedoperations", purgatory="delayedoperation", broker="broker"),
)  # fmt: skip
COMPLETED = Family(
    "purgatory_completed", "counter", "Operations completed before their deadline, those at once included."
)
EXPIRED = Family(
    "purgatory_expired", "counter", "Operations that expired.",
    "ExpiresPerSec of kafka.server:type=DelayedProduceMetrics and the like", _kafka_expires,
)  # fmt: skip
CANCELLED = Family("purgatory_cancelled", "counter", "Operations cancelled.")
ERRORS = Family("purgatory_errors", "counter", "Errors of operations' own code that no caller got.")

IDLE_WATCHED = Family("idle_watched", "gauge", "Peers that are watched for silence.")
IDLE_BEGUN = Family("idle_begun", "counter", "Peers seen while they were not watched.")
IDLE_EXPIRED = Family("idle_expired", "counter", "Peers that were silent for too long.")
IDLE_FORGOTTEN = Family("idle_forgotten", "counter", "Peers forgotten, or handed back by close().")
