"""Settings by Kafka's names: static, dynamic and default values.

Lookup order: the topic's own value; the broker's dynamic value; the dynamic value for all brokers; the static value,
with which the cluster was started; Kafka's default. A topic setting falls back on the broker setting for it
(`retention.ms` on `log.retention.ms`), and so does a group setting (group_settings.py).
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

# DescribeConfigs' numbers for the source of a value
TOPIC, BROKER, ALL_BROKERS, STATIC, DEFAULT = range(1, 6)
MIN_ISR = "min.insync.replicas"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
REPLICA_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_HOUR = 3_600_000  # ms
# Times with settings in several units. The first one that is set counts, and the last one has a default.
_UNITS: dict[str, tuple[tuple[str, int], ...]] = {
    "log.retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR)),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR)),
    "log.flush.interval.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
}


class Synonym(NamedTuple):
    """A setting's value from one source."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A setting as DescribeConfigs shows it."""

    name: str
    value: str | None  # None if it is not set, or secret
    source: int
    read_only: bool
    sensitive: bool
    type: int
    documentation: str
    synonyms: tuple[Synonym, ...]


class Settings:
    """The brokers' settings, static and dynamic."""

    def __init__(self, static: Mapping[str, object] | None = None) -> None:
        """Start with the static settings. Raises ConfigError for a name or value that Kafka would refuse."""
        self._static = texts_of(static or {})
        self._all_brokers: dict[str, str] = {}
        self._brokers: dict[int, dict[str, str]] = {}
        self._own: dict[int, dict[str, str]] = {}
        self._values: dict[tuple[str, int | None], Any] = {}
        for name, text in self._static.items():
            _check_start(definition("broker", name), text)
        check_together(self._milliseconds_or_value(None))
        # Kafka sets this one for all brokers when eligible leader replicas (KIP-966) are enabled.
        self._all_brokers[MIN_ISR] = str(self[MIN_ISR])

    @property
    def static(self) -> Mapping[str, str]:
        """Return the settings that the cluster was started with."""
        return self._static

    def __getitem__(self, name: str) -> Any:
        """Return the typed value for all brokers. Raises ConfigError for an unknown name."""
        try:
            return self._values[name, None]
        except KeyError:
            return self.value(name)

    def value(self, name: str, broker: int | None = None) -> Any:
        """Return the typed value for one broker, or with None for all brokers. Raises ConfigError. O(1)."""
        key = name, broker
        if key not in self._values:
            self._values[key] = definition("broker", name).parse(self._text(name, broker))
        return self._values[key]

    def rack(self, broker: int) -> str | None:
        """Return a broker's rack, if it has one."""
        rack: str | None = self.value("broker.rack", broker)
        return rack

    def of_listener(self, name: str, listener: str, broker: int | None = None) -> Any:
        """Return a setting's typed value for a listener: the listener's own value, else the value for all listeners."""
        listener_value = self.value(f"listener.name.{listener.lower()}.{name}", broker)
        return self.value(name, broker) if listener_value is None else listener_value

    def _text(self, name: str, broker: int | None) -> str | None:
        return next((text for layer in self._layers(broker).values() if (text := layer.get(name)) is not None), None)

    def _layers(self, broker: int | None) -> dict[int, Mapping[str, str]]:
        """Return the sources of a broker's settings in lookup order, by DescribeConfigs' numbers."""
        return {
            BROKER: {} if broker is None else self._brokers.get(broker, {}),
            ALL_BROKERS: self._all_brokers,
            STATIC: self._static if broker is None else self._own.get(broker, self._static),
            DEFAULT: _defaults(),
        }

    def synonyms(self, name: str, broker: int | None) -> tuple[Synonym, ...]:
        """Return all values of a setting, the effective value first, with values under its names in other units."""
        names = _synonyms(name)
        synonyms = [
            Synonym(synonym_name, text, source)
            for source, layer in self._layers(broker).items()
            for synonym_name in names
            if (text := layer.get(synonym_name)) is not None
        ]
        start = next((index for index, synonym in enumerate(synonyms) if synonym.name == name), len(synonyms))
        return tuple(synonyms[start:])

    def add_broker(self, broker: int, own: Mapping[str, str]) -> None:
        """Set one broker's own static settings: its id, listeners and log directory."""
        self._own[broker] = {**self._static, **own}
        self._values.clear()

    def names_of(self, broker: int) -> set[str]:
        """Return the names of settings that were changed while brokers ran, for this broker or for all brokers."""
        return {*self._all_brokers, *self._brokers.get(broker, {})}

    def dynamic(self, broker: int | None) -> dict[str, str]:
        """Return the dynamic settings of one broker, or with None the settings for all brokers."""
        return dict(self._all_brokers if broker is None else self._brokers.get(broker, {}))

    def check_change(self, broker: int | None, changes: Mapping[str, object]) -> Settings:
        """Return a copy in which `changes` replace the dynamic settings of one broker, or with None of all brokers.

        Raises ConfigError if Kafka would refuse the change.
        """
        texts = texts_of(changes)
        by_name = {name: definition("broker", name) for name in texts}
        _refuse("Cannot update these configs dynamically", [name for name in texts if not by_name[name].dynamic])
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [name for name in texts if by_name[name].change == "listener" and by_name[name].base is None],
        )
        for name, text in texts.items():
            by_name[name].parse(text)
        if broker is None:
            _refuse(
                "Cannot update these configs at default cluster level, broker id must be specified",
                [name for name in texts if by_name[name].per_broker],
            )
        after = self._after(broker, texts)
        check_together(after._milliseconds_or_value(broker))
        check_change(self._milliseconds_or_value(broker), after._milliseconds_or_value(broker))
        return after

    def _after(self, broker: int | None, texts: dict[str, str]) -> Settings:
        """Return a copy with `texts` as the dynamic settings of one broker, or with None of all brokers."""
        after = copy(self)
        after._values = {}
        if broker is None:
            after._all_brokers = texts
        else:
            after._brokers = {**self._brokers, broker: texts}
        return after

    def change(self, broker: int | None, changes: Mapping[str, object]) -> None:
        """Replace the dynamic settings of one broker, or with None the settings for all. Raises ConfigError."""
        after = self.check_change(broker, changes)
        self._all_brokers, self._brokers = after._all_brokers, after._brokers
        self._values.clear()

    def for_topic(self, own: Mapping[str, object]) -> TopicSettings:
        """Return a topic's settings: `own`, with the brokers' settings as defaults. Raises ConfigError."""
        return TopicSettings(self, own)

    def milliseconds(self, name: str, broker: int | None = None) -> int:
        """Return the value in ms of a time that has settings in several units; -1 for no limit."""
        for unit, factor in _UNITS[name]:
            value: int | None = self.value(unit, broker)
            if value is not None:
                return max(value * factor, -1)
        return 0

    def _milliseconds_or_value(self, broker: int | None) -> Callable[[str], Any]:
        return lambda name: self.milliseconds(name, broker) if name in _UNITS else self.value(name, broker)

    def describe(self, broker: int | None, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """Return a broker's settings as DescribeConfigs shows them; with None, the dynamic settings for all brokers.

        `names` selects settings. Unknown names are ignored, as in Kafka.
        """
        dynamic = {*self._all_brokers, *self._brokers.get(broker if broker is not None else -1, {})}
        candidates = [
            setting for setting in definitions("broker").values() if not setting.hidden or setting.name in dynamic
        ]
        names_set = {**self._static, **dict.fromkeys(dynamic)}
        candidates += [definition("broker", name) for name in names_set if name not in definitions("broker")]
        selected = None if names is None else set(names)
        return [
            self._describe(setting, broker)
            for setting in candidates
            if (selected is None or setting.name in selected)
            and (broker is not None or setting.name in self._all_brokers)
        ]

    def _describe(self, setting: Definition, broker: int | None) -> ConfigEntry:
        synonyms = self.synonyms(setting.name, broker)
        if broker is None:
            synonyms = tuple(synonym for synonym in synonyms if synonym.source == ALL_BROKERS)
        text = self._text(setting.name, broker)
        raw = broker is None or setting.base is not None or setting.change == "running"  # Kafka does not parse those
        read_only = not setting.dynamic or setting.base is not None
        return entry_of(setting, text if raw else setting.show(text), synonyms, read_only=read_only)


class TopicSettings:
    """A topic's own settings, with the settings of one broker, or of all brokers, as defaults."""

    def __init__(self, brokers: Settings, own: Mapping[str, object]) -> None:
        """Check and keep the topic's `own` settings. Raises ConfigError for a name or value that Kafka would refuse."""
        self.own = texts_of(own)
        self._brokers = brokers
        for name, text in self.own.items():
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
        """Return the typed value on one broker. Raises ConfigError for an unknown name."""
        setting = definition("topic", name)
        if name in self.own:
            return setting.parse(self.own[name])
        if setting.fallback in _UNITS:
            return self._brokers.milliseconds(setting.fallback, broker)
        return self._brokers.value(setting.fallback, broker) if setting.fallback else setting.parse(setting.default)

    def log_config(self, broker: int | None = None) -> LogConfig:
        """Return the settings of this topic's logs on one broker."""
        values = {
            "cleanup_policy": frozenset(self.value("cleanup.policy", broker)),
            "segment_bytes": self["internal.segment.bytes"] or self.value("segment.bytes", broker),
            "producer_expiration_ms": self._brokers.value("producer.id.expiration.ms", broker),
        }
        # The other fields have the settings' names, with underscores for dots.
        others = (field.name for field in fields(LogConfig) if field.init and field.name not in values)
        return LogConfig(**values, **{name: self.value(name.replace("_", "."), broker) for name in others})

    def describe(self, names: Iterable[str] | None = None, broker: int | None = None) -> list[ConfigEntry]:
        """Return the topic's settings as one broker's DescribeConfigs shows them.

        `names` selects settings. Unknown names are ignored.
        """
        selected = definitions("topic") if names is None else set(names)
        return [
            self._describe(setting, broker)
            for setting in definitions("topic").values()
            if setting.name in selected and (not setting.hidden or setting.name in self.own)
        ]

    def _describe(self, setting: Definition, broker: int | None) -> ConfigEntry:
        synonyms = self._brokers.synonyms(setting.fallback, broker) if setting.fallback else ()
        if setting.name in self.own:
            text = setting.show(self.own[setting.name])
            synonyms = (Synonym(setting.name, text, TOPIC), *synonyms)
        elif setting.fallback in _UNITS:
            text = str(self.value(setting.name, broker))
        elif setting.fallback:
            text = setting.show(self._brokers._text(setting.fallback, broker))
        else:
            text = setting.default
        return entry_of(setting, text, synonyms, read_only=False)


def _check_start(setting: Definition, text: str) -> None:
    """Raise ConfigError for a static setting that is invalid, dynamic only, or not supported by this broker."""
    value = setting.parse(text)
    base = setting.base or setting.name
    if setting.change == "running":
        raise ConfigError(
            f"{setting.name} can only be set while brokers run: use kafka-configs --alter, or IncrementalAlterConfigs"
        )
    supported = {"authorizer.class.name": AUTHORIZER, "replica.selector.class": REPLICA_SELECTOR}.get(base)
    if supported is not None and value not in ("", supported):
        raise ConfigError(f"{setting.name}={text} is not supported: leave it out, or use {supported}")
    # Kafka's default of "listeners" is not ours: a cluster without it listens on free ports.
    is_default = base != "listeners" and value == setting.parse(definition("broker", base).default)
    if setting.unsupported is not None and not is_default:
        label = setting.name if setting.sensitive else f"{setting.name}={text}"
        raise ConfigError(f"{label} has no effect in this broker: {setting.unsupported}")


def _refuse(reason: str, names: list[str]) -> None:
    if names:
        raise ConfigError(f"{reason}: [{', '.join(names)}]")


def _synonyms(name: str) -> tuple[str, ...]:
    """Return all names under which a setting's value can be set, including `name`."""
    for units in _UNITS.values():
        names = tuple(unit for unit, _ in units)
        if name in names and name != "log.flush.scheduler.interval.ms":
            return names
    base = definition("broker", name).base
    return (name,) if base is None else (name, base)


@cache
def _defaults() -> dict[str, str]:
    return {setting.name: setting.default for setting in definitions("broker").values() if setting.default is not None}


def entry_of(
    definition: Definition, text: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool
) -> ConfigEntry:
    """Return a setting with the value `text` as DescribeConfigs shows it. The first synonym has the value's source."""
    visible_synonyms = tuple(synonym._replace(value=None) if definition.sensitive else synonym for synonym in synonyms)
    return ConfigEntry(
        definition.name,
        None if definition.sensitive else text,
        visible_synonyms[0].source if visible_synonyms else DEFAULT,
        read_only,
        definition.sensitive,
        TYPES[definition.type],
        definition.documentation,
        visible_synonyms,
    )


def from_python(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings' texts by Kafka's names; given names may have dots or underscores: `min_insync_replicas`.

    Only listeners' settings have underscores in Kafka: names such as `listener.name.sasl_ssl.ssl.client.auth` stay.
    Raises ConfigError for a setting that is given in both spellings, and for the value None.
    """
    texts: dict[str, str] = {}
    for key, value in settings.items():
        name = str(key) if str(key).startswith("listener.name.") else str(key).replace("_", ".")
        if name in texts:
            raise ConfigError(f"{name} is given twice, with dots and with underscores: leave one out")
        if value is None:
            raise ConfigError(f"{name} is None: leave it out for its default")
        texts[name] = _text(value)
    return texts


def texts_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings' values as texts in Kafka's form: `true` for True, and lists joined by commas."""
    return {name: _text(value) for name, value in settings.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, sorted(value) if isinstance(value, (set, frozenset)) else value))
    return str(value)
