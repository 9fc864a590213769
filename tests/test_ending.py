"""Every command ends alike: what and where, one JSON object for programs, the browser for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import webbrowser
from argparse import ArgumentParser
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.ending import add_output_options, end


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
    add_output_options(parser)
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
    add_output_options(parser)
    report = tmp_path / "a b.html"
    args = parser.parse_args(["--out", str(tmp_path), "--json", "--open"])
    end(args, lambda: print("no"), out=args.out, report=report, found={"requests": 7})
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["out"], found["report"], found["result"]) == (str(tmp_path), str(report), {"requests": 7})
    assert opened == [report.as_uri()]
    assert told.err == ("" if there_is_one else f"abeyant: no browser could be started: open {report} yourself\n")


def test_what_a_browser_prints_is_no_part_of_the_object(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some say that they open a page in a window that is there."""
    monkeypatch.setattr(webbrowser, "open", lambda url: subprocess.run(["echo", url], check=True).returncode == 0)
    parser = ArgumentParser()
    add_output_options(parser)
    for option, out in (("--json", ""), ("--quiet", ""), ("--open", "file:///a/b.html\n")):
        end(parser.parse_args([option, "--open"]), lambda: None, out=tmp_path, report=Path("/a/b.html"), found={})
        told = capfd.readouterr()
        assert told.out.count("\n") == (1 if not out else 3)
        assert told.err == ("" if out else "file:///a/b.html\n")


def test_no_letter_is_too_much_for_the_output() -> None:
    """As where a job of cron has an output of ASCII; what a program reads is the same there."""
    program = r"""
from abeyant import cli
cli._version = lambda *_: "\N{LATIN SMALL LETTER E WITH ACUTE} \udcff"
print(cli.main(["info"]), cli.main(["info", "--json"]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *lines, found, statuses = ran.stdout.splitlines()
    assert f"{'spark':<10}\\xe9 \\udcff" in lines
    assert json.loads(found)["spark"] == "\N{LATIN SMALL LETTER E WITH ACUTE} \udcff"
    assert statuses == "0 0"


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
