"""Settings under Kafka's own names: what a user gave, what was changed since, Kafka's defaults below.

A setting's value is the first that there is of: the topic's own; the broker's, changed while it runs; all brokers',
changed while they run; what the cluster was started with; Kafka's default. A topic's setting that is not set is the
broker's, under the broker's name for it (`retention.ms` is `log.retention.ms`). So is a group's (group_settings.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from abeyant.broker.definitions import TYPES, ConfigError, Definition, definition, definitions
from abeyant.broker.log import LogConfig

__all__ = [
    "DEFAULT",
    "ConfigEntry",
    "ConfigError",
    "Settings",
    "Synonym",
    "TopicSettings",
    "entry_of",
    "from_python",
    "texts_of",
]

# DescribeConfigs' numbers for where a value comes from
TOPIC, BROKER, ALL_BROKERS, STATIC, DEFAULT = range(1, 6)

_HOUR = 3_600_000  # ms
# One time in several units: the first that is set counts, and the last has a default.
_UNITS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR)),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR)),
    "log.flush.interval.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}
_LOG_CONFIG = {
    "delete_retention_ms": "delete.retention.ms",
    "file_delete_delay_ms": "file.delete.delay.ms",
    "flush_messages": "flush.messages",
    "flush_ms": "flush.ms",
    "max_compaction_lag_ms": "max.compaction.lag.ms",
    "max_message_bytes": "max.message.bytes",
    "message_timestamp_after_max_ms": "message.timestamp.after.max.ms",
    "message_timestamp_before_max_ms": "message.timestamp.before.max.ms",
    "message_timestamp_type": "message.timestamp.type",
    "min_cleanable_dirty_ratio": "min.cleanable.dirty.ratio",
    "min_compaction_lag_ms": "min.compaction.lag.ms",
    "compression_type": "compression.type",
    "retention_bytes": "retention.bytes",
    "retention_ms": "retention.ms",
    "segment_ms": "segment.ms",
}


class Synonym(NamedTuple):
    """One of the places that a value is looked for in."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """What DescribeConfigs tells of a setting."""

    name: str
    value: str | None  # None where it is not set, or is secret
    source: int
    read_only: bool
    sensitive: bool
    type: int
    documentation: str
    synonyms: tuple[Synonym, ...]


class Settings:
    """The brokers' settings: those the cluster was started with, and those changed since."""

    def __init__(self, given: Mapping[str, object] | None = None) -> None:
        """Start with `given`. Raises ConfigError for a name that Kafka does not know, or a value it would refuse."""
        self._static = texts_of(given or {})
        for name, text in self._static.items():
            definition("broker", name).parse(text)
        self._all_brokers: dict[str, str] = {}
        self._brokers: dict[int, dict[str, str]] = {}
        self._own: dict[int, dict[str, str]] = {}
        self._values: dict[tuple[str, int | None], Any] = {}

    @property
    def given(self) -> Mapping[str, str]:
        """What the cluster was started with."""
        return self._static

    def __getitem__(self, name: str) -> Any:
        """The typed value for all brokers. Raises ConfigError for a name that Kafka does not know."""
        return self.value(name)

    def value(self, name: str, broker: int | None = None) -> Any:
        """The typed value for one broker; its own changes come first. O(1)."""
        key = name, broker
        if key not in self._values:
            self._values[key] = definition("broker", name).parse(self._text(name, broker))
        return self._values[key]

    def _text(self, name: str, broker: int | None) -> str | None:
        first = next(self._places(name, broker), None)
        return first.value if first else None

    def _places(self, name: str, broker: int | None) -> Iterator[Synonym]:
        layers = [(BROKER, self._brokers.get(broker, {}))] if broker is not None else []
        layers.append((ALL_BROKERS, self._all_brokers))
        layers.append((STATIC, self._static if broker is None else self._own.get(broker, self._static)))
        for source, layer in layers:
            if name in layer:
                yield Synonym(name, layer[name], source)
        default = definition("broker", name).default
        if default is not None:
            yield Synonym(name, default, DEFAULT)

    def started(self, broker: int, own: Mapping[str, str]) -> None:
        """Note what no two brokers have in common, as each one's settings file has it: its number, where it listens."""
        self._own[broker] = {**self._static, **own}
        self._values.clear()

    def changed(self, broker: int | None) -> dict[str, str]:
        """What was changed for one broker, or with None for all of them, since the start."""
        return dict(self._all_brokers if broker is None else self._brokers.get(broker, {}))

    def check_change(self, given: Mapping[str, object]) -> None:
        """Raise ConfigError for a name that there is not, one that is fixed while the broker runs, or a wrong value."""
        fixed = []
        for name, text in texts_of(given).items():
            found = definition("broker", name)
            if not found.dynamic:
                fixed.append(name)
            found.parse(text)
        if fixed:
            raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")

    def change(self, broker: int | None, given: Mapping[str, object]) -> None:
        """Let `given` be all that is changed for one broker, or with None for all of them. Raises as `check_change`."""
        self.check_change(given)
        texts = texts_of(given)
        if broker is None:
            self._all_brokers = texts
        else:
            self._brokers[broker] = texts
        self._values.clear()

    def for_topic(self, given: Mapping[str, object]) -> TopicSettings:
        """A topic's settings, over these. Raises ConfigError."""
        return TopicSettings(self, given)

    def milliseconds(self, name: str) -> tuple[int, str]:
        """A time that has several units, and the name of the one that counts."""
        for unit, factor in _UNITS[name]:
            if (value := self[unit]) is not None:
                return (value * factor if value >= 0 else value), unit
        return 0, name

    def describe(self, broker: int | None, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """What DescribeConfigs tells of a broker; with None of what was changed for all of them.

        Names that Kafka does not know are left out, as it leaves them out.
        """
        wanted = definitions("broker") if names is None else set(names)
        known = [found for found in definitions("broker").values() if found.name in wanted and not found.internal]
        if broker is None:
            known = [found for found in known if found.name in self._all_brokers]
        return [
            entry_of(found, tuple(self._places(found.name, broker)), read_only=not found.dynamic) for found in known
        ]

    def places(self, name: str) -> tuple[Synonym, ...]:
        """Where a topic's or a group's setting falls back to, in order."""
        return tuple(self._places(name, None))


class TopicSettings:
    """A topic's settings: its own, and the brokers' below."""

    def __init__(self, brokers: Settings, given: Mapping[str, object]) -> None:
        """Raises ConfigError for a name that Kafka does not know, or a value that it would refuse."""
        self.given = texts_of(given)
        self._brokers = brokers
        for name, text in self.given.items():
            definition("topic", name).parse(text)
        least, greatest = self["min.compaction.lag.ms"], self["max.compaction.lag.ms"]
        if least > greatest:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({greatest})"
            )

    def __getitem__(self, name: str) -> Any:
        """The typed value. Raises ConfigError for a name that Kafka does not know."""
        found = definition("topic", name)
        if name in self.given:
            return found.parse(self.given[name])
        if found.fallback in _UNITS:
            return self._brokers.milliseconds(found.fallback)[0]
        return self._brokers[found.fallback] if found.fallback else found.parse(found.default)

    def log_config(self) -> LogConfig:
        """For this topic's logs."""
        values = {field: self[name] for field, name in _LOG_CONFIG.items()}
        return LogConfig(
            cleanup_policy=frozenset(self["cleanup.policy"]),
            segment_bytes=self["internal.segment.bytes"] or self["segment.bytes"],
            producer_expiration_ms=self._brokers["producer.id.expiration.ms"],
            **values,
        )

    def describe(self, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """What DescribeConfigs tells of the topic. Names that Kafka does not know are left out."""
        wanted = definitions("topic") if names is None else set(names)
        return [
            self._describe(found)
            for found in definitions("topic").values()
            if found.name in wanted and not found.internal
        ]

    def _describe(self, found: Definition) -> ConfigEntry:
        places = [Synonym(found.name, self.given[found.name], TOPIC)] if found.name in self.given else []
        if found.fallback:
            places += self._brokers.places(found.fallback)
        entry = entry_of(found, tuple(places), read_only=False)
        if entry.value is None and not found.sensitive:  # the broker's, in another unit
            value = self[found.name]
            unit = self._brokers.milliseconds(found.fallback)[1] if found.fallback in _UNITS else None
            source = self._brokers.places(unit)[0].source if unit else DEFAULT
            text = found.default if source == DEFAULT else str(value)
            entry = entry._replace(value=text, source=source)
        return entry


def entry_of(found: Definition, places: tuple[Synonym, ...], *, read_only: bool) -> ConfigEntry:
    """What DescribeConfigs tells of a setting that was looked for in these places; the first counts."""
    shown = tuple(place._replace(value=None) if found.sensitive else place for place in places)
    return ConfigEntry(
        found.name,
        shown[0].value if shown else None,
        shown[0].source if shown else DEFAULT,
        read_only,
        found.sensitive,
        TYPES[found.type],
        found.documentation,
        shown,
    )


def from_python(given: Mapping[str, object]) -> dict[str, str]:
    """Return settings that a Python program gives as Kafka writes them: `min_insync_replicas` as min.insync.replicas.

    No setting of Kafka's has an underscore. Raises ConfigError for one that is given both ways, or is None.
    """
    found: dict[str, str] = {}
    for written, value in given.items():
        name = str(written).replace("_", ".")
        if name in found:
            raise ConfigError(f"{name} is given twice, with dots and with underscores: leave one out")
        if value is None:
            raise ConfigError(f"{name} is None: leave it out for its default")
        found[name] = _text(value)
    return found


def texts_of(given: Mapping[str, object]) -> dict[str, str]:
    """The values as Kafka writes them: true and not True, lists joined by commas."""
    return {name: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, sorted(value) if isinstance(value, (set, frozenset)) else value))
    return str(value)
