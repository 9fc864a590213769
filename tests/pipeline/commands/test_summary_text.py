"""The summary on the terminal says names as they are, whatever they are."""

from __future__ import annotations

import io
import re

import pandas as pd
import pytest
from rich.console import Console

from abeyant.pipeline.commands.summary_text import print_outcomes, standard_output
from abeyant.pipeline.report.outcomes import Outcomes, named


def said(kinds: list[str], keys: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> str:
    waits = pd.DataFrame(
        {"kind": kinds, "outcome": "expired", "bin": 1, "most_ms": 5.0, "operations": 1},
    )
    expired = pd.DataFrame(keys, columns=["instance", "key"]).assign(expired=1, one_in=1.0)
    print_outcomes(Outcomes(waits=waits, keys=expired, rejected={}, made={}))
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", ["[bold]order[/bold]", "[/orders]", ":key:", "a\\[b"])
def test_a_kind_is_no_markup(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"\n{kind} " in said([kind], [], capsys)


def test_what_could_move_a_terminals_cursor_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(["\x1b[2Jgone"], [("", "\x1b]0;title\x07")], capsys)
    assert "\x1b" not in out
    assert "\N{REPLACEMENT CHARACTER}[2Jgone" in out


def test_wide_characters_have_their_width(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\N{CJK UNIFIED IDEOGRAPH-8BA2}" * 9 in said(["\N{CJK UNIFIED IDEOGRAPH-8BA2}" * 9], [], capsys)


def test_keys_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(["order"], [("shop", "user:id:7"), ("bank", "user:id:7"), ("bank", "")], capsys)
    assert "  user:id:7 (instance shop)\n" in out
    assert "  user:id:7 (instance bank)\n" in out
    assert '  "" (instance bank)\n' in out
    assert "  alone\n" in said(["order"], [("shop", "alone")], capsys)


def test_very_many_kinds_are_taken_together(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [f"order-{number}" for number in range(20_000)]
    waits = pd.DataFrame({"kind": [*kinds, "order-7"], "outcome": "expired", "bin": 1, "most_ms": 5.0, "operations": 1})
    found = Outcomes(waits=named(waits), keys=None, rejected={}, made={})
    assert len(found.summary) == 501
    assert found.count("expired") == found.summary["operations"].sum() == 20_001
    print_outcomes(found)
    out = capsys.readouterr().out
    assert re.search(r"^19,500 other kinds +19,500 +19,500 ", out, re.MULTILINE)
    assert "order-7 " in out


@pytest.mark.parametrize(
    ("at_once", "waited", "expired", "warned"), [(190, 10, 0, True), (189, 10, 1, False), (0, 190, 10, False)]
)
def test_operations_that_nearly_all_complete_with_no_wait_may_ask_for_another_count(
    at_once: int, waited: int, expired: int, warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each aircraft that leaves again within a day had left before, too."""
    rows = [
        ("flight", "completed", 0.0, at_once),
        ("flight", "completed", 5.0, waited),
        ("flight", "expired", 9.0, expired),
    ]
    few = [("few", "completed", 0.0, 19), ("order", "completed", 5.0, 100)]
    waits = pd.DataFrame(rows + few, columns=["kind", "outcome", "most_ms", "operations"]).assign(bin=1)
    print_outcomes(Outcomes(waits=waits, keys=None, rejected={}, made={}))
    out = capsys.readouterr().out
    assert ("Nearly all operations of flight completed with no wait" in out) == warned
    assert ("resolve with count=after_start" in out) == warned


def test_operations_without_a_kind_do_not_look_like_the_total() -> None:
    def kinds(*given: str) -> list[str]:
        waits = {"kind": [*given], "outcome": "expired", "bin": 1, "most_ms": 5.0, "operations": 1}
        return sorted(named(pd.DataFrame(waits))["kind"])

    assert (kinds("", ""), kinds("", "late")) == (["operations"] * 2, ["(no kind)", "late"])


def test_a_terminal_says_them_as_they_are_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    console = standard_output()
    assert console.is_terminal
    console.file = out = io.StringIO()
    assert isinstance(console, Console)
    console.print("user:id:7", markup=False, highlight=False)
    assert out.getvalue() == "user:id:7\n"
