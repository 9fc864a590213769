"""The rivals compiled as the engine is, for an installed abeyant, which brings the engine alone.

They are compiled when the lab is first run, into the user's cache, where `rivals` and `purgatories` look first. In a
checkout that `make` has set up they are compiled in place. `python -m abeyant.lab.compiled FOLDER` does the work.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import abeyant
from abeyant.cache import cache_folder
from abeyant.engine import is_compiled
from abeyant.errors import AbeyantError

_PACKAGE = Path(abeyant.__file__).parent
_ROOMS = ("rivals", "purgatories")
_SHARED = "abeyant.lab.rivals._cython_shared"
_EVERY_SECONDS = 3.0


def look_first(room: str, path: list[str]) -> list[str]:
    """Where a room's modules are looked for: among the compiled ones in the cache, if there are, then in `path`."""
    if not is_compiled() or _in_place():
        return path
    try:
        compiled = _folder() / room
    except AbeyantError:  # there can be none; whoever needs them says so
        return path
    return [str(compiled), *path] if compiled.is_dir() else path


def ensure() -> None:
    """Compile the rivals where the engine is compiled and they are not, for else C would be compared with Python.

    Raises AbeyantError with the reason where that fails.
    """
    target = _folder()
    if not is_compiled() or _in_place() or target.is_dir():
        return
    print("compiling the rivals, once: a minute or less ...", file=sys.stderr, flush=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, ignore_cleanup_errors=True) as name:
        lab = Path(name, "lib", "abeyant", "lab")
        with open(Path(name, "log"), "w+", encoding="utf-8", errors="replace") as log:
            with subprocess.Popen(
                [sys.executable, "-m", "abeyant.lab.compiled", name], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            ) as process:
                _watch(process, lab)
            log.seek(0)
            said = log.read().strip().splitlines()
        if process.returncode:
            raise AbeyantError(
                f"the lab's rivals cannot be compiled as the engine is: {said[-1] if said else process.returncode}; "
                "with ABEYANT_PURE=1 all designs are compared interpreted"
            )
        try:
            lab.rename(target)
        except OSError:
            if not target.is_dir():  # else another run was first, with the same modules
                raise


def _watch(process: subprocess.Popen[bytes], lab: Path) -> None:
    began = time.monotonic()
    try:
        while True:
            try:
                process.wait(_EVERY_SECONDS)
                return
            except subprocess.TimeoutExpired:
                done = len(list(lab.glob("*/*")))
                print(
                    f"compiling the rivals ... {done} of {len(_names()) + 1}, {time.monotonic() - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    except BaseException:
        process.terminate()
        raise


def _types() -> list[Path]:
    return sorted(path for room in _ROOMS for path in (_PACKAGE / "lab" / room).glob("*.pxd"))


def _names() -> list[str]:
    return [".".join(("abeyant", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in _types()]


@functools.cache
def _in_place() -> bool:
    return all(any(path.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES) for path in _types())


@functools.cache
def _folder() -> Path:
    """The cache's folder for this Python and these sources: the rivals', and the types of all that they call in C."""
    key = hashlib.sha256(f"{abeyant.__version__} {sysconfig.get_config_var('EXT_SUFFIX')}".encode())
    for path in (*(one.with_suffix(".py") for one in _types()), *sorted(_PACKAGE.rglob("*.pxd"))):
        key.update(path.read_bytes())
    return cache_folder() / "abeyant" / f"lab-{key.hexdigest()[:16]}"


def _compile(folder: Path) -> None:
    try:
        from setuptools import Distribution

        from abeyant._compilation import Compile, extensions
    except ImportError as error:
        raise SystemExit(f"there is no {error.name} (pip install setuptools cython)") from error
    modules = extensions(_names(), _PACKAGE.parent, shared=_SHARED)
    distribution = Distribution({"name": "lab", "ext_modules": modules, "cmdclass": {"build_ext": Compile}})
    distribution.get_command_obj("build").build_base = str(folder)
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
    try:
        distribution.run_command("build_ext")
    except Exception as error:
        raise SystemExit(" ".join(str(error).split())) from error


if __name__ == "__main__":
    _compile(Path(sys.argv[1]))
