"""The optional compiled core: the hot modules, as they stand, through Cython; and the README as an index shows it.

Everything else about the package is in pyproject.toml. Without Cython or a C compiler the package installs all the
same and runs interpreted; `abeyant info` says which. ABEYANT_NO_COMPILE=1 asks for that on purpose.
In place (`build_ext --inplace`) the lab's rivals are compiled as well, but not with ABEYANT_COMPILE_LAB=0; they are no
part of the package.
"""

import importlib.util
import os
import re
import sys
import tomllib
from pathlib import Path

from setuptools import setup

HOME: str = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["abeyant"]["home"].rstrip("/")

# Those with a .pxd of their own (the collector needs none). What has a .pxd and is not here (memory, clock, weak,
# thread_state, calling, unpatched) is C only, included by its users.
CORE = [
    "abeyant.engine.collector",
    "abeyant.engine.slab",
    "abeyant.engine.delay_queue",
    "abeyant.engine.wheel",
    "abeyant.kernels.bulk",
    "abeyant.kernels.radix",
    "abeyant.kernels.trace_wheel",
    "abeyant.kernels.replay",
    "abeyant.kernels.resolve",
    "abeyant.kernels.timelines",
    "abeyant.kernels.serving",
    "abeyant.kernels.rows",
    "abeyant.kernels.hashing",
    "abeyant.kernels.dealing",
    "abeyant.kernels.narrow",
    "abeyant.timer.units",
    "abeyant.timer.task",
    "abeyant.timer.base",
    "abeyant.timer.meter",
    "abeyant.timer.manual",
    "abeyant.timer.survey",
    "abeyant.timer.system",
    "abeyant.idle.peers",
    "abeyant.idle.detector",
    "abeyant.aio.timer",
    "abeyant.purgatory.nesting",
    "abeyant.purgatory.operation",
    "abeyant.purgatory.directory",
    "abeyant.purgatory.life",
    "abeyant.purgatory.room",
    "abeyant.purgatory.survey",
    "abeyant.aio.handle",
    "abeyant.aio.schedule",
    "abeyant.aio.loop",
    "abeyant.broker.log.records",
    "abeyant.pipeline.purging.reaped",
    "abeyant.pipeline.purging.kafka",
]

SHARED = "abeyant._cython_shared"

RARELY_RUN = frozenset(
    {
        SHARED,
        "abeyant.kernels.replay",
        "abeyant.kernels.trace_wheel",
        "abeyant.timer.survey",
        "abeyant.purgatory.survey",
        "abeyant.pipeline.purging.reaped",
        "abeyant.pipeline.purging.kafka",
    }
)
"""Compiled for size: not run for each timer, operation or event.

With all else so too the wheel would be 0.38 MB smaller. On a busy machine starting and stopping a timer then took 1.4
to 1.9 times as long, an operation in the purgatory 1.1 to 1.6 times, resolving tables 1.5 to 2.4 times.
"""


def readme(text: str, home: str = HOME) -> str:
    """Make the README's links to files of the repository absolute; without a home, leave only their words."""

    def absolute(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        return f"{image}[{words}]({home}/{'raw' if image else 'blob'}/main/{target})" if home else words

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)", absolute, text)


def urls(home: str = HOME) -> dict[str, str]:
    """Return the project's addresses: none without a home."""
    if not home:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/tree/main/docs",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
        "Source": home,
    }


def lab() -> list[str]:
    """Return the lab's rivals where a checkout is compiled in place."""
    wanted = "--inplace" in sys.argv and os.environ.get("ABEYANT_COMPILE_LAB", "1") not in ("", "0")
    found = Path("lab").rglob("*.pxd") if wanted else ()
    return sorted(".".join(path.with_suffix("").parts) for path in found)


def main() -> None:
    """Hand the modules to compile to setuptools: none where none are wanted."""
    # By its path, for the package itself is not there to be imported yet.
    found = importlib.util.spec_from_file_location("compilation", Path("scripts/compilation.py"))
    assert found is not None
    assert found.loader is not None
    compilation = importlib.util.module_from_spec(found)
    found.loader.exec_module(compilation)
    names = [] if os.environ.get("ABEYANT_NO_COMPILE", "0") not in ("", "0") else [*CORE, *lab()]
    modules = compilation.extensions(names, shared=SHARED)
    setup(
        package_dir={"": "src", **({"lab": "lab"} if lab() else {})},  # an editable install is to know src/ alone
        ext_modules=modules,
        cmdclass={"build_ext": type("Compile", (compilation.AllOrNothing,), {"rarely_run": RARELY_RUN})},
        long_description=readme(Path("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
        project_urls=urls(),
    )


if __name__ == "__main__":  # Cython's worker processes import this file where they cannot be forked
    main()
