"""Settings under Kafka's own names: static ones, dynamic ones, and Kafka's defaults.

A value is looked for in this order: the topic's own; the dynamic setting of the broker; that of all brokers; what the
cluster was started with; Kafka's default. A topic's setting that is not set is the broker's, under the broker's name
for it (`retention.ms` is `log.retention.ms`). So is a group's (group_settings.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

from abeyant.broker.definitions import TYPES, ConfigError, Definition, definition, definitions
from abeyant.broker.log import LogConfig
from abeyant.broker.reconfiguration import check_change, check_together

# DescribeConfigs' numbers for where a value comes from
TOPIC, BROKER, ALL_BROKERS, STATIC, DEFAULT = range(1, 6)
MIN_ISR = "min.insync.replicas"

_HOUR = 3_600_000  # ms
# One time in several units: the first that is set counts, and the last has a default.
_UNITS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR)),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR)),
    "log.flush.interval.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}


class Synonym(NamedTuple):
    """A value of a setting in one of the places where it is looked for."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A setting as DescribeConfigs describes it."""

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
        self._all_brokers: dict[str, str] = {}
        self._brokers: dict[int, dict[str, str]] = {}
        self._own: dict[int, dict[str, str]] = {}
        self._values: dict[tuple[str, int | None], Any] = {}
        for name, text in self._static.items():
            _check_start(definition("broker", name), text)
        check_together(self._milliseconds_or_value(None))
        # Kafka sets this one for all brokers when eligible leader replicas (KIP-966) are turned on.
        self._all_brokers[MIN_ISR] = str(self[MIN_ISR])

    @property
    def given(self) -> Mapping[str, str]:
        """Return the settings that the cluster was started with."""
        return self._static

    def __getitem__(self, name: str) -> Any:
        """Return the typed value for all brokers. Raises ConfigError for an unknown name."""
        return self.value(name)

    def value(self, name: str, broker: int | None = None) -> Any:
        """Return the typed value for one broker; its own dynamic settings come first. O(1)."""
        key = name, broker
        if key not in self._values:
            self._values[key] = definition("broker", name).parse(self._text(name, broker))
        return self._values[key]

    def of_listener(self, name: str, listener: str, broker: int | None = None) -> Any:
        """Return the typed value for one of a broker's listeners: the listener's own, else that of all listeners."""
        own = self.value(f"listener.name.{listener.lower()}.{name}", broker)
        return self.value(name, broker) if own is None else own

    def _text(self, name: str, broker: int | None) -> str | None:
        return next((text for layer in self._layers(broker).values() if (text := layer.get(name)) is not None), None)

    def _layers(self, broker: int | None) -> dict[int, Mapping[str, str]]:
        """Return where a broker's settings are looked for, in order, by DescribeConfigs' numbers."""
        return {
            BROKER: {} if broker is None else self._brokers.get(broker, {}),
            ALL_BROKERS: self._all_brokers,
            STATIC: self._static if broker is None else self._own.get(broker, self._static),
            DEFAULT: _defaults(),
        }

    def synonyms(self, name: str, broker: int | None) -> tuple[Synonym, ...]:
        """Return all values of a setting, the effective one first, and those of its names in other units."""
        names = _synonyms(name)
        found = [
            Synonym(one, text, source)
            for source, layer in self._layers(broker).items()
            for one in names
            if (text := layer.get(one)) is not None
        ]
        own = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[own:])

    def started(self, broker: int, own: Mapping[str, str]) -> None:
        """Record one broker's own settings: its id, where it listens."""
        self._own[broker] = {**self._static, **own}
        self._values.clear()

    def changed(self, broker: int | None) -> dict[str, str]:
        """Return the dynamic settings of one broker, or with None those of all brokers."""
        return dict(self._all_brokers if broker is None else self._brokers.get(broker, {}))

    def check_change(self, broker: int | None, given: Mapping[str, object]) -> Settings:
        """Return the settings as they are with `given` as all dynamic settings of a broker, or with None of all.

        Raises ConfigError where Kafka would refuse that.
        """
        texts = texts_of(given)
        found = {name: definition("broker", name) for name in texts}
        _refuse("Cannot update these configs dynamically", [name for name in texts if not found[name].dynamic])
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [name for name in texts if found[name].change == "listener" and found[name].base is None],
        )
        for name, text in texts.items():
            found[name].parse(text)
        if broker is None:
            _refuse(
                "Cannot update these configs at default cluster level, broker id must be specified",
                [name for name in texts if found[name].of_one_broker],
            )
        after = self._after(broker, texts)
        check_together(after._milliseconds_or_value(broker))
        check_change(self._milliseconds_or_value(broker), after._milliseconds_or_value(broker))
        return after

    def _after(self, broker: int | None, texts: dict[str, str]) -> Settings:
        """Return these with `texts` as all dynamic settings of a broker, or of all of them."""
        after = copy(self)
        after._values = {}
        if broker is None:
            after._all_brokers = texts
        else:
            after._brokers = {**self._brokers, broker: texts}
        return after

    def change(self, broker: int | None, given: Mapping[str, object]) -> None:
        """Replace the dynamic settings of a broker, or with None those of all brokers. Raises as `check_change`."""
        after = self.check_change(broker, given)
        self._all_brokers, self._brokers = after._all_brokers, after._brokers
        self._values.clear()

    def for_topic(self, given: Mapping[str, object]) -> TopicSettings:
        """Return a topic's settings, with these as its defaults. Raises ConfigError."""
        return TopicSettings(self, given)

    def milliseconds(self, name: str, broker: int | None = None) -> int:
        """Return a time that has several units; -1 for one that has no end."""
        for unit, factor in _UNITS[name]:
            value: int | None = self.value(unit, broker)
            if value is not None:
                return max(value * factor, -1)
        return 0

    def _milliseconds_or_value(self, broker: int | None) -> Callable[[str], Any]:
        return lambda name: self.milliseconds(name, broker) if name in _UNITS else self.value(name, broker)

    def describe(self, broker: int | None, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """Return what DescribeConfigs shows of a broker; with None, the dynamic settings of all of them.

        Unknown names are left out, as Kafka leaves them out.
        """
        changed = {*self._all_brokers, *self._brokers.get(broker if broker is not None else -1, {})}
        known = [found for found in definitions("broker").values() if not found.hidden or found.name in changed]
        given = {**self._static, **dict.fromkeys(changed)}
        known += [definition("broker", name) for name in given if name not in definitions("broker")]
        wanted = None if names is None else set(names)
        return [
            self._describe(found, broker)
            for found in known
            if (wanted is None or found.name in wanted) and (broker is not None or found.name in self._all_brokers)
        ]

    def _describe(self, found: Definition, broker: int | None) -> ConfigEntry:
        synonyms = self.synonyms(found.name, broker)
        if broker is None:
            synonyms = tuple(one for one in synonyms if one.source == ALL_BROKERS)
        text = self._text(found.name, broker)
        raw = broker is None or found.base is not None or found.change == "running"  # Kafka does not parse those
        read_only = not found.dynamic or found.base is not None
        return entry_of(found, text if raw else found.show(text), synonyms, read_only=read_only)


class TopicSettings:
    """A topic's settings: its own, else a broker's, or where no broker is named those of all brokers."""

    def __init__(self, brokers: Settings, given: Mapping[str, object]) -> None:
        """Raises ConfigError for a name that Kafka does not know, or a value that it would refuse."""
        self.given = texts_of(given)
        self._brokers = brokers
        for name, text in self.given.items():
            definition("topic", name).parse(text)
        if self["remote.storage.enable"]:
            raise ConfigError(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
                "storage."
            )
        least, greatest = self["min.compaction.lag.ms"], self["max.compaction.lag.ms"]
        if least > greatest:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({greatest})"
            )

    def __getitem__(self, name: str) -> Any:
        """Return the typed value. Raises ConfigError for an unknown name."""
        return self.value(name)

    def value(self, name: str, broker: int | None = None) -> Any:
        """Return the typed value on one broker. Raises ConfigError for a name that Kafka does not know."""
        found = definition("topic", name)
        if name in self.given:
            return found.parse(self.given[name])
        if found.fallback in _UNITS:
            return self._brokers.milliseconds(found.fallback, broker)
        return self._brokers.value(found.fallback, broker) if found.fallback else found.parse(found.default)

    def log_config(self, broker: int | None = None) -> LogConfig:
        """Return the settings of this topic's logs on one broker."""
        values = {
            "cleanup_policy": frozenset(self.value("cleanup.policy", broker)),
            "segment_bytes": self["internal.segment.bytes"] or self.value("segment.bytes", broker),
            "producer_expiration_ms": self._brokers.value("producer.id.expiration.ms", broker),
        }
        others = (field.name for field in fields(LogConfig) if field.name not in values)  # `retention_ms`: retention.ms
        return LogConfig(**values, **{name: self.value(name.replace("_", "."), broker) for name in others})

    def describe(self, names: Iterable[str] | None = None, broker: int | None = None) -> list[ConfigEntry]:
        """Return what one broker's DescribeConfigs shows. Unknown names are left out."""
        wanted = definitions("topic") if names is None else set(names)
        return [
            self._describe(found, broker)
            for found in definitions("topic").values()
            if found.name in wanted and (not found.hidden or found.name in self.given)
        ]

    def _describe(self, found: Definition, broker: int | None) -> ConfigEntry:
        synonyms = self._brokers.synonyms(found.fallback, broker) if found.fallback else ()
        if found.name in self.given:
            text = found.show(self.given[found.name])
            synonyms = (Synonym(found.name, text, TOPIC), *synonyms)
        elif found.fallback in _UNITS:
            text = str(self.value(found.name, broker))
        elif found.fallback:
            text = found.show(self._brokers._text(found.fallback, broker))
        else:
            text = found.default
        return entry_of(found, text, synonyms, read_only=False)


def _check_start(found: Definition, text: str) -> None:
    """Raise ConfigError for a setting with which a cluster cannot start."""
    value = found.parse(text)
    base = found.base or found.name
    if found.change == "running":
        raise ConfigError(f"{found.name} is set while brokers run: kafka-configs --alter, or IncrementalAlterConfigs")
    # A cluster without "listeners" listens at free ports, and not where Kafka does.
    is_default = base != "listeners" and value == found.parse(definition("broker", base).default)
    if found.refused is not None and not is_default:
        shown = found.name if found.sensitive else f"{found.name}={text}"
        raise ConfigError(f"{shown} has no effect in this broker: {found.refused}")


def _refuse(why: str, names: list[str]) -> None:
    if names:
        raise ConfigError(f"{why}: [{', '.join(names)}]")


def _synonyms(name: str) -> tuple[str, ...]:
    """Return the names under which a value is looked for, this one included."""
    for units in _UNITS.values():
        names = tuple(unit for unit, _ in units)
        if name in names and name != "log.flush.scheduler.interval.ms":
            return names
    base = definition("broker", name).base
    return (name,) if base is None else (name, base)


@cache
def _defaults() -> dict[str, str]:
    return {one.name: one.default for one in definitions("broker").values() if one.default is not None}


def entry_of(found: Definition, text: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool) -> ConfigEntry:
    """Return what DescribeConfigs shows of a setting with this value, which is the first of its synonyms."""
    shown = tuple(one._replace(value=None) if found.sensitive else one for one in synonyms)
    return ConfigEntry(
        found.name,
        None if found.sensitive else text,
        shown[0].source if shown else DEFAULT,
        read_only,
        found.sensitive,
        TYPES[found.type],
        found.documentation,
        shown,
    )


def from_python(given: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of a Python program under Kafka's names: `min_insync_replicas` as min.insync.replicas.

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
    """Return values as Kafka writes them: true and not True, lists joined by commas."""
    return {name: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, sorted(value) if isinstance(value, (set, frozenset)) else value))
    return str(value)
