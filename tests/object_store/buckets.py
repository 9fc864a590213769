"""What the tests ask of a store, whichever it is: where it is, and what is there, looked at without Spark."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Bucket", "MissingError", "conf"]


class MissingError(Exception):
    """What there is none of here, in one line."""


class Bucket(Protocol):
    """A folder on a server that runs. Names are relative to it."""

    @property
    def uri(self) -> str:
        """What Spark calls it."""

    @property
    def settings(self) -> dict[str, str]:
        """What a Spark session needs to reach it."""

    @property
    def renames(self) -> bool:
        """Whether directories are renamed there at once."""

    def read(self, name: str) -> bytes | None:
        """Return what is in a file; None where there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""

    def files(self, folder: str) -> dict[str, int]:
        """Return all files below a folder, named from the folder on, and their bytes. Costs little: it is polled."""


def conf(bucket: Bucket) -> list[str]:
    """The session's settings, for a command."""
    return [word for name, value in bucket.settings.items() for word in ("--conf", f"{name}={value}")]
