"""How modules of this package are compiled: Cython to C, C to modules, all of them or none. Only for building.

`setup.py` reads this file by its path. The modules share Cython's own helpers (memoryviews for the most part) in a
module of their own: without it each of them holds a copy, and the compile takes twice as long.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, ExecError, PlatformError

DIRECTIVES = {
    "binding": False,  # plain method descriptors, which the interpreter calls faster than functions with attributes
    "language_level": 3,
    "embedsignature": True,  # so that help() and inspect.signature() still tell the parameters
    "embedsignature.format": "clinic",
    "auto_pickle": False,  # or every class would get methods that set its C fields to whatever they are given
    "annotation_typing": False,  # the C types stand in the .pxd beside each module
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "show_performance_hints": False,
    "freethreading_compatible": True,  # see "Threads" in docs/design.md
}


MACROS: list[tuple[str, str | None]] = [("CYTHON_COMPRESS_STRINGS", "0")]
"""Cython would pack a module's strings, and add what unpacks them at import; a wheel packs them better itself."""

NOT_COMPILED = "not_compiled.txt"  # in the package: why; `_interpreted.py` reads it
TRANSLATED = "translated.json"  # beside the C files: of what they were made
OPTIONS = "options.txt"  # beside the object files: those of the compiler that they were made with
QUICK = ["-O1", "-g0"]
"""For `make test`, in half the time. `make test-all` and `.ci/run` compile as it is shipped."""


def extensions(names: Sequence[str], *, shared: str) -> list[Extension]:
    """Return the modules `names`, and one called `shared` for what Cython puts in all of them."""
    if not names:
        return []
    files = ((name, f"{name.replace('.', '/')}.py") for name in names)
    sources = {name: [f"src/{file}" if name.startswith("abeyant.") else file] for name, file in files}
    sources[shared] = []  # Cython writes its source
    return [Extension(name, source, define_macros=MACROS) for name, source in sources.items()]


_SMALL = ["-Os"]  # of gcc and clang, the last word over -O3: such a module has half the size


class Compile(build_ext):  # type: ignore[misc]
    """Compile with this package's options, on every core. Raises what says why it cannot be done."""

    inplace: bool
    parallel: int | None
    force: bool
    build_temp: str
    rarely_run: frozenset[str] = frozenset()
    """Modules whose size counts for more than their speed."""

    def finalize_options(self) -> None:
        """Use every core that this process may have, unless told otherwise."""
        super().finalize_options()
        if self.parallel is None:
            self.parallel = _cores()

    def build_extensions(self) -> None:
        """The compiler is set up by now: see whether it works, before Cython does its long part."""
        self._try_compiler()
        self._translate()
        noted = Path(self.build_temp, OPTIONS)
        before = noted.read_text(encoding="utf-8").split() if noted.exists() else None
        compiling, linking = self._options(before)
        # setuptools compares times alone: it would leave what was compiled with other options.
        self.force = self.force or (before is not None and before != compiling)
        small = self.compiler.compiler_type != "msvc" and "ABEYANT_CFLAGS" not in os.environ and compiling != QUICK
        for module in self.extensions:
            module.extra_compile_args = [*compiling, *(_SMALL if small and module.name in self.rarely_run else [])]
            module.extra_link_args = linking
        super().build_extensions()
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.write_text(" ".join(compiling), encoding="utf-8")

    def _try_compiler(self) -> None:
        for text, missing in (
            ("", "there was no C compiler that works"),
            ("#include <Python.h>\n", "there were no header files of Python (on Debian: apt install python3-dev)"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                probe = Path(folder, "probe.c")
                probe.write_text(f"{text}int abeyant_probe;\n")
                try:
                    self.compiler.compile([str(probe)], output_dir=folder)
                except (CompileError, ExecError, PlatformError) as error:
                    raise RuntimeError(f"{missing}: {error}") from error

    def _translate(self) -> None:
        """Write the C of each module below build/, where it is not up to date.

        pip unpacks a Cython anew for each build, whose own files are then younger than our C: Cython, which compares
        times, would translate all of it again for each extra that is added. So what it was made of is noted here.
        """
        try:
            from Cython.Build import cythonize
        except ImportError as error:
            raise RuntimeError("there was no Cython (pip install cython)") from error
        folder = Path(self.get_finalized_command("build").build_base, "cython")
        noted = folder / TRANSLATED
        made_of = self._made_of(metadata.version("cython"))
        before = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
        sources = before.get("sources", {})
        there = all(Path(file).exists() for files in sources.values() for file in files)
        if before.get("made_of") != made_of or not there:
            noted.unlink(missing_ok=True)
            translated = cythonize(  # type: ignore[no-untyped-call]
                [Extension(module.name, module.sources) for module in self.extensions],
                nthreads=self.parallel if sys.platform == "linux" else 0,
                compiler_directives=DIRECTIVES,
                build_dir=str(folder),
                include_path=["src", "."],
                shared_utility_qualified_name=self.extensions[-1].name,
            )
            sources = {module.name: module.sources for module in translated}
            noted.write_text(json.dumps({"made_of": made_of, "sources": sources}), encoding="utf-8")
        for module in self.extensions:
            module.sources = sources[module.name]

    def _made_of(self, version: str) -> str:
        """Return a digest of the translation's inputs: Cython's version, its directives, and the files."""
        files = {file for module in self.extensions for file in module.sources}
        for folder in ("src", "lab"):
            files.update(str(path) for path in Path(folder).rglob("*.pxd"))
        digest = hashlib.sha256(repr((version, DIRECTIVES, [module.name for module in self.extensions])).encode())
        for file in sorted(files):
            digest.update(f"{file}\0{hashlib.sha256(Path(file).read_bytes()).hexdigest()}\0".encode())
        return digest.hexdigest()

    def _options(self, before: list[str] | None) -> tuple[list[str], list[str]]:
        """For the compiler and for the linker, after the interpreter's own, so that these have the last word.

        `before` are those of the compiler that the last build took. A quick build keeps what is there.
        """
        given = os.environ.get("ABEYANT_CFLAGS")
        if given is not None:
            return given.split(), []
        if os.environ.get("ABEYANT_COMPILE_QUICKLY") and self.compiler.compiler_type == "unix":
            there = any(Path(self.get_ext_fullpath(module.name)).exists() for module in self.extensions)
            if before == QUICK or not there:
                return QUICK, []
        if self.compiler.compiler_type == "msvc":
            return ["/O2"], []
        # -O3 over -O2: starting and stopping a timer takes 3 to 6 % less; the compile a third more, the modules 8 %.
        # Without tables for C++'s exceptions, which nothing here throws, a module is 4 % smaller.
        return ["-O3", "-g0", "-fno-asynchronous-unwind-tables"], ["-Wl,-s"] if sys.platform == "linux" else []


class AllOrNothing(Compile):
    """The modules call one another in C, so where one cannot be compiled all of them run interpreted."""

    def run(self) -> None:
        """Compile all, or leave none behind, but for the reason: `abeyant info` tells it."""
        if not self.extensions:
            return
        inplace = self.inplace  # which the command forgets while it builds
        reason = Path(self.get_ext_fullpath(self.extensions[-1].name)).with_name(NOT_COMPILED)
        reason.unlink(missing_ok=True)
        if not inplace:
            self._leave_out_others()
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  (whatever a compiler that is missing or broken raises)
            print(f"abeyant: cannot compile the engine, so it will run interpreted: {error}", file=sys.stderr)
            for place in (False, inplace):
                self.inplace = place
                for module in self.extensions:
                    Path(self.get_ext_fullpath(module.name)).unlink(missing_ok=True)
            self.extensions: list[Extension] = []
            reason.parent.mkdir(parents=True, exist_ok=True)
            reason.write_text(f"{error}\n", encoding="utf-8")

    def _leave_out_others(self) -> None:
        """A wheel takes all of build/lib: also the lab's rivals of a build in place, and modules that are gone."""
        python = self.get_finalized_command("build_py")
        here = Path(self.build_lib).absolute()
        kept = {Path(self.get_ext_fullpath(module.name)).absolute() for module in self.extensions}
        kept.update(here / Path(path).relative_to(python.build_lib) for path in python.get_outputs(False))
        for path in here.rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
