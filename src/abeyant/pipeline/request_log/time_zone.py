"""Find the time zone of a log's timestamps by its name."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from abeyant.errors import AbeyantError, did_you_mean

__all__ = ["time_zone"]


def time_zone(name: str) -> ZoneInfo:
    """Return the time zone with an IANA name, such as Europe/Berlin; raise AbeyantError for an unknown name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise AbeyantError(f"no such time zone: {name!r}{did_you_mean(name, available_timezones())}") from error
