"""What all commands understand alike: `--debug` in any place, "did you mean", and refusals before Spark starts."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from abeyant import cli
from abeyant.errors import AbeyantError, did_you_mean
from abeyant.installation import install_command
from abeyant.pipeline import spark_session

LOG = Path(__file__).parent / "data" / "kafka-request-debug.log.gz"


@pytest.mark.parametrize(
    "words",
    [
        "--debug analyze {gone} --out {out}",
        "analyze --debug {gone} --out {out}",
        "analyze {gone} --out {out} --debug",
        "broker --brokers 0 --debug",
        "analyze {gone} --out {out} --deb",
    ],
)
def test_debug_shows_the_error_wherever_it_stands(words: str, tmp_path: Path) -> None:
    call = words.format(gone=tmp_path / "gone", out=tmp_path / "out").split()
    with pytest.raises(AbeyantError):
        cli.main(call)
    assert cli.main([word for word in call if not word.startswith("--deb")]) == 2


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser of every command that does something: those below others too."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for command in action.choices.values():
            yield from parsers(command)


@pytest.mark.parametrize("parser", list(parsers(cli._parser())), ids=lambda parser: parser.prog)
def test_every_command_speaks_to_programs_and_its_help_fits_80_columns(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "--json" in parser.format_help()
    assert [line for line in parser.format_help().splitlines() if len(line) > 80] == []


def completed(line: str, tmp_path: Path, program: str = "from abeyant.cli import main; main()") -> list[str]:
    """What a shell is told that the last word of a line may become."""
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_TYPE": "9", "COMP_LINE": line}
    asked |= {"COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stderr == done.stdout == ""
    return answer.read_text().split() if answer.exists() else []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("abeyant re", ["resolve", "replay"]),
        ("abeyant analyze logs --ti", ["--timezone", "--title"]),
        ("abeyant analyze logs --q", ["--quiet"]),
        ("abeyant resolve --deadline ", ["inclusive", "exclusive"]),
    ],
)
def test_a_shell_is_told_what_a_word_may_become(line: str, words: list[str], tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    assert completed(line, tmp_path) == words


def test_without_the_library_the_tab_key_does_nothing(tmp_path: Path) -> None:
    away = (
        "import sys; sys.modules['argcomplete'] = None; from abeyant.cli import main; sys.argv[1:] = ['info']; main()"
    )
    assert completed("abeyant info", tmp_path, away) == []


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that the command refuses with, without its hint at --help."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    line, hint, end = capsys.readouterr().err.partition(" (see abeyant")
    assert "\n" not in line
    assert hint
    assert re.fullmatch(r"( [a-z]+)* --help\)\n", end)
    return line


@pytest.mark.parametrize(
    "words",
    [
        "",
        "analyze",
        "replay",
        "model",
        "resolve",
        "stream",
        "expired",
        "pending",
        "info x",
        "lab",
        "lab run",
        "lab report x",
        "broker x",
    ],
)
def test_an_error_of_the_command_line_is_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.match(r"abeyant( [a-z]+)*: error: ", told(capsys, *words.split()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("anaylze logs --out x", "; did you mean analyze?"),
        ("analyze logs --ouput x", "abeyant analyze: error: there is no option --ouput; did you mean --out?"),
        ("analyze logs --time-zone=UTC --out x", "there is no option --time-zone; did you mean --timezone?"),
        ("--verison", "abeyant: error: there is no option --verison; did you mean --version?"),
        ("resolve a b --out x --deadline inclusiv", "; did you mean inclusive?"),
    ],
)
def test_what_is_most_alike_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in told(capsys, *words.split())


def test_nothing_is_named_where_nothing_is_alike(capsys: pytest.CaptureFixture[str]) -> None:
    line = told(capsys, "broker", "--zzzzzz")
    assert line == "abeyant broker: error: there is no option --zzzzzz"
    assert "did you mean" not in told(capsys, "qqqqqq")
    assert did_you_mean("zzz", ["all"]) == ""


@pytest.mark.parametrize("start", ["--over", "--instance=a --over"])
def test_the_beginning_of_an_option_and_what_follows_two_dashes_stay(start: str) -> None:
    found = cli._parser().parse_args(["analyze", "--out", "x", *start.split(), "--", "--a-log-of-this-name"])
    assert found.overwrite
    assert found.logs == ["--a-log-of-this-name"]


@pytest.mark.parametrize("command", ["analyze", "replay", "model"])
def test_a_time_zone_that_is_none_is_refused_before_spark_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)  # nobody may ask for it
    call = [command, str(tmp_path), "--out", str(tmp_path / "out"), "--timezone", "Europe/Berln"]
    assert cli.main(call) == 2
    line = "abeyant: error: no such time zone: 'Europe/Berln'; did you mean Europe/Berlin?\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("command", ["analyze", "replay", "model", "resolve"])
def test_an_output_that_is_not_ours_is_refused_before_spark_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    (tmp_path / "thesis.txt").write_text("years")
    inputs = [str(tmp_path)] * (2 if command == "resolve" else 1)
    assert cli.main([command, *inputs, "--out", str(tmp_path)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["analyze", "replay", "model"])
def test_a_report_that_cannot_be_drawn_is_refused_before_spark_starts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pyspark", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    assert cli.main([command, str(LOG), "--out", str(tmp_path / "out")]) == 2
    wanted = f"{command} needs pyspark and pandas: {install_command('spark')}"
    assert capsys.readouterr().err == f"abeyant: error: {wanted}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("resolve {csv} {csv} --out {out} --operation id=1", "operations: cannot map the unknown column 'id'"),
        ("replay {csv} --events {csv} --out {out} --event id=1", "events: cannot map the unknown column 'id'"),
        ("stream {csv} {csv} --out {out} --event id=1", "events: cannot map the unknown column 'id'"),
        ("resolve {csv} {empty} --out {out}", "empty is empty: put files there"),
        ("replay {empty} --events {csv} --out {out}", "empty is empty: put files there"),
        ("resolve {csv} {long} --out {out}", f"{'l' * 300}: File name too long"),
        ("resolve {csv} {csv} --out {long}", "File name too long"),
        ("resolve {csv} \udcff --out {out}", "'\\udcff' is not UTF-8, which Spark requires of paths"),
        ("stream {csv} {csv} --out {taken}", "taken exists and is not a result of abeyant stream: it is left alone"),
    ],
)
def test_a_mistake_is_refused_before_spark_starts(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("abeyant.pipeline.spark.session.command_session", start)
    (tmp_path / "a.csv").write_text("key,at\n")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("years")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").touch()
    places = {"csv": tmp_path / "a.csv", "long": tmp_path / ("l" * 300)}
    places |= {name: tmp_path / name for name in ("out", "taken", "empty")}
    assert cli.main(words.format(**places).split()) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resolve", "a", "b", "--out", ""], "argument --out: '' names no directory"),
        (["resolve", "a", "b", "--out", "\udcff"], "argument --out: '\\udcff' is not UTF-8"),
        (["pending", "out", "--limit", "-1"], "argument --limit: '-1' is not a whole number from 0 to 2147483647"),
        (["pending", "out", "--limit", "9" * 20], "is not a whole number from 0 to"),
        (
            ["stream", "a", "b", "--out", "o", "--files-per-batch", "9" * 20],
            "is not a whole number from 1 to 2147483647",
        ),
    ],
)
def test_a_value_that_nothing_can_take_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert said in capsys.readouterr().err


def test_a_reader_that_has_gone_is_no_fault() -> None:
    """As `head` goes when it has its lines."""
    reading, writing = os.pipe()
    os.close(reading)
    program = "import sys; from abeyant.cli import main; sys.exit(main(['info']))"
    try:
        ran = subprocess.run([sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_an_output_that_is_closed_is_no_fault(closed: str) -> None:
    """As some that start services do."""
    program = "import sys; from abeyant.cli import main; sys.exit(main(['info', '--json']))"
    words = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, program]
    ran = subprocess.run(words, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_a_session_without_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(AbeyantError) as caught:
        spark_session()
    assert str(caught.value) == f"a Spark session needs pyspark: {install_command('spark')}"


def test_the_brokers_command_is_ready_without_the_others() -> None:
    program = "import sys; from abeyant import cli; cli._parser(['--debug', 'broker']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert "abeyant.broker.command" in found
    assert (
        found & {"abeyant.pipeline", "abeyant.tables", "importlib.metadata", "http.client", "prometheus_client"}
        == set()
    )
