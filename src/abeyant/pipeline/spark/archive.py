"""Keep an archive of Spark's classes in the user's cache directory, from which later JVMs start faster.

To start and run a first query, a JVM loads and links some 16,000 classes. If they are mapped from an archive, the JVM
takes half the processor time. The JVM of a first command lists the classes that it loads, at no cost. When the command
has returned, a process of the lowest priority writes the archive of these classes (170 MB). Only a JVM of the same
build with the same jars can use the archive. Without an archive, or with a damaged one, a JVM starts as usual.

A JVM can also write such an archive as it ends (`-XX:ArchiveClassesAtExit`), but then a first run takes 1.5 times as
long.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from abeyant.pipeline.spark.java import JAVA_VARIABLES, Java, caches

__all__ = ["CLASS_ARCHIVE", "archive_options", "class_list", "write_archive"]

CLASS_ARCHIVE: Final = "ABEYANT_CLASS_ARCHIVE"
"""Environment variable: `off` for no class archive, `wait` to let commands wait until their archive is written."""

_LIST: Final = "-XX:DumpLoadedClassList"
_LISTED: Final = re.compile(rf'"{_LIST}=([^"]+)"')
_OWN: Final = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", _LIST, "-Xshare")
_NEW: Final = ".new"
_NAMES: Final = ".list"
_KEPT: Final = 3  # archives, as each virtual environment has jars of its own
_WRITING_SECONDS: Final = 600.0  # after that, a write that has not ended was abandoned
_WRITING_MEMORY: Final = 4 << 30  # bytes of the machine's memory: writing takes 1 GB
# The JVM checks the archive when it maps it, and would print a mismatch on the standard output.
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
    """Return the JVM options that use the archive for `jars`, or that list the classes for it; [] if neither applies.

    `named` are the user's own options: if they set class sharing, return []. Classes are listed only with `write`, by
    one JVM at a time. `cache` overrides the directory of archives. Costs one stat per jar.
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
                fresh = directory / f"{name}{_NEW}"
                return [f'"{_LIST}={fresh.with_suffix(_NAMES)}"', _SILENT] if _claimed(fresh) else []
    return []


def class_list(options: str) -> Path | None:
    """Return the file into which a JVM with these options lists its classes, or None."""
    listed = _LISTED.search(options)
    return Path(listed[1]) if listed is not None else None


def write_archive(listed: Path, java: Path, class_path: str) -> None:
    """Start a process of the lowest priority that writes the archive of the listed classes, which takes a minute.

    `class_path` is the class path of the JVM that listed the classes, and that has ended; other options of that JVM do
    not matter. If `ABEYANT_CLASS_ARCHIVE` is `wait`, wait for the archive.
    """
    wait = os.environ.get(CLASS_ARCHIVE) == "wait"
    nice = shutil.which("nice")
    command: list[str | Path] = [
        *([nice, "-n", "19"] if nice is not None and not wait else []),
        java / "bin" / "java",
        "-Xshare:dump",
        f"-XX:SharedClassListFile={listed}",
        f"-XX:SharedArchiveFile={listed.with_suffix(_NEW)}",
        "-XX:+UseSerialGC",
        _SILENT,
        "-cp",
        class_path,
    ]
    ours = {name: value for name, value in os.environ.items() if name not in JAVA_VARIABLES}
    none = subprocess.DEVNULL
    with suppress(OSError):
        writer = subprocess.Popen(command, env=ours, stdin=none, stdout=none, stderr=none, start_new_session=True)
        if wait:
            writer.wait()


def _key(java: Java, jars: Path) -> str:
    """Return a hash of Java's build and of the folder of jars. An archive is used only with the same hash."""
    key = hashlib.sha256(f"{java.home}\n{java.version}\n{jars}\n".encode())
    with suppress(OSError):
        key.update((java.home / "release").read_bytes())
    with suppress(OSError), os.scandir(jars) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            found = entry.stat()
            key.update(f"{entry.name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return key.hexdigest()[:16]


def _whole(directory: Path, name: str) -> Path | None:
    """Return the archive if it is complete: it has the size in its name. A truncated archive would crash a JVM."""
    fresh = directory / f"{name}{_NEW}"
    if _has_head(fresh):
        with suppress(FileNotFoundError):  # another was first
            fresh.rename(directory / f"{name}-{fresh.stat().st_size}.jsa")
            fresh.with_suffix(_NAMES).unlink()
    for archive in directory.glob(f"{name}-*.jsa"):
        if archive.stem == f"{name}-{archive.stat().st_size}":
            return archive
        archive.unlink()
    return None


def _has_head(fresh: Path) -> bool:
    """Return whether the archive is complete: its header is written last."""
    with suppress(OSError), fresh.open("rb") as stream:
        return any(stream.read(4))
    return False


def _claimed(fresh: Path) -> bool:
    """Reserve the archive `fresh` for this process to write, and delete old ones. Return False if another writes it.

    A recent empty file is the reservation of another process.
    """
    fresh.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        fresh.open("xb").close()
    except FileExistsError:
        if time.time() - fresh.stat().st_mtime < _WRITING_SECONDS:
            return False
        os.utime(fresh)
    written = ((path, path.stat().st_mtime) for path in fresh.parent.glob("classes-*") if path != fresh)
    over = time.time() - _WRITING_SECONDS  # a younger .new may be under way
    others = sorted((-at, path) for path, at in written if path.suffix == ".jsa" or at < over)
    for _, other in others[_KEPT - 1 :]:
        other.unlink(missing_ok=True)
    return True


def _memory() -> int:
    """Return the machine's memory in bytes; 0 where unknown."""
    with suppress(ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0
