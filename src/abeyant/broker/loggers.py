"""The levels of this package's loggers, by Kafka's names of levels: the BROKER_LOGGER resources (KIP-412).

All brokers of a process share the loggers below `abeyant` in Python's `logging`. `root` is `abeyant` itself, not the
root of the program's loggers. Kafka: `LoggingController`, `RuntimeLoggerManager`; the messages are Kafka's.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

ROOT: Final = "root"
_TOP: Final = "abeyant"
_TRACE: Final = 5
_LEVELS: Final = {
    "TRACE": _TRACE, "DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}  # fmt: skip
# In Kafka's order
_CHOICES: Final = "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
_ALWAYS: Final = ("abeyant.broker", "abeyant.broker.log")


_LOCK: Final = threading.Lock()
_CHANGED: Final[dict[str, tuple[int, set[Loggers]]]] = {}
"""Changed loggers by Python's names: the original level, and the `Loggers` of the clusters that changed the level."""


class Loggers:
    """The log levels that a cluster has changed. A level is restored once all clusters that changed it are closed."""

    def levels(self) -> dict[str, str]:
        """Return each logger's effective level: its own level, or the level of the nearest parent that has one."""
        known = {*_ALWAYS, *(name for name in logging.root.manager.loggerDict if name.startswith(f"{_TOP}."))}
        names = {ROOT: _TOP} | {name: name for name in sorted(known)}
        return {name: _name_of(logging.getLogger(python).getEffectiveLevel()) for name, python in names.items()}

    def check(self, name: str, level: str | None) -> None:
        """Raise ApiError unless the logger may have this level; None means the level of its parent."""
        if name not in self.levels():
            raise ApiError(ErrorCode.invalid_config, f"Logger {name} does not exist!")
        if level is None:
            if name == ROOT:
                raise ApiError(ErrorCode.invalid_request, "Removing the log level of the root logger is not allowed")
        elif level not in _LEVELS:
            text = f"Cannot set the log level of {name} to {level} as it is not a supported log level. Valid log levels"
            raise ApiError(ErrorCode.invalid_config, f"{text} are {_CHOICES}")

    def change(self, name: str, level: str | None) -> None:
        """Set a logger's level; None makes the logger use the level of its parent."""
        python = logging.getLogger(_TOP if name == ROOT else name)
        with _LOCK:
            _CHANGED.setdefault(python.name, (python.level, set()))[1].add(self)
            if level == "TRACE" and logging.getLevelName(_TRACE) == f"Level {_TRACE}":
                logging.addLevelName(_TRACE, level)
            python.setLevel(logging.NOTSET if level is None else _LEVELS[level])

    def close(self) -> None:
        """Restore the original levels, except of loggers that another open cluster of this process has changed too."""
        with _LOCK:
            for name, (level, by) in list(_CHANGED.items()):
                by.discard(self)
                if not by:
                    logging.getLogger(name).setLevel(level)
                    del _CHANGED[name]


def _name_of(level: int) -> str:
    """Return Kafka's name for a level of Python's `logging`; OFF for a level above FATAL."""
    return next((name for name, number in _LEVELS.items() if level <= number), "OFF")
