"""Check that broker settings do not contradict each other, and refuse the changes that Kafka refuses at run time.

Kafka: `KafkaConfig.validateValues`, and the `BrokerReconfigurable`s; the messages are Kafka's.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from abeyant.broker.definitions import SHARED_BY_LISTENERS, ConfigError, Definition, definition

Values = Callable[[str], Any]
"""A function that returns a setting's typed value; for a time with settings in several units, the value in ms."""

_OVERRIDES = "max.connections.per.ip.overrides"
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
_MOST = (1 << 31) - 1  # connections
_THREADS = (
    "background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
    "num.replica.fetchers", "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size", "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)  # fmt: skip
# Kafka restarts its cleaner when one of these changes.
CLEANER = (
    "log.cleaner.backoff.ms", "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size", "log.cleaner.io.max.bytes.per.second", "log.cleaner.threads", "message.max.bytes",
)  # fmt: skip
_MEGABYTE = 1 << 20


def check_together(values: Values) -> None:
    """Raise ConfigError for settings that contradict each other, and for values of the right type that are invalid."""
    _require(values("log.retention.ms") != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    _require(values("log.roll.ms") >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(values("log.roll.jitter.ms") >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    if values("log.cleaner.threads") < 1:  # Kafka divides by it
        raise ConfigError("log.cleaner.threads must be at least 1", "/ by zero")
    size = values("log.cleaner.dedupe.buffer.size") // values("log.cleaner.threads")
    _require(size > _MEGABYTE, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        for limit, word, sign in (("min", "greater", -1), ("max", "less", 1)):
            bound = f"group.{kind}.{limit}.assignment.interval.ms"
            if values(name) * sign > values(bound) * sign:
                raise ConfigError(f"{name} must be {word} than or equal to {bound}")
    missing = [path for path in values("cordoned.log.dirs") if path not in ("*", *(values("log.dirs") or ()))]
    text = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
    _require(not missing, text + ", ".join(missing))
    _check_connections(values)
    _pairs("listener.security.protocol.map", values("listener.security.protocol.map"))


def _check_connections(values: Values) -> None:
    name = _OVERRIDES
    for _, number in _pairs(name, values(name)):
        if not _NUMBER.fullmatch(number) or abs(int(number)) > _MOST:
            raise ConfigError(f"{name}: {number!r} is not a number of connections", f'For input string: "{number}"')
    overrides(values(name))
    allowed = values("max.connections.per.ip") != 0 or values(name)
    _require(allowed, f"max.connections.per.ip can be set to zero only if {name} property is set.")


@lru_cache(16)
def overrides(text: str) -> dict[str, int]:
    """Return the limits in `host:number,...` by address. Raises ConfigError for a host without an address."""
    limits = {}
    for host, number in _pairs(_OVERRIDES, text):
        address = address_of(host)
        if address is None:
            raise ConfigError(f"{_OVERRIDES}: cannot resolve the host {host!r} in {text!r}")
        limits[address] = int(number)
    return limits


def address_of(host: str) -> str | None:
    """Return a host's address; None if the host has none or its name is invalid. Blocks on the name server."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError, TypeError):  # for a label that is empty or too long, and for a null byte
        return None


def _pairs(name: str, text: str) -> list[tuple[str, str]]:
    """Return the pairs in `a:b,c:d`. Raises ConfigError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = next((part for part in parts if ":" not in part), None)
    if wrong is not None:
        raise ConfigError(
            f"{name}: {wrong!r} has no colon; give pairs such as a:b,c:d",
            f"Error parsing configuration property '{name}': begin 0, end -1, length {len(wrong)}",
        )
    return [(first.strip(), last.strip()) for first, _, last in (part.rpartition(":") for part in parts)]


def check_change(before: Values, after: Values) -> None:
    """Raise ConfigError for a change that Kafka refuses while the broker runs."""
    for name in _THREADS:
        now, then = before(name), after(name)
        limit = ""
        if then < now // 2:
            limit = f"value should be at least half the current value {now}"
        elif then > now * 2:
            limit = f"value should not be greater than double the current value {now}"
        if limit:
            raise _refusal(f"Dynamic thread count update validation failed for {name}={then}, {limit}")
    for name in ("max.connections", "max.connection.creation.rate"):
        if after(name) <= 0:
            raise _refusal(f"Invalid {name} {after(name)}")
    for name, total_name in (
        ("log.local.retention.ms", "log.retention.ms"),
        ("log.local.retention.bytes", "log.retention.bytes"),
    ):
        _check_local(name, after(name), total_name, after(total_name))
    if after("listeners") != before("listeners"):
        raise ConfigError("listeners cannot be changed while the broker runs: restart it with other listeners")
    if not set(after("metric.reporters")) <= {definition("broker", "metric.reporters").default}:
        raise _refusal(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )


def check_listener(
    listener: str, before: Mapping[str, str], after: Mapping[str, str], started: Mapping[str, str]
) -> None:
    """Raise ConfigError if a setting of all listeners changes, and settings of this listener alone have changed.

    Kafka: `DynamicListenerConfig`. Connection limits may change at any time. The mappings are one broker's settings as
    texts: `before` and `after` the change, and at the broker's start (`started`).
    """
    prefix = f"listener.name.{listener.lower()}."
    shared = {
        name for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) and _is_for_listeners(definition("broker", name))
    }  # fmt: skip
    own_names = {
        name for name in started.keys() | after.keys()
        if started.get(name) != after.get(name, started.get(name)) and name.startswith(prefix)
        and definition("broker", name).base not in SHARED_BY_LISTENERS
    }  # fmt: skip
    if shared and own_names:
        raise _refusal(
            f"Configs cannot be updated dynamically for existing listener ListenerName({listener}), restart broker or "
            "create a new listener for update"
        )


def _is_for_listeners(setting: Definition) -> bool:
    """Return whether a setting applies to all listeners."""
    if setting.base is not None or setting.name == "cordoned.log.dirs":
        return False
    return setting.change == "broker" or setting.name in SHARED_BY_LISTENERS


def _check_local(name: str, local: int, total_name: str, limit: int) -> None:
    """Raise ConfigError if `local` exceeds `limit`, the limit for all tiers. -2 means equal to `limit`, -1 no limit."""
    if limit < 0 or local == -2:
        return
    invalid = f"Invalid value {local} for configuration {name}:"
    if local == -1:
        raise _refusal(f"{invalid} Value must not be -1 as {total_name} value is set as {limit}.")
    if local > limit:
        raise _refusal(f"{invalid} Value must not be more than {total_name} property value: {limit}")


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise ConfigError(reason, f"requirement failed: {reason}")


def _refusal(reason: str) -> ConfigError:
    """Return an error whose Kafka message is wrapped as Kafka wraps the errors of a `BrokerReconfigurable`."""
    error = f"org.apache.kafka.common.config.ConfigException: {reason}"
    return ConfigError(reason, f"Invalid value {error} for configuration Invalid dynamic configuration")
