"""The examples in the documentation run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["idle.md", "waiting.md"]


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "number"), [(page, number) for page in PAGES for number in range(len(examples(page)))]
)
def test_an_example_runs(page: str, number: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", examples(page)[number]], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_there_are_examples() -> None:
    assert [len(examples(page)) for page in PAGES] == [2, 2]
