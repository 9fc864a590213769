"""One run of CPython's own asyncio tests, on asyncio's loop or on ours; see __main__.py.

python -m aio.conformance.worker {stock,wheel} results.json [test id ...]
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import unittest
from pathlib import Path
from typing import Any

from test import support, test_asyncio  # CPython's, not this project's

from aio.conformance import stand_in

# Those of other platforms' loops, and those that make no loop of their own.
LEFT_OUT = {"test_windows_events", "test_windows_utils", "test_proactor_events"}


class Outcomes(unittest.TestResult):
    """What became of each test, by its id: passed, skipped, or the traceback of its failure."""

    def __init__(self) -> None:
        super().__init__()
        self.by_id: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Passed, unless something worse is added."""
        super().startTest(test)
        self.by_id[test.id()] = "passed"

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """As unittest has it, so the rest."""
        self.by_id[test.id()] = f"skipped: {reason}"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """CPython knows that it fails."""
        self.by_id[test.id()] = "failed, as CPython expects"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """CPython does not know that it passes."""
        self.by_id[test.id()] = "passed, which CPython does not expect"

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """With its traceback."""
        self.by_id[test.id()] = "failed: " + self._exc_info_to_string(err, test)  # type: ignore[attr-defined]

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """With its traceback."""
        self.addFailure(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A test fails with any of its parts."""
        if err is not None:
            self.addFailure(test, err)


def modules() -> list[str]:
    """CPython's asyncio test modules for loops of this platform."""
    names = [name for _, name, _ in pkgutil.iter_modules(test_asyncio.__path__)]
    return [f"{test_asyncio.__name__}.{name}" for name in names if name.startswith("test_") and name not in LEFT_OUT]


def main(loop: str, results: Path, chosen: list[str]) -> None:
    """Run, and write what became of each test and which loops were made."""
    stand_in.count_loops()
    if loop == "wheel":
        stand_in.put_wheel_in_place()
    support.use_resources = ["cpu", "walltime"]  # as CPython's own runner has it: no network unless asked for
    support.verbose = 0
    outcomes = Outcomes()
    for name in modules():
        wanted = [test for test in chosen if test.startswith(name + ".")]
        if chosen and not wanted:
            continue
        stand_in.module = name
        module = importlib.import_module(name)
        loader = unittest.TestLoader()
        suite = loader.loadTestsFromNames(wanted) if wanted else loader.loadTestsFromModule(module)
        suite.run(outcomes)
    results.write_text(json.dumps({"outcomes": outcomes.by_id, "loops": stand_in.made}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
