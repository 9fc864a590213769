"""Every command ends alike: what and where, one JSON object for programs, the browser for people."""

from __future__ import annotations

import json
import webbrowser
from argparse import ArgumentParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyance.cli import main
from abeyance.ending import add_ending, end


@pytest.mark.parametrize(
    ("option", "shown"),
    [
        ([], "what was found\n\nReport: {out}/report.html\n"),
        (["--quiet"], "{out}/report.html\n"),
    ],
)
def test_for_a_person(option: list[str], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    parser.add_argument("--out", type=Path)
    add_ending(parser)
    args = parser.parse_args(["--out", str(tmp_path), *option])
    end(args, lambda: print("what was found"), out=args.out, report=tmp_path / "report.html", found={})
    assert capsys.readouterr().out == shown.format(out=tmp_path)


@pytest.mark.parametrize("there_is_one", [True, False])
def test_a_program_gets_one_object_and_a_person_the_browser(
    there_is_one: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return there_is_one

    monkeypatch.setattr(webbrowser, "open", browse)
    parser = ArgumentParser()
    parser.add_argument("--out", type=Path)
    add_ending(parser)
    report = tmp_path / "a b.html"
    args = parser.parse_args(["--out", str(tmp_path), "--json", "--open"])
    end(args, lambda: print("no"), out=args.out, report=report, found={"requests": 7})
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["out"], found["report"], found["result"]) == (str(tmp_path), str(report), {"requests": 7})
    assert opened == [report.as_uri()]
    assert told.err == ("" if there_is_one else f"abeyance: no browser could be started: open {report} yourself\n")


def test_resolve_tells_a_program_how_many(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "o.csv").write_text("op_id,key,start,timeout_ms\na,k,1970-01-01T00:00:00Z,1000\n")
    (tmp_path / "e.csv").write_text("key,at\nk,1970-01-01T00:00:00.5Z\n")
    call = ["resolve", str(tmp_path / "o.csv"), str(tmp_path / "e.csv"), "--out", str(tmp_path / "out"), "--json"]
    assert main(call) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["report"] == str(tmp_path / "out" / "report.html")
    assert found["result"]["completed"] == 1
