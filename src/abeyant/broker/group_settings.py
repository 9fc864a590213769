"""Settings of groups: Kafka's dynamic group configurations (KIP-848). Their defaults are broker settings.

A group can have settings before it exists and after it is deleted. Kafka: `GroupConfig`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from abeyant.broker.definitions import ConfigError, definition, definitions
from abeyant.broker.errors import ApiError
from abeyant.broker.settings import DEFAULT, ConfigEntry, Synonym, entry_of, texts_of
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore
    from abeyant.broker.settings import Settings

GROUP = 8  # DescribeConfigs' number for a group as the source of a value
_KINDS = ("consumer", "share", "streams")


class GroupSettings:
    """The settings of all groups. Use from the loop's thread only."""

    def __init__(self, brokers: Settings, store: MetadataStore) -> None:
        """Read the groups' settings from `store`."""
        self._brokers = brokers
        self._store = store
        self._groups = dict(store.group_settings())
        self._values: dict[tuple[str, str], Any] = {}

    def names(self) -> list[str]:
        """Return the groups that have settings of their own."""
        return list(self._groups)

    def own(self, group_id: str) -> dict[str, str]:
        """Return a group's own settings."""
        return dict(self._groups.get(group_id, {}))

    def value(self, group_id: str, name: str) -> Any:
        """Return the typed value of a group's setting, by default the broker setting's value. O(1).

        Raises ConfigError for an unknown name.
        """
        text = self._groups[group_id].get(name) if group_id in self._groups else None
        if text is None and f"group.{name}" in definitions("broker"):
            return self._brokers[f"group.{name}"]
        key = group_id, name
        if key not in self._values:
            setting = definition("group", name)
            self._values[key] = setting.parse(setting.default if text is None else text)
        return self._values[key]

    def check(self, settings: Mapping[str, str]) -> None:
        """Raise ApiError, with Kafka's message, for invalid group settings."""
        try:
            typed = {name: definition("group", name).parse(text) for name, text in texts_of(settings).items()}
        except ConfigError as error:
            raise ApiError(ErrorCode.invalid_config, error.kafka_message) from None
        for name, value in typed.items():
            self._check_limits(name, value)
        for kind in _KINDS:
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            longest, shortest = (typed.get(name, self._brokers[f"group.{name}"]) for name in (session, heartbeat))
            if longest <= shortest and (session in typed or heartbeat in typed):
                raise ApiError(ErrorCode.invalid_config, f"{session} must be greater than {heartbeat}")

    def _check_limits(self, name: str, value: Any) -> None:
        kind, _, suffix = name.partition(".")
        for limit, word in (("min", "greater"), ("max", "less")):
            broker = f"group.{kind}.{limit}.{suffix.removeprefix('num.')}"
            if broker not in definitions("broker"):
                continue
            bound = self._brokers[broker]
            if value < bound if limit == "min" else value > bound:
                raise ApiError(ErrorCode.invalid_config, f"{name} must be {word} than or equal to {broker}")

    def change(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Replace a group's settings. Raises ApiError, and changes nothing then."""
        self.check(settings)
        self._store.put_group_settings(group_id, settings)
        if settings:
            self._groups[group_id] = texts_of(settings)
        else:
            self._groups.pop(group_id, None)
        self._values = {key: value for key, value in self._values.items() if key[0] != group_id}

    def describe(self, group_id: str, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """Return the settings `names` of a group, by default all, as DescribeConfigs shows them.

        Unknown names are ignored.
        """
        selected = definitions("group") if names is None else set(names)
        overrides = self.own(group_id)
        entries = []
        for setting in definitions("group").values():
            if setting.name not in selected:
                continue
            synonyms = [Synonym(setting.name, overrides[setting.name], GROUP)] if setting.name in overrides else []
            if setting.fallback:
                synonyms += self._brokers.synonyms(setting.fallback, None)
            else:
                synonyms.append(Synonym(setting.name, setting.default, DEFAULT))
            entries.append(entry_of(setting, synonyms[0].value, tuple(synonyms), read_only=False))
        return entries
