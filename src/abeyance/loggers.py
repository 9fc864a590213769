"""Loggers, for when there is something to log: to import `logging` takes longer than all that is in here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def logger(room: str) -> logging.Logger:
    """The logger of a part of this package: `abeyance.<room>`."""
    from logging import getLogger

    return getLogger(f"abeyance.{room}")
