"""The words of `abeyant resolve` and `abeyant stream`: which events count, and so on (docs/design-resolve.md)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from abeyant.tables.calendar import Calendar

__all__ = ["DEFAULTS", "WORDS", "add_words", "words_of"]

# As `abeyant.tables.words` has them: Arrow and NumPy would come with that, for every command.
WORDS: Final = {
    "count": ("always", "from_start", "after_start"),
    "combine": ("max", "sum", "last"),
    "holds": ("ever", "at_deadline"),
    "serves": ("every", "oldest", "newest"),
    "within": ("whole", "step"),
}
"""The values of each word, the default first."""
DEFAULTS: Final[dict[str, Any]] = {name: values[0] for name, values in WORDS.items()} | {
    "calendar": None,
    "details": False,
}
_HELP: Final = {
    "count": "which events count: all up to now, those from the start on, or after it",
    "combine": "what they come to: the greatest progress, the sum, or the last",
    "holds": "when that is judged: at every instant, or at the deadline alone",
    "serves": "whom an event serves: every operation, or one alone, by age",
    "within": "with condition 'then': one time-out for the whole, or one for each step",
}


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add --count, --combine, --holds, --serves, --within, --calendar and --details."""
    group = parser.add_argument_group("other questions", "Defined in docs/design-resolve.md.")
    for name, values in WORDS.items():
        group.add_argument(f"--{name}", choices=values, default=values[0], help=_HELP[name] + " (default: %(default)s)")
    group.add_argument(
        "--calendar",
        type=_calendar,
        metavar="HOURS",
        help="count down in these hours only, such as 'Mon-Fri 09:00-17:00 Europe/Berlin' (default zone: UTC)",
    )
    group.add_argument(
        "--details", action="store_true", help="add to the outcomes which watch decided, and how many events counted"
    )


def words_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the words as `resolve` and `resolve_stream` take them."""
    return {name: getattr(args, name) for name in DEFAULTS}


def _calendar(text: str) -> Calendar:
    from abeyant.tables.calendar import Calendar

    hours, _, last = text.rpartition(" ")
    try:
        return Calendar(text) if ":" in last else Calendar(hours, zone=last)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
