"""Loggers of a broker: described, and their levels altered. Which loggers there are differs; a name stands for one."""

from __future__ import annotations

from ..messages import Plain
from ..scenario import Stage, scenario, table
from .configs import APPEND, DELETE, SET, SUBTRACT, described, stepwise

BROKER_LOGGER = 8
DESCRIBE, ALTER = "DescribeConfigs", "IncrementalAlterConfigs"


def levels(stage: Stage, broker: int = 1) -> dict[str, str]:
    said = stage.do(DESCRIBE, described(BROKER_LOGGER, str(broker), None), to=broker)
    return {row["name"]: row["value"] for row in said["results"][0]["configs"]}


def some_logger(stage: Stage) -> str:
    """One that there is, and that has none below it."""
    names = sorted(name for name in levels(stage) if name != "root")
    return next(name for name in reversed(names) if not any(one.startswith(f"{name}.") for one in names))


def named(said: Plain, name: str) -> Plain:
    """The same without the logger's name."""
    if isinstance(said, dict):
        return {key: named(value, name) for key, value in said.items()}
    if isinstance(said, list):
        return [named(one, name) for one in said]
    return said.replace(name, "the logger") if isinstance(said, str) else said


def ask(stage: Stage, api: str, body: dict[str, Plain], name: str, *, to: int = 1) -> None:
    version = stage.version(api)
    stage.note(f"{api} v{version}", named(stage.do(api, body, to=to, version=version), name))


@scenario(DESCRIBE)
def described_by_name(stage: Stage) -> None:
    name = some_logger(stage)
    stage.do(ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, "ERROR")))
    ask(stage, DESCRIBE, described(BROKER_LOGGER, "1", [name], synonyms=True, documentation=True), name)
    ask(stage, DESCRIBE, described(BROKER_LOGGER, "1", [name]), name)
    stage.do(ALTER, stepwise(BROKER_LOGGER, "1", (DELETE, name, None)))


@scenario(DESCRIBE, at=(1, 4))
def described_that_is_not_there(stage: Stage) -> None:
    stage.ask(DESCRIBE, described(BROKER_LOGGER, "1", ["no.such.logger"]))


@scenario()
def all_of_them(stage: Stage) -> None:
    found = levels(stage)
    stage.note("root is there, and others", ["root" in found, len(found) > 2])
    known = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"}
    stage.note("all have levels", set(found.values()) <= known)


@table(DESCRIBE, at=(1, 4), empty=("",), other_broker=("2",), no_such_broker=("99",), no_number=("one",))
def described_by_broker(stage: Stage, broker: str) -> None:
    stage.ask(DESCRIBE, described(BROKER_LOGGER, broker, ["root"]))


@table(
    ALTER,
    trace=("TRACE",), debug=("DEBUG",), info=("INFO",), warn=("WARN",), error=("ERROR",), fatal=("FATAL",),
)  # fmt: skip
def level(stage: Stage, wanted: str) -> None:
    name = some_logger(stage)
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, wanted)), name)
    stage.note("level", levels(stage)[name])
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (DELETE, name, None)), name)
    stage.note("as before", levels(stage)[name] != "FATAL")


@table(ALTER, at=(0, 1), off=("OFF",), all=("ALL",), lower_case=("debug",), unknown=("VERBOSE",), empty=("",))
def level_that_is_none(stage: Stage, wanted: str) -> None:
    name = some_logger(stage)
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, wanted)), name)


@table(ALTER, at=(0, 1), append=(APPEND,), subtract=(SUBTRACT,))
def operation_that_loggers_lack(stage: Stage, operation: int) -> None:
    name = some_logger(stage)
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (operation, name, "DEBUG")), name)


@table(ALTER, at=(0, 1), set=(SET, "DEBUG"), deleted=(DELETE, None))
def logger_that_is_not_there(stage: Stage, operation: int, wanted: str | None) -> None:
    stage.ask(ALTER, stepwise(BROKER_LOGGER, "1", (operation, "no.such.logger", wanted)))


@scenario(ALTER)
def root(stage: Stage) -> None:
    before = levels(stage)["root"]
    stage.ask(ALTER, stepwise(BROKER_LOGGER, "1", (SET, "root", "ERROR")))
    stage.note("level", levels(stage)["root"])
    stage.ask(ALTER, stepwise(BROKER_LOGGER, "1", (SET, "root", before)))
    stage.ask(ALTER, stepwise(BROKER_LOGGER, "1", (DELETE, "root", None)))


@scenario(ALTER, at=(1,))
def one_is_wrong(stage: Stage) -> None:
    """Then none changes."""
    name = some_logger(stage)
    before = levels(stage)[name]
    steps = (SET, name, "FATAL"), (SET, "no.such.logger", "DEBUG")
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", *steps), name)
    stage.note("unchanged", levels(stage)[name] == before)


@scenario(ALTER, at=(1,))
def only_validated(stage: Stage) -> None:
    name = some_logger(stage)
    before = levels(stage)[name]
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, "FATAL"), validate_only=True), name)
    stage.note("unchanged", levels(stage)[name] == before)


@scenario(ALTER, at=(0, 1))
def without_a_value(stage: Stage) -> None:
    name = some_logger(stage)
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, None)), name)


@scenario(ALTER, at=(0, 1))
def one_logger_twice(stage: Stage) -> None:
    name = some_logger(stage)
    ask(stage, ALTER, stepwise(BROKER_LOGGER, "1", (SET, name, "INFO"), (DELETE, name, None)), name)


@table(ALTER, at=(1,), empty=("",), other_broker=("2",), no_such_broker=("99",), no_number=("one",))
def altered_by_broker(stage: Stage, broker: str) -> None:
    stage.ask(ALTER, stepwise(BROKER_LOGGER, broker, (SET, "root", "INFO")))


@scenario("AlterConfigs", at=(0, 2))
def all_at_once(stage: Stage) -> None:
    row = {"resource_type": BROKER_LOGGER, "resource_name": "1", "configs": [{"name": "root", "value": "INFO"}]}
    stage.ask("AlterConfigs", {"resources": [row]})
