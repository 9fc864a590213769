"""Options of `abeyant resolve` and `stream` that define when an operation completes (docs/design-resolve.md)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.errors import AbeyantError

if TYPE_CHECKING:
    from abeyant.tables.calendar import Calendar

__all__ = ["DEFAULTS", "RULES", "add_rules", "rules_of"]

# Repeats `abeyant.resolver.rules`, whose import would load NumPy for every command.
RULES: Final = {
    "count": ("always", "from_start", "after_start"),
    "combine": ("max", "sum", "last"),
    "holds": ("ever", "at_deadline"),
    "serves": ("every", "oldest", "newest"),
    "within": ("whole", "step"),
}
"""The values of each option; the first is the default."""
DEFAULTS: Final[dict[str, Any]] = {name: values[0] for name, values in RULES.items()} | {
    "calendar": None,
    "details": False,
}
_HELP: Final = {
    "count": "events that count: all up to now, those from the operation's start on, or after it",
    "combine": "progress of several events: the maximum, the sum, or the last",
    "holds": "when the condition is checked: at every instant, or only at the deadline",
    "serves": "operations that an event serves: every one, or only the oldest or newest",
    "within": "with condition 'then': one time-out for all steps, or one for each step",
}


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add --count, --combine, --holds, --serves, --within, --calendar, --holidays and --details."""
    group = parser.add_argument_group("when an operation completes", "Defined in docs/design-resolve.md.")
    for name, values in RULES.items():
        group.add_argument(f"--{name}", choices=values, default=values[0], help=_HELP[name] + " (default: %(default)s)")
    group.add_argument(
        "--calendar",
        type=_calendar,
        metavar="HOURS",
        help="business hours: time-outs count down only then, such as 'Mon-Fri 09:00-17:00 Europe/Berlin' (default "
        "zone: UTC); with 'Mon-Fri 00:00-24:00', '2 days' are two business days",
    )
    group.add_argument(
        "--holidays",
        type=_holidays,
        metavar="DATES",
        help="days without business hours: 2026-12-25,2026-12-26, or a file of one date per line",
    )
    group.add_argument(
        "--details", action="store_true", help="add columns to the outcomes: the watch that decided, events counted"
    )


def rules_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options as arguments of `resolve` and `resolve_stream`.

    Raises `AbeyantError` for options that exclude each other, and for holidays without a calendar.
    """
    from abeyant.resolver.rules import Rules

    rules = {name: getattr(args, name) for name in DEFAULTS}
    if args.calendar is not None:
        rules["calendar"] = args.calendar(holidays=args.holidays or [])
    elif args.holidays is not None:
        raise AbeyantError("--holidays needs --calendar: without one, every hour of every day counts")
    try:
        Rules(deadline=args.deadline, **rules)
    except ValueError as error:
        raise AbeyantError(str(error)) from error
    return rules


def _calendar(text: str) -> Callable[..., Calendar]:
    """Parse hours and zone; return a function of `holidays` that makes the calendar."""
    from abeyant.tables.calendar import Calendar

    hours, _, last = text.rpartition(" ")
    make = partial(Calendar, text) if ":" in last else partial(Calendar, hours, zone=last)
    try:
        make()
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return make


def _holidays(text: str) -> list[date]:
    try:
        return sorted({date.fromisoformat(day.strip()) for day in text.split(",")})
    except ValueError as error:
        if not Path(text).is_file():
            raise argparse.ArgumentTypeError(f"{text!r} is neither a file nor dates such as 2026-12-25") from error
    days = set[date]()
    lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    for number, line in enumerate(lines, 1):
        day, *_ = re.split(r"[\s,;#]", line.strip(), maxsplit=1)  # a name may follow
        if day:
            try:
                days.add(date.fromisoformat(day))
            except ValueError as error:
                raise argparse.ArgumentTypeError(
                    f"{text}, line {number}: {day!r} is not a date such as 2026-12-25"
                ) from error
    return sorted(days)
