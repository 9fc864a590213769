"""Kafka's definitions of its settings: names, types, defaults, what values each may have. The table is settings.tsv."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from abeyant.errors import AbeyantError

Scope = Literal["broker", "topic", "group"]

# DescribeConfigs' numbers
TYPES = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8, "password": 9,
}  # fmt: skip
_INTEGERS = {"short": 15, "int": 31, "long": 63}  # bits
_TABLE = Path(__file__).with_name("settings.tsv")
_NONE = "-"
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_RANGE = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?")
_ONE_OF = re.compile(r"(\(case insensitive\) )?\[([\w, ]+)\]")
_DURATION = re.compile(r"by_duration:P(?=\d|T\d)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE)
_REPLICAS = re.compile(r"\*|\d+:\d+")  # one of a list of throttled replicas
_NO_EFFECT = "A setting of Apache Kafka that changes nothing in this broker."


class ConfigError(AbeyantError):
    """A setting that does not exist, or a value that it cannot have. `kafka_message` is what Kafka says of it."""

    def __init__(self, message: str, kafka_message: str | None = None) -> None:
        """Keep both; they are the same unless ours helps more."""
        super().__init__(message)
        self.kafka_message = message if kafka_message is None else kafka_message


@dataclass(frozen=True, slots=True)
class Definition:
    """One setting."""

    name: str
    type: str
    default: str | None
    allowed: str
    dynamic: bool
    internal: bool
    fallback: str | None  # the broker's setting that a topic or a group goes by
    text: str

    @property
    def sensitive(self) -> bool:
        """Whether its value is told to nobody."""
        return self.type == "password"

    @property
    def documentation(self) -> str:
        """What it does here."""
        return self.text or _NO_EFFECT

    def parse(self, text: str | None) -> Any:
        """The typed value of a setting's text; None stays None. Raises ConfigError."""
        if text is None:
            return None
        value = self._typed(text.strip() if self.type != "password" else text)
        reason = self._refusal(value)
        if reason:
            raise ConfigError(f"Invalid value {text} for configuration {self.name}: {reason}")
        return value

    def _typed(self, text: str) -> Any:
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise self._wrong(text, "Expected value to be either true or false")
            return text.lower() == "true"
        if self.type in _INTEGERS:
            number = int(text) if _INTEGER.fullmatch(text) else None  # Python's own takes 1_000 too
            if number is None or not -(1 << _INTEGERS[self.type]) <= number < 1 << _INTEGERS[self.type]:
                raise self._wrong(text, f"Not a number of type {self.type.upper()}")
            return number
        if self.type == "double":
            try:
                return float(text)
            except ValueError:
                raise self._wrong(text, "Not a number of type DOUBLE") from None
        if self.type == "list":
            return tuple(item.strip() for item in text.split(",")) if text else ()
        return text

    def _wrong(self, text: str, reason: str) -> ConfigError:
        return ConfigError(f"Invalid value {text} for configuration {self.name}: {reason}")

    def _refusal(self, value: Any) -> str | None:
        """Why the value is not allowed; None if it is."""
        if limits := _RANGE.fullmatch(self.allowed):
            least, greatest, beside = limits.groups()
            if beside is not None and value == int(beside):
                return None
            if value < float(least):
                return f"Value must be at least {least}"
            if greatest is not None and value > float(greatest):
                return f"Value must be no more than {greatest}"
            return None
        if choice := _ONE_OF.fullmatch(self.allowed):
            return _choice_refusal(value, choice[2].split(", "), fold=bool(choice[1]))
        if self.allowed.startswith("[partitionId]:[brokerId]") and not all(map(_REPLICAS.fullmatch, value)):
            return f"{self.name} must be the literal '*' or a list of replicas in the following format: {self.allowed}"
        if self.allowed.endswith("'by_duration:<PnDTnHnMn.nS>'") and value not in ("earliest", "latest"):
            if _DURATION.fullmatch(value):
                return None
            return f"Invalid value `{value}` for configuration {self.name}. The value must be either {self.allowed}."
        if self.allowed == "non-empty string" and not value:
            return "String must be non-empty"
        return None


def _choice_refusal(value: Any, choices: list[str], *, fold: bool) -> str | None:
    known = {choice.lower() for choice in choices} if fold else set(choices)
    items = value if isinstance(value, tuple) else (value,)
    if all((item.lower() if fold else item) in known for item in items):
        return None
    return f"String must be one of{' (case insensitive)' if fold else ''}: {', '.join(choices)}"


@cache
def definitions(scope: Scope) -> dict[str, Definition]:
    """Every setting of a broker, of a topic or of a group, by its name. Read once, in about a millisecond."""
    found = {}
    for line in _TABLE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        of, name, kind, default, allowed, change, fallback, text = line.split("\t")
        if of == scope:
            found[name] = Definition(
                name,
                kind,
                None if default == _NONE else default,
                allowed,
                dynamic=change != "fixed",
                internal=change == "internal",
                fallback=fallback or None,
                text=text,
            )
    return found


def definition(scope: Scope, name: str) -> Definition:
    """The definition of one setting. Raises ConfigError, with the nearest name, where there is none."""
    known = definitions(scope)
    if name in known:
        return known[name]
    from difflib import get_close_matches  # needed for mistakes only

    near = get_close_matches(name, known, 1)
    hint = f"; the nearest is {near[0]}" if near else ""
    kafka = f"Unknown {scope} config name: {name}"
    raise ConfigError(kafka + hint, kafka)
