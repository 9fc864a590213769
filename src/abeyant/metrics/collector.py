"""The collector for prometheus-client's registry. It reads the counts at each scrape, and only then."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, Self

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric

from abeyant.metrics.readers import Kind, kind_of
from abeyant.metrics.series import Family, Histogram, Reading

_NAMES: Final = ("abeyant", "kafka")
_INFINITY: Final = float("inf")


class Collector:
    """Puts the counts of timers, purgatories, idle detectors and brokers into a Prometheus registry.

    A scrape reads, in its own thread, the counts that these things keep anyway; nothing more is counted. The things are
    held weakly: when a thing is garbage-collected, its series end. Any number of collectors may share a registry: a
    thing in two collectors is listed once, and a second thing of the same name gets the suffix "-2".

    Examples:
        >>> from prometheus_client import CollectorRegistry, generate_latest
        >>> registry, timer = CollectorRegistry(), ManualTimer()
        >>> collector = Collector(registry=registry, retries=timer)  # labelled "retries"
        >>> task = timer.call_later(5.0, print)
        >>> 'abeyant_timer_pending{timer="retries"} 1.0' in generate_latest(registry).decode()
        True
    """

    def __init__(
        self,
        *things: object,
        registry: CollectorRegistry = REGISTRY,
        names: Literal["abeyant", "kafka"] = "abeyant",
        **named: object,
    ) -> None:
        """Register `things` by their own names, and `named` things with the given names as labels. O(things).

        With `names="kafka"`, metrics that Kafka has, too, get the names that Kafka's JMX metrics usually have in
        Prometheus: `kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Produce"}`. The other
        metrics keep their own names. Raises TypeError for a thing without counts.
        """
        if names not in _NAMES:
            raise ValueError(f'names must be "abeyant" or "kafka", not {names!r}')
        entries = [(thing, kind_of(thing), None) for thing in things]
        entries += [(thing, kind_of(thing), name) for name, thing in named.items()]  # type: ignore[misc]
        if not entries:
            raise TypeError("nothing to collect: pass a timer, Purgatory, IdleDetector, event loop or broker Cluster")
        self._registered = _registered_in(registry)
        self._members = [self._registered.add(thing, kind, name, names) for thing, kind, name in entries]

    def close(self) -> None:
        """Remove this collector's things from the registry. A second call does nothing."""
        members, self._members = self._members, []
        for member in members:
            self._registered.remove(member)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Member:
    """One thing whose counts a registry has, with the number of collectors that share it."""

    def __init__(self, thing: object, kind: Kind, name: str, names: str) -> None:
        self.thing = weakref.ref(thing)
        self.kind = kind
        self.names = names
        self.labels = {kind.label: name} if name else {}
        self.uses = 1


class _Registered:
    """The one collector that a registry has for all `Collector`s: a registry may list a metric family only once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: list[_Member] = []

    def add(self, thing: object, kind: Kind, name: str | None, names: str) -> _Member:
        with self._lock:
            self._members = [candidate for candidate in self._members if candidate.thing() is not None]
            for candidate in self._members:
                if candidate.thing() is thing and candidate.names == names:
                    candidate.uses += 1
                    return candidate
            used_names = {candidate.labels.get(kind.label, "") for candidate in self._members if candidate.kind is kind}
            member = _Member(
                thing, kind, _free_name(_name_of(thing, kind) if name is None else name, used_names), names
            )
            self._members.append(member)
            return member

    def remove(self, member: _Member) -> None:
        with self._lock:
            member.uses -= 1
            if not member.uses:
                self._members.remove(member) if member in self._members else None

    def describe(self) -> Sequence[Metric]:
        """Return no metric families, since they change with the members."""
        return ()

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            members = list(self._members)
        families: dict[str, Metric] = {}
        for member in members:
            thing = member.thing()
            if thing is not None:
                for reading in member.kind.read(thing, member.labels):
                    _add(families, reading, member.names == "kafka")
        yield from families.values()


def _add(families: dict[str, Metric], reading: Reading, by_kafka: bool) -> None:
    family, labels = reading.family, dict(reading.labels)
    kafka_series = family.kafka(labels) if by_kafka and family.kafka is not None else None
    name, labels = (f"abeyant_{family.name}", labels) if kafka_series is None else kafka_series
    labels = {label: _text(value) for label, value in labels.items()}
    metric = families.get(name)
    if metric is None:
        metric = families[name] = Metric(name, _help(family), family.kind)
    if isinstance(reading.value, Histogram):
        _add_histogram(metric, labels, reading.value)
    else:
        metric.add_sample(f"{name}_total" if family.kind == "counter" else name, labels, reading.value)


def _add_histogram(metric: Metric, labels: dict[str, str], histogram: Histogram) -> None:
    cumulative_count = 0
    for bound, count in zip([*histogram.bounds, _INFINITY], histogram.counts, strict=True):
        cumulative_count += count
        end = "+Inf" if bound == _INFINITY else repr(float(bound))
        metric.add_sample(f"{metric.name}_bucket", {**labels, "le": end}, cumulative_count)
    metric.add_sample(f"{metric.name}_count", labels, cumulative_count)
    metric.add_sample(f"{metric.name}_sum", labels, histogram.total)


def _help(family: Family) -> str:
    return f"{family.text} Kafka: {family.mbean}." if family.mbean else family.text


def _text(value: str) -> str:
    """Return a label's value with lone surrogates escaped, which a name may contain but UTF-8 cannot encode."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _name_of(thing: Any, kind: Kind) -> str:
    name = getattr(thing, "name", None)
    if isinstance(name, str):
        return name
    return "" if kind.label == "cluster" else f"{type(thing).__module__.split('.')[-1]}"


def _free_name(name: str, used_names: set[str]) -> str:
    number = 1
    while (candidate := name if number == 1 else f"{name}-{number}".lstrip("-")) in used_names:
        number += 1
    return candidate


_lock = threading.Lock()
_roots: weakref.WeakKeyDictionary[CollectorRegistry, _Registered] = weakref.WeakKeyDictionary()


def _registered_in(registry: CollectorRegistry) -> _Registered:
    """Return the registry's one `_Registered`; make and register it at the first call."""
    if not callable(getattr(registry, "register", None)):
        raise TypeError(f"registry must be a prometheus_client.CollectorRegistry, not {registry!r}")
    with _lock:
        collector = _roots.get(registry)
        if collector is None:
            collector = _roots[registry] = _Registered()
            registry.register(collector)
        return collector
