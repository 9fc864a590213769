"""Kafka's definitions of its settings: names, types, defaults and valid values. The table is settings.tsv."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

from abeyant.errors import AbeyantError, did_you_mean

Scope = Literal["broker", "topic", "group", "client-metrics"]

# DescribeConfigs' numbers of types
TYPES = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8, "password": 9,
}  # fmt: skip
_INTEGERS = {"short": 15, "int": 31, "long": 63}  # bits
_TABLE = Path(__file__).with_name("settings.tsv")
_NONE = "-"
_DOUBLE = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_RANGE = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?")
_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.+)")
# Settings that a listener has once per SASL mechanism: listener.name.sasl_ssl.plain.sasl.jaas.config
_PER_MECHANISM = (
    "connections.max.reauth.ms", "sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
    "sasl.server.callback.handler.class",
)  # fmt: skip
OAUTHBEARER_OPTIONS = ".oauthbearer.sasl.jaas.config"
"""Suffix of the only `sasl.jaas.config` that has an effect in this broker."""
_OF_TOKENS = (
    "The options of OAUTHBEARER's login module, by Kafka's names: what unsecured tokens need to have, or which "
    "authorities sign the certificate of the server of keys. A broker takes a change up when it starts."
)
SHARED_BY_LISTENERS = ("max.connection.creation.rate", "max.connections", "num.network.threads")
_ONE_OF = re.compile(r"(\(case insensitive\) )?\[([\w, ]+)\]")
_DURATION = re.compile(
    r"P(?=\d|T\d)(?:(\d{1,19})D)?(?:T(?=\d)(?:(\d{1,19})H)?(?:(\d{1,19})M)?(?:(\d{1,19})(?:\.(\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_BY_DURATION = "by_duration:"
_LONGEST_DURATION = (1 << 63) - 1  # seconds, as Java's
_REPLICAS = re.compile(r"\d+:\d+")  # an item in a list of throttled replicas
_NO_EFFECT = "A setting of Apache Kafka without effect in this broker."


class ConfigError(AbeyantError):
    """An unknown setting or an invalid value."""

    def __init__(self, message: str, kafka_message: str | None = None) -> None:
        """Create the error. `kafka_message` is Kafka's message for it, if `message` differs."""
        super().__init__(message)
        self.kafka_message = message if kafka_message is None else kafka_message


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of one setting."""

    name: str
    type: str
    default: str | None
    allowed: str
    change: str
    """The kind of change that is allowed: fixed, dynamic, broker, listener, running or internal, as in the table."""
    fallback: str | None
    """The broker setting that is the default of a topic's or a group's setting."""
    text: str
    base: str | None = None
    """For a setting of a single listener, the name of the same setting for all listeners; else None."""

    @property
    def dynamic(self) -> bool:
        """Return whether the setting may change under this name while the broker runs."""
        return self.change not in ("fixed", "internal")

    @property
    def per_broker(self) -> bool:
        """Return whether the setting can only be changed per broker, like most listener settings."""
        return self.change in ("broker", "listener") and self.base not in SHARED_BY_LISTENERS

    @property
    def hidden(self) -> bool:
        """Return whether DescribeConfigs shows the setting only if it is set."""
        return self.change in ("internal", "running")

    @property
    def unsupported(self) -> str | None:
        """Return the reason why only the default is supported; None if every valid value is supported."""
        return self.text[1:].strip() if self.text.startswith("!") else None

    @property
    def has_effect(self) -> bool:
        """Return whether the setting has an effect in this broker."""
        return bool(self.text) and self.unsupported is None

    @property
    def sensitive(self) -> bool:
        """Return whether the setting's value is secret."""
        return self.type == "password"

    @property
    def documentation(self) -> str:
        """Return a description of the setting's effect in this broker."""
        if self.unsupported is not None:
            return f"Only the default is supported: {self.unsupported}."
        return self.text or _NO_EFFECT

    def parse(self, text: str | None) -> Any:
        """Return the typed value of a text, None for None. Raises ConfigError for an invalid value."""
        if text is None:
            return None
        value = self._typed(text.strip() if self.type != "password" else text)
        if refusal := self._refusal(value):
            invalid_text, reason = refusal
            raise self._invalid(invalid_text, reason)
        return value

    def show(self, text: str | None) -> str | None:
        """Return a value as DescribeConfigs shows it: `TRUE` becomes `true`, and a double `5` becomes `5.0`."""
        value = self.parse(text)
        if isinstance(value, float):
            return text if text == self.default else _java_double(value)
        if isinstance(value, bool):
            return str(value).lower()
        return ",".join(value) if isinstance(value, tuple) else None if value is None else str(value)

    def _typed(self, text: str) -> Any:
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise self._invalid(text, "Expected value to be either true or false")
            return text.lower() == "true"
        if self.type in _INTEGERS:
            number = int(text) if _INTEGER.fullmatch(text) else None  # int() also accepts 1_000
            if number is None or not -(1 << _INTEGERS[self.type]) <= number < 1 << _INTEGERS[self.type]:
                raise self._invalid(text, f"Not a number of type {self.type.upper()}")
            return number
        if self.type == "double":
            match = _DOUBLE.fullmatch(text.strip())  # float() also takes inf, 1_000 and other digits than ASCII's
            if match is None:
                raise self._invalid(text, "Not a number of type DOUBLE")
            return float(match[1])
        if self.type == "list":
            items = tuple(item.strip() for item in text.split(",")) if text else ()
            return tuple(dict.fromkeys(items)) if _ONE_OF.fullmatch(self.allowed) else items
        if self.type == "class" and text != self.default:  # no Java classes here
            raise self._invalid(text, f"Class {text} could not be found.")
        return text

    def _invalid(self, text: str, reason: str) -> ConfigError:
        return ConfigError(f"Invalid value {text} for configuration {self.base or self.name}: {reason}")

    def _refusal(self, value: Any) -> tuple[str, str] | None:
        """Return the invalid part of the value and the reason; None if it is valid."""
        text = str(value)
        if limits := _RANGE.fullmatch(self.allowed):
            least, greatest, beside = limits.groups()
            if beside is not None and not float(least) <= value <= float(greatest):
                either = f"Value must be between {least} and {greatest} or equal to {beside}"
                return None if value == int(beside) else (text, either)
            if value < float(least):
                return text, f"Value must be at least {least}"
            if greatest is not None and value > float(greatest):
                return text, f"Value must be no more than {greatest}"
            return None
        if choice := _ONE_OF.fullmatch(self.allowed):
            return _choice_refusal(value, choice[2].split(", "), fold=bool(choice[1]))
        replicas = self.allowed.startswith("[partitionId]:[brokerId]") and value != ("*",)
        if replicas and not all(map(_REPLICAS.fullmatch, value)):
            form = f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.allowed}"
            return f"[{', '.join(value)}]", form
        if self.allowed.endswith("'by_duration:<PnDTnHnMn.nS>'") and value not in ("earliest", "latest"):
            if value.lower().startswith(_BY_DURATION) and duration_ms(value[len(_BY_DURATION) :]) is not None:
                return None
            either = f"Invalid value `{value}` for configuration {self.name}. The value must be either {self.allowed}."
            return text, either
        if self.allowed == "non-empty string" and not value:
            return text, "String must be non-empty"
        return None


def duration_ms(text: str) -> int | None:
    """Return an ISO 8601 duration of days, hours, minutes and seconds, in ms; None for a text that Java refuses."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    *units, fraction = match.groups("0")
    days, hours, minutes, seconds = map(int, units)
    seconds += ((days * 24 + hours) * 60 + minutes) * 60
    return None if seconds > _LONGEST_DURATION else seconds * 1000 + int(fraction.ljust(3, "0")[:3])


def _choice_refusal(value: Any, choices: list[str], *, fold: bool) -> tuple[str, str] | None:
    allowed = {choice.lower() for choice in choices} if fold else set(choices)
    for item in value if isinstance(value, tuple) else (value,):
        if (item.lower() if fold else item) not in allowed:
            return item, f"String must be one of{' (case insensitive)' if fold else ''}: {', '.join(choices)}"
    return None


def _java_double(value: float) -> str:
    """Return a double as Java writes it: 0.5, 1000.0, 1.0E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        return {"n": "NaN"}.get(exponent, "-Infinity" if sign else "Infinity")
    first, *rest = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"


@cache
def definitions(scope: Scope) -> dict[str, Definition]:
    """Return all settings of a scope by name. The first call reads the table, in about 1 ms."""
    by_name = {}
    for line in _TABLE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        row_scope, name, kind, default, allowed, change, fallback, text = line.split("\t")
        if row_scope == scope:
            value = None if default == _NONE else default
            by_name[name] = Definition(name, kind, value, allowed, change, fallback or None, text)
    return by_name


def definition(scope: Scope, name: str) -> Definition:
    """Return the definition of a setting, or of a listener's setting: `listener.name.ssl.ssl.keystore.location`.

    Raises ConfigError, whose message suggests the nearest name, for an unknown setting.
    """
    settings = definitions(scope)
    if name in settings:
        return settings[name]
    if scope == "broker" and (base := _base(name)) in settings:
        text = _OF_TOKENS if name.endswith(OAUTHBEARER_OPTIONS) else settings[base].text
        return replace(settings[base], name=name, base=base, change="listener", text=text)
    kafka_message = f"Unknown {scope} config name: {name}"
    raise ConfigError(f"{kafka_message}{did_you_mean(name, settings)}", kafka_message)


def _base(name: str) -> str:
    """Return the name of a listener's setting without the listener and the mechanism; "" for any other setting."""
    match = _LISTENER.fullmatch(name)
    if match is None:
        return ""
    return next((base for base in _PER_MECHANISM if match[1].endswith(base)), match[1])
