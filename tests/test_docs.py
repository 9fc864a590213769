"""What README and docs show runs as pasted; what they link to is there.

The Python of a page runs from its first block to its last in one namespace and one empty folder, as for a reader who
pastes one after another; `examples` is there. Commands are parsed by the real parser, so that every option exists;
those over the small example tables are run. Commands over the example log are run by the tests of their own rooms.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from abeyant import cli
from scripts import public_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
ELSEWHERE = (
    "log.xes",  # its block is run by tests/pipeline/commands/test_event_log.py, which makes the file
    "sc://HOST",  # and this one's by tests/connect_server/test_connect_server.py, which starts the server
    'read_parquet("questions/',  # by tests/questions, which has the tables
    *("lake.", "warehouse/delta"),  # and these by tests/lakes/test_lakes.py, which has the jars
)
SMALL = "examples/data/shop"
MODULES = ("examples", "lab", "scripts", "src", "tests")
_MODULE = r"`((?:\w+/)+\w+\.py|test_\w+\.py)`"


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of this language, each with the line at which it begins."""
    text = page.read_text()
    found = re.finditer(rf"^( *)```{language}\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, one.start()) + 2, textwrap.dedent(one[2])) for one in found]


def is_test(code: str) -> bool:
    return re.search(r"^(async )?def test_", code, re.MULTILINE) is not None


def scripts(page: Path) -> list[tuple[int, str]]:
    return [
        (line, code)
        for line, code in blocks(page, "python")
        if not is_test(code) and not any(sign in code for sign in ELSEWHERE)
    ]


def shown_tests(page: Path) -> list[tuple[int, str]]:
    return [(line, code) for line, code in blocks(page, "python") if is_test(code)]


def commands(page: Path) -> list[list[str]]:
    """The command lines that begin with `abeyant`, as words; a comment or `> FILE` behind one is left out."""
    lines = "".join(code for _, code in blocks(page, "sh")).replace("\\\n", " ").splitlines()
    called = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("abeyant ")]
    return [words[: words.index(">")] if ">" in words else words for words in called]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, but of the request log only the first lines of each file: what is shown does not depend on more."""
    made = tmp_path_factory.mktemp("docs") / "examples"
    whole = ROOT / "examples"
    shutil.copytree(whole, made, ignore=shutil.ignore_patterns("kafka-request-log", "__pycache__"))
    for file in whole.glob("data/kafka-request-log/*/*.gz"):
        part = made / file.relative_to(whole)
        part.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file) as lines, gzip.open(part, "wb", compresslevel=1) as some:
            some.writelines(islice(lines, 500))
    return made


@pytest.fixture
def folder(examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").symlink_to(examples)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_scripts(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["snippet", "info"])  # for the one that is a whole command
    names = {"__name__": "__main__"}
    for line, code in scripts(PAGES[page]):
        try:
            exec(compile("\n" * (line - 1) + code, page, "exec"), names)
        except SystemExit as ended:
            assert not ended.code, f"{page}:{line}"  # noqa: PT017 - a snippet may end as a command does


@contextmanager
def in_folder(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Let the JVM take relative paths from here, as one that was started here would: Hadoop has two ideas of it."""
    jvm = spark._jvm
    assert jvm is not None
    files = jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    before = files.getWorkingDirectory(), jvm.System.getProperty("user.dir")
    files.setWorkingDirectory(jvm.org.apache.hadoop.fs.Path(folder.as_uri()))
    jvm.System.setProperty("user.dir", str(folder))
    try:
        yield
    finally:
        files.setWorkingDirectory(before[0])
        jvm.System.setProperty("user.dir", before[1])


WITH_SCRIPTS = [name for name, page in PAGES.items() if scripts(page)]
ON_SPARK = [name for name in WITH_SCRIPTS if any("spark" in code for _, code in scripts(PAGES[name]))]


@pytest.mark.parametrize("page", [name for name in WITH_SCRIPTS if name not in ON_SPARK])
def test_the_python_of_a_page_runs(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run_scripts(page, monkeypatch)
    assert capfd.readouterr().err == ""


# The first two go through a broker's log several times; of the others the rooms below have tests of their own.
SLOW = ("docs/model.md", "docs/pipeline.md", "docs/notebooks.md", "docs/replay.md", "docs/resolve.md", "docs/stream.md")


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in ON_SPARK])
def test_the_python_of_a_page_about_spark_runs(
    page: str, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_folder(spark, folder), warnings.catch_warnings():
        warnings.simplefilter("default")  # Spark's and pandas' own
        run_scripts(page, monkeypatch)


@pytest.mark.slow  # runs pytest on each page
def test_the_tests_shown_pass(folder: Path) -> None:
    count = 0
    for number, (name, page) in enumerate(PAGES.items()):
        for line, code in shown_tests(page):
            count += len(re.findall(r"^(?:async )?def test_", code, re.MULTILINE))
            (folder / f"test_{number}_{line}.py").write_text(f"# {name}:{line}\n{code}")
    options = ["-q", "-W", "error", "--rootdir", str(folder)]
    for plugin in ("cacheprovider", "xdist", "asyncio", "anyio"):
        options += ["-p", f"no:{plugin}"]
    options += ["-p", "pytest_abeyant", "-p", "pytest_abeyant_kafka"]  # also where they were not there at install
    call = [sys.executable, "-m", "pytest", *options, *map(str, folder.glob("test_*.py"))]  # not those of examples/
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{count} passed" in ran.stdout


@pytest.mark.parametrize("page", [name for name, page in PAGES.items() if commands(page)])
def test_the_commands_of_a_page_are_understood(page: str) -> None:
    for words in commands(PAGES[page]):
        assert callable(cli._parser().parse_args(words).run)


def helps() -> dict[str, str]:
    """What --help prints on a terminal of 80 columns, by command."""
    parsers, found = [cli._parser()], {}
    while parsers:
        parser = parsers.pop()
        found[parser.prog] = parser.format_help()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    return found


def test_help_fits_a_terminal_and_its_examples_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    examples = 0
    for prog, text in helps().items():
        assert [line for line in text.splitlines() if len(line) > 80] == [], prog
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("  abeyant "):
                words = shlex.split(line.partition(" > ")[0].removesuffix("..."))
                assert callable(cli._parser().parse_args(words[1:]).run), line
                examples += 1
    assert examples > 20


@pytest.mark.slow
def test_the_commands_over_the_example_tables_run(spark: SparkSession, folder: Path) -> None:
    wanted = {
        shlex.join(words): words for page in PAGES.values() for words in commands(page) if SMALL in " ".join(words)
    }
    assert {words[0] for words in wanted.values()} == {"resolve", "stream"}
    for number, words in enumerate(wanted.values()):
        out = str(folder / f"result-{number}")
        assert cli.main([out if word == "result" else word for word in words]) == 0, shlex.join(words)
        outcomes = spark.read.parquet(f"file://{out}/outcomes").groupBy("outcome").count().collect()
        assert dict(map(tuple, outcomes)) == {"completed": 30, "expired": 10}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_links_to_is_there(page: str) -> None:
    """Files, and headings in them. `make docs` checks the same for the site."""
    text = re.sub(r"```.*?```", "", PAGES[page].read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (PAGES[page].parent / path).resolve() if path else PAGES[page]
        assert file.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(file), f"{page}: {target}"


def test_the_code_of_other_languages_is_that_of_the_examples_which_are_run() -> None:
    folder, count = ROOT / "examples" / "languages", 0
    for page, file in PAGES.items():
        for language, code in re.findall(
            r"^```(js|go|java|rust)\n(.*?)^```", file.read_text(), re.DOTALL | re.MULTILINE
        ):
            ending = "rs" if language == "rust" else language
            files = [one for one in folder.rglob(f"*.{ending}") if "node_modules" not in one.parts]
            assert any(code in one.read_text() for one in files), f"{page}: {code}"
            count += 1
    assert count >= 4


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_the_modules_that_a_page_names_are_there() -> None:
    """By the end of their paths, as `resolver/streams/shard.py`; and what `python -m` is to run."""
    files = [f"/{file.relative_to(ROOT).as_posix()}" for top in MODULES for file in (ROOT / top).rglob("*.py")]
    named = {(page, name) for page, file in PAGES.items() for name in re.findall(_MODULE, file.read_text())}
    run = {
        (page, f"{name.replace('.', '/')}.py")
        for page, file in PAGES.items()
        for name in re.findall(r"^PYTHONPATH=\S+ python -m (\S+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert len(run) > 3
    assert [one for one in sorted(named | run) if not any(file.endswith(f"/{one[1]}") for file in files)] == []


def test_the_makefile_has_the_targets_that_are_named() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name for page in PAGES.values() for name in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert named
    assert named <= targets


def test_the_readme_is_short_and_begins_with_what_people_want() -> None:
    text = PAGES["README.md"].read_text()
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) <= 500
    first_code = blocks(PAGES["README.md"], "python")[0][0]
    for word in ("hierarchical", "purgatory", "O(1)"):
        assert word not in "".join(text.splitlines(keepends=True)[:first_code]), (
            "words of the inside come after the first example"
        )


def reference_pages() -> set[str]:
    """The pages of the site's section "Reference", which people look things up in and do not read."""
    nav = (ROOT / "mkdocs.yml").read_text().partition("\n  - Reference:\n")[2]
    return {
        f"docs/{name}"
        for name in re.findall(r"([\w/-]+\.md)$", re.split(r"^  - ", nav, flags=re.MULTILINE)[0], re.MULTILINE)
    }


def test_a_page_that_is_read_has_at_most_1500_words() -> None:
    """Code, texts of pictures, and what is looked up aside. Split a longer page by what readers come for."""
    reference, long = reference_pages(), {}
    assert {"docs/laws.md", "docs/reference/timers.md"} <= reference < set(PAGES)
    for name in set(PAGES) - reference:
        text = re.sub(
            r"^( *)```.*?^ *```$|<!--.*?-->|!\[.*?\]\(.*?\)",
            "",
            PAGES[name].read_text(),
            flags=re.DOTALL | re.MULTILINE,
        )
        words = sum(any(sign.isalnum() for sign in word) for word in text.split())
        if words > 1500:
            long[name] = words
    assert long == {}


def test_the_badges_say_what_the_package_says_of_itself() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shown = re.findall("<text[^>]*>([^<]*)</text>", (ROOT / "docs" / "images" / "badges.svg").read_text())
    badges = dict(zip(shown[::2], shown[1::2], strict=True))
    (status,) = (one for one in project["classifiers"] if one.startswith("Development Status"))
    minors = [int(found[1]) for one in project["classifiers"] if (found := re.fullmatch(r".*:: 3\.(\d+)", one))]
    assert badges["status"] == status.rpartition(" - ")[2].lower()
    assert badges["licence"] == project["license"]
    assert badges["Python"] == f"3.{min(minors)} \u2013 3.{max(minors)}"
    assert (badges["dependencies"], project["dependencies"]) == ("none", [])


def test_every_public_name_is_in_the_reference() -> None:
    """Under its module, or under another that has the same."""
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    paths = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    public = {
        (module, name): getattr(importlib.import_module(module), name)
        for module in public_names.MODULES
        for name in importlib.import_module(module).__all__
        if not name.startswith("__")
    }
    there = [one for one in public if any(re.fullmatch(rf"{one[0]}\.(\w+\.)*{one[1]}", path) for path in paths)]
    assert [one for one in public if not any(public[one] is public[other] for other in there)] == []
