"""The folder for downloads and compiled files, which later runs reuse."""

from __future__ import annotations

import os
from pathlib import Path

from abeyant.errors import AbeyantError

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return $XDG_CACHE_HOME or ~/.cache, which may not exist yet. Raise AbeyantError if there is no home directory."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # as in a container whose user has no entry in /etc/passwd
        raise AbeyantError(
            "there is no home directory to keep a cache in: set HOME or XDG_CACHE_HOME to a folder"
        ) from None
