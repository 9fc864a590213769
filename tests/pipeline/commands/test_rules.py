"""The rules as options, before Spark: calendars with holidays, and rules that contradict each other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.arguments import add_deadline
from abeyant.pipeline.commands.rules import add_rules, rules_of

OFFICE = ["--calendar", "Mon-Fri 09:00-17:00 Europe/Berlin"]


def rules(*options: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="rules")
    add_deadline(parser)
    add_rules(parser)
    return rules_of(parser.parse_args(options))


def test_holidays_are_dates_or_a_file_of_them(tmp_path: Path) -> None:
    file = tmp_path / "holidays.txt"
    file.write_text("# Berlin\n\n2026-12-26 second day\n2026-12-25,Christmas\n2026-12-25\n")
    said = "Calendar('Mon-Fri 09:00-17:00', zone='Europe/Berlin', holidays=['2026-12-25', '2026-12-26'])"
    for given in ("2026-12-26, 2026-12-25", str(file)):
        assert repr(rules(*OFFICE, "--holidays", given)["calendar"]) == said
    assert repr(rules("--calendar", "Mon 09:00-10:00")["calendar"]).endswith("zone='UTC', holidays=[])")
    assert rules()["calendar"] is None


def test_what_cannot_be_read_or_contradicts_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd").write_text("2026-12-25\n25.12.2026\n")
    for options, why in (
        ([*OFFICE, "--holidays", "Christmas"], "'Christmas' is neither a file nor dates such as 2026-12-25"),
        ([*OFFICE, "--holidays", str(tmp_path / "odd")], "odd, line 2: '25.12.2026' is not a date such as 2026-12-25"),
        (["--calendar", "Mon-Fri"], "hours must look like"),
    ):
        with pytest.raises(SystemExit):
            rules(*options)
        assert why in capsys.readouterr().err
    with pytest.raises(AbeyantError, match="--holidays needs --calendar"):
        rules("--holidays", "2026-12-25")
    with pytest.raises(AbeyantError, match="serves='oldest' and combine='last' exclude each other"):
        rules("--serves", "oldest", "--combine", "last")
