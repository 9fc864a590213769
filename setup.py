"""The optional compiled core: the modules of the engine, as they stand, through Cython.

Everything else about the package is in pyproject.toml. Without Cython or a C compiler the package installs all
the same and runs interpreted; `abeyance info` says which. ABEYANCE_NO_COMPILE=1 asks for that on purpose.
"""

import os
import sys

from setuptools import Extension, setup

COMPILED = ["abeyance.engine.slab", "abeyance.engine.delay_queue", "abeyance.engine.wheel"]

DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the C types stand in the .pxd beside each module
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "show_performance_hints": False,
}


def extensions() -> list[Extension]:
    """The modules to compile; none when asked for none or when there is no Cython."""
    if os.environ.get("ABEYANCE_NO_COMPILE"):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("abeyance: no Cython here, so the engine will run interpreted", file=sys.stderr)
        return []
    # optional: a compiler that is missing or fails is a warning, not an error
    modules = [
        Extension(name, [f"src/{name.replace('.', '/')}.py"], optional=True, extra_compile_args=["-O3"])
        for name in COMPILED
    ]
    return list(cythonize(modules, compiler_directives=DIRECTIVES, build_dir="build/cython"))  # type: ignore[no-untyped-call]


setup(ext_modules=extensions())
