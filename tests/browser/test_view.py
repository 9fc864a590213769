"""What the page of the wheel shows, without a browser."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def test_time_outs_with_one_deadline_are_shown_on_the_wheels_on_which_they_are() -> None:
    page: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "browser" / "wheel.py"))
    page["start"](100)
    page["turn"](60)
    page["start"](40)
    assert sorted((bucket.level, bucket.deadlines) for bucket in page["wheel"].buckets()) == [(1, [100]), (2, [100])]
    assert [(one["number"], one["level"]) for one in json.loads(page["view"]())["pending"]] == [(1, 2), (2, 1)]
