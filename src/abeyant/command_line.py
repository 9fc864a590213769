"""The parser of every command: argparse, with `--debug` anywhere, "did you mean", and one-line errors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from abeyant.errors import did_you_mean

__all__ = ["CommandParser"]


class CommandParser(argparse.ArgumentParser):
    """A parser of a command or a sub-command: argparse creates parsers of sub-commands with the class of the parent."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        # SUPPRESS: a default would let a sub-command without --debug overwrite its parent's.
        self.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of errors"
        )

    def error(self, message: str) -> NoReturn:
        """End the program with status 2 and a one-line error, without the usage, which `--help` prints."""
        text = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {text} (see {self.prog} --help)\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does, but report an unknown option before a missing one."""
        if args is not None:
            self._refuse_unknown(args)
        return super().parse_known_args(args, namespace)

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        options = self._option_string_actions
        above_others = self._subparsers is not None
        for word in words:
            if word == "--" or (above_others and not word.startswith("-")):
                return  # what follows are values, or a sub-command's
            name = word.partition("=")[0]
            # A word with a space is a value to argparse; the beginning of an option stands for all of it.
            if not word.startswith("--") or " " in word or any(option.startswith(name) for option in options):
                continue
            self.error(f"there is no option {name}{did_you_mean(name, options)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if action.choices is not None and error.message is not None:
                error.message += did_you_mean(str(value), map(str, action.choices))
            raise
