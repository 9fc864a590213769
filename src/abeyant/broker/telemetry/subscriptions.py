"""Subscriptions to clients' metrics, with the interval of pushes: the CLIENT_METRICS resources (KIP-714).

Kafka: `ClientMetricsConfigs`, which has the same error messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from abeyant.broker.definitions import ConfigError, definition, definitions
from abeyant.broker.errors import ApiError
from abeyant.broker.settings import ConfigEntry, Synonym, entry_of, texts_of
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore

ALL: Final = "*"
"""Prefix that subscribes to all metrics."""

_SOURCE: Final = 7  # DescribeConfigs' number for such a resource as the source of a value
_METRICS, _INTERVAL, _MATCH = "metrics", "interval.ms", "match"
_SHORTEST, _LONGEST = 100, 3_600_000  # ms
_CLIENT_FIELDS: Final = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
)  # fmt: skip


class Subscription(NamedTuple):
    """One CLIENT_METRICS resource."""

    metrics: tuple[str, ...]
    """Prefixes of the metrics' names; "*" for all."""
    interval: float
    """Seconds between pushes."""
    match: tuple[tuple[str, re.Pattern[str]], ...]
    """(client field, regular expression) pairs, which all have to match. Each field occurs once."""

    def matches(self, client: Mapping[str, str]) -> bool:
        """Return whether the subscription is for a client with these fields."""
        return all(pattern.fullmatch(client[field]) for field, pattern in self.match)


class ClientSubscription(NamedTuple):
    """The metrics that one client has to push, and how often, from all subscriptions that match it."""

    metrics: tuple[str, ...]
    interval: float


class Subscriptions:
    """All subscriptions of a cluster. Use from the loop's thread only."""

    def __init__(self, store: MetadataStore) -> None:
        """Read the subscriptions from `store`."""
        self._store = store
        self._settings = dict(store.client_metrics())
        self._parsed = {name: _parse(settings) for name, settings in self._settings.items()}
        self.version = 0
        """Number of changes to subscriptions since the broker's start."""

    def names(self) -> list[str]:
        """Return the names of all subscriptions."""
        return list(self._settings)

    def own(self, name: str) -> dict[str, str]:
        """Return a subscription's own settings, without defaults; an empty dict if it does not exist."""
        return dict(self._settings.get(name, {}))

    def check(self, settings: Mapping[str, str]) -> None:
        """Raise ApiError, with Kafka's message, for invalid settings."""
        _parse(settings)

    def change(self, name: str, settings: Mapping[str, str]) -> None:
        """Replace a subscription's settings; if `settings` is empty, delete it. Raises ApiError before any change."""
        parsed = _parse(settings)
        self._store.put_client_metrics(name, settings)
        if settings:
            self._settings[name], self._parsed[name] = texts_of(settings), parsed
        else:
            self._settings.pop(name, None)
            self._parsed.pop(name, None)
        self.version += 1

    def client_subscription(self, client: Mapping[str, str]) -> ClientSubscription:
        """Return the metrics that a client with these fields has to push, and how often. O(subscriptions)."""
        matches = [subscription for subscription in self._parsed.values() if subscription.matches(client)]
        default = int(definition("client-metrics", _INTERVAL).default or 0) / 1000
        names = {name for subscription in matches for name in subscription.metrics}
        # As in Kafka, never longer than the default.
        interval = min([default, *(subscription.interval for subscription in matches)])
        return ClientSubscription((ALL,) if ALL in names else tuple(sorted(names)), interval)

    def describe(self, name: str, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """Return a subscription's settings as DescribeConfigs shows them: `names`, or all. Ignores unknown names."""
        config_definitions = definitions("client-metrics")
        selection = config_definitions if names is None else set(names)
        overrides = self.own(name)
        entries = []
        for config in config_definitions.values():
            if config.name in selection:
                text = config.show(overrides.get(config.name, config.default))
                synonyms = (Synonym(config.name, text, _SOURCE),) if config.name in overrides else ()
                entries.append(entry_of(config, text, synonyms, read_only=False))
        return entries


def _parse(settings: Mapping[str, str]) -> Subscription:
    """Parse settings into a subscription. Raises ApiError for an unknown or invalid setting."""
    config_definitions = definitions("client-metrics")
    unknown = next((name for name in settings if name not in config_definitions), None)
    if unknown is not None:
        raise ApiError(ErrorCode.invalid_request, f"Unknown client metrics configuration: {unknown}")
    try:
        values: dict[str, Any] = {
            name: config.parse(settings.get(name, config.default))
            for name, config in definitions("client-metrics").items()
        }
    except ConfigError as error:
        raise ApiError(ErrorCode.invalid_config, error.kafka_message) from None
    interval = values[_INTERVAL]
    if not _SHORTEST <= interval <= _LONGEST:
        text = f"Invalid value {interval} for {_INTERVAL}, interval must be between 100 and 3600000 (1 hour)"
        raise ApiError(ErrorCode.invalid_request, text)
    return Subscription(values[_METRICS], interval / 1000, tuple(dict(map(_pattern, values[_MATCH])).items()))


def _pattern(text: str) -> tuple[str, re.Pattern[str]]:
    """Parse `field=expression`: return the client field and the regular expression. Raises ApiError."""
    field, _, expression = (part.strip() for part in text.partition("="))
    try:
        if field in _CLIENT_FIELDS and expression and "=" not in expression:
            return field, re.compile(expression)
    except (re.error, ValueError, OverflowError, RecursionError, FutureWarning):  # the last if warnings are errors
        pass
    raise ApiError(ErrorCode.invalid_config, f"Illegal client matching pattern: {text}")
