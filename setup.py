"""The optional compiled core: the hot modules, as they stand, through Cython.

Everything else about the package is in pyproject.toml. Without Cython or a C compiler the package installs all the
same and runs interpreted; `abeyance info` says which. ABEYANCE_NO_COMPILE=1 asks for that on purpose.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Those with a .pxd of their own; memory, clock, weak, thread_state and calling are C only, included by their users.
COMPILED = [
    "abeyance.engine.slab",
    "abeyance.engine.delay_queue",
    "abeyance.engine.wheel",
    "abeyance.engine.bulk",
    "abeyance.engine.radix",
    "abeyance.engine.trace_wheel",
    "abeyance.engine.replay",
    "abeyance.engine.resolve",
    "abeyance.timer.units",
    "abeyance.timer.task",
    "abeyance.timer.base",
    "abeyance.timer.manual",
    "abeyance.timer.system",
    "abeyance.idle",
    "abeyance.aio.timer",
    "abeyance.purgatory.nesting",
    "abeyance.purgatory.operation",
    "abeyance.purgatory.directory",
    "abeyance.purgatory.room",
    "abeyance.aio.handle",
    "abeyance.aio.schedule",
    "abeyance.aio.loop",
    "abeyance.lab.rivals.rival",
    "abeyance.lab.rivals.heap",
    "abeyance.lab.rivals.delay_queue",
    "abeyance.lab.rivals.indexed_heap",
    "abeyance.lab.rivals.lazy_heap",
    "abeyance.lab.rivals.hashed_wheel",
    "abeyance.lab.rivals.kernel_wheel",
    "abeyance.lab.rivals.ring",
    "abeyance.lab.rivals.sorted_list",
    "abeyance.lab.rivals.unsorted_list",
    "abeyance.lab.purgatories.reaped",
    "abeyance.lab.purgatories.kafka",
    "abeyance.lab.purgatories.old",
]

OPTIONS = os.environ.get("ABEYANCE_CFLAGS", "-O3").split()  # after the interpreter's own, so they have the last word

DIRECTIVES = {
    "binding": False,  # plain method descriptors, which the interpreter calls faster than functions with attributes
    "language_level": 3,
    "embedsignature": True,  # so that help() and inspect.signature() still tell the parameters
    "embedsignature.format": "clinic",
    "annotation_typing": False,  # the C types stand in the .pxd beside each module
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "show_performance_hints": False,
    "freethreading_compatible": True,  # see "Threads" in docs/design.md
}


class AllOrNothing(build_ext):  # type: ignore[misc]
    """The modules call one another in C, so where one cannot be compiled all of them run interpreted."""

    def run(self) -> None:
        """Compile all, or leave none behind."""
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  (whatever a compiler that is missing or broken raises)
            print(f"abeyance: cannot compile the engine, so it will run interpreted: {error}", file=sys.stderr)
            for module in self.extensions:
                Path(self.get_ext_fullpath(module.name)).unlink(missing_ok=True)
            self.extensions: list[Extension] = []


def compiled_modules() -> list[Extension]:
    """The modules to compile; none when asked for none or when there is no Cython."""
    if os.environ.get("ABEYANCE_NO_COMPILE"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("abeyance: no Cython here, so the engine will run interpreted", file=sys.stderr)
        return []
    modules = [Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=OPTIONS) for name in COMPILED]
    return list(cythonize(modules, compiler_directives=DIRECTIVES, build_dir="build/cython"))  # type: ignore[no-untyped-call]


setup(ext_modules=compiled_modules(), cmdclass={"build_ext": AllOrNothing})
