"""Spark's classes made ready once for all JVMs to come: a class-data archive in the user's cache directory.

To start and to run a first query, a JVM reads, checks and links some 16,000 classes. From an archive it maps them,
which halves its processor time. The JVM of a command writes it (180 MB) as it ends, when the command has returned
already; only a JVM of the same build with the same jars can use it. It is never required: without one, with a damaged
one or with that of another Java, a JVM starts as it always did.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from abeyant.pipeline.spark.java import Java, caches
from abeyant.pipeline.spark.jvm import CLASS_ARCHIVE

__all__ = ["archive_options"]

_OWN: Final = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-Xshare")
_KEPT: Final = 3  # of other virtual environments, say: each has jars of its own
_WRITING_SECONDS: Final = 600.0  # what is not there after so long was given up
_WRITING_MEMORY: Final = 4 << 30  # bytes of the machine: to write it takes 1.2 GB
# It is checked when it is mapped, and what does not fit would be told on the standard output.
_SILENT: Final = "-Xlog:cds*=off"


def archive_options(
    java: Java,
    jars: Path,
    named: str,
    *,
    write: bool,
    environ: Mapping[str, str] | None = None,
    cache: Path | None = None,
) -> list[str]:
    """Return the options with which a JVM of `java` uses the archive for `jars`, or writes it as it ends; or none.

    `named` are the options that are given besides: where they say what to share, nothing is added. Written is only
    where `write` is set, by one JVM at a time. `cache` stands for the directory of archives. Costs a look at each jar.
    """
    environ = os.environ if environ is None else environ
    if environ.get(CLASS_ARCHIVE) == "off" or any(option in named for option in _OWN):
        return []
    name = f"classes-{_key(java, jars)}"
    for directory in [cache] if cache is not None else caches(environ):
        with suppress(OSError):
            archive = _whole(directory, name)
            if archive is not None:
                os.utime(archive)
                return [f'"-XX:SharedArchiveFile={archive}"', _SILENT]
            if write and _memory() >= _WRITING_MEMORY:
                fresh = directory / f"{name}.new"
                return [f'"-XX:ArchiveClassesAtExit={fresh}"', _SILENT] if _claimed(fresh) else []
    return []


def _key(java: Java, jars: Path) -> str:
    """Name what an archive holds for: a build of Java and a folder of jars, as they are now."""
    told = hashlib.sha256(f"{java.home}\n{java.version}\n{jars}\n".encode())
    with suppress(OSError):
        told.update((java.home / "release").read_bytes())
    with suppress(OSError), os.scandir(jars) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            found = entry.stat()
            told.update(f"{entry.name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return told.hexdigest()[:16]


def _whole(directory: Path, name: str) -> Path | None:
    """Return the archive if it is there. Its name tells its size: a JVM that maps one which was cut off would crash."""
    fresh = directory / f"{name}.new"
    if _has_head(fresh):
        with suppress(FileNotFoundError):  # another was first
            fresh.rename(directory / f"{name}-{fresh.stat().st_size}.jsa")
    for archive in directory.glob(f"{name}-*.jsa"):
        if archive.stem == f"{name}-{archive.stat().st_size}":
            return archive
        archive.unlink()
    return None


def _has_head(fresh: Path) -> bool:
    """Return whether a JVM has written all of it: it writes the head last."""
    with suppress(OSError), fresh.open("rb") as stream:
        return any(stream.read(4))
    return False


def _claimed(fresh: Path) -> bool:
    """Return whether this process has to write it: a recent empty file says that another does."""
    fresh.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        fresh.open("xb").close()
    except FileExistsError:
        if time.time() - fresh.stat().st_mtime < _WRITING_SECONDS:
            return False
        os.utime(fresh)
    others = sorted(fresh.parent.glob("classes-*.jsa"), key=lambda other: -other.stat().st_mtime)
    for other in others[_KEPT - 1 :]:
        other.unlink()
    return True


def _memory() -> int:
    """Return the machine's memory in bytes; 0 where unknown."""
    with suppress(ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
