"""The pure wheel in Pyodide: in Node, and on the documentation's page in a real browser. Nothing but a local server."""

from __future__ import annotations

import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pages.browser import NAMES, browse, installed
from scripts import browser_files

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

pytestmark = pytest.mark.slow  # it fetches Pyodide, 13 MB, and starts it twice


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's folder, as `make docs` makes it."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine, from which Pyodide comes")
    folder = tmp_path_factory.mktemp("site") / "browser"
    shutil.copytree(ROOT / "docs" / "browser", folder)
    browser_files.copy_drawing(folder)
    try:
        browser_files.fetch_pyodide(folder / "pyodide")
    except browser_files.NotHadError as error:
        pytest.skip(f"Pyodide cannot be had: {error}")
    browser_files.build_wheel(folder).rename(folder / "abeyant.whl")
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_wheel_is_pure(folder: Path) -> None:
    with zipfile.ZipFile(folder / "abeyant.whl") as wheel:
        names = wheel.namelist()
        [tags] = [wheel.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL")]
    assert "Root-Is-Purelib: true" in tags
    assert "Tag: py3-none-any" in tags
    assert [name for name in names if name.endswith((".so", ".pyd", ".c"))] == []
    assert "abeyant/engine/wheel.py" in names


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_it_runs_in_node(folder: Path, tmp_path: Path) -> None:
    command: list[str | Path] = ["node", HERE / "program.mjs", folder]
    errors = tmp_path / "errors"  # of a pipe Node loses the end, where it is said what happened
    with errors.open("w", encoding="utf-8") as stderr:
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False, timeout=300)
    said = [line[:200] for line in errors.read_text(encoding="utf-8").splitlines()]
    assert (ran.stdout.splitlines()[-1:], ran.returncode) == (["alive"], 0), "\n".join(said[-20:])


@pytest.mark.skipif(installed() is None, reason=f"no browser is installed (looked for {', '.join(NAMES)})")
def test_the_page_runs_it_in_a_browser(address: str) -> None:
    program = installed()
    assert program is not None
    with browse(program) as page:
        page.show()
        page.visit(f"{address}/wheel.html")
        # As long as Node has: on a busy machine Pyodide's start has taken more than a minute.
        said = page.wait_for("/^Ready|cannot/.test(state.textContent) && state.textContent", patience_s=300)
        assert said.startswith("Ready: abeyant"), said
        page.run("start.click()")
        page.run("delay.value = 3; start.click()")
        page.run("delay.value = 5; start.click()")
        assert page.run("document.querySelectorAll('.wheel-hand').length") == 3, "100 s need a third wheel of eight"
        titles = page.run("[...document.querySelectorAll('.wheel-bucket title')].map(one => one.textContent)")
        assert sorted(titles) == [
            "level 1, bucket 3: 1 task, 1 s a bucket", "level 1, bucket 5: 1 task, 1 s a bucket",
            "level 3, bucket 1: 1 task, 64 s a bucket",
        ]  # fmt: skip
        assert page.run("[...document.querySelectorAll('.lane-key')].map(one => one.firstChild.data)") == [
            "wheel 1", "wheel 3",
        ]  # fmt: skip
        page.run("document.querySelector('[data-cancel=\"3\"]').click()")
        page.run("document.querySelector('[data-turn=\"64\"]').click()")
        for _ in range(5):
            page.run("document.querySelector('[data-turn=\"8\"]').click()")
        log = page.run("[...document.querySelectorAll('#log li')].map(item => item.textContent)")
        counts = page.run("counts.textContent")
        assert log[::-1][:4] == ["1 started, for 100 s", "2 started, for 3 s", "3 started, for 5 s", "3 cancelled"]
        assert "at 3 s: 2 due" in log
        assert "at 64 s: 1 cascaded, to a lower wheel or its due tick" in log
        assert "at 96 s: 1 cascaded, to a lower wheel or its due tick" in log, "level by level"
        assert log[0] == "at 100 s: 1 due"
        assert counts.startswith("3 started, 2 due, 1 cancelled, ")
        assert page.run("clock.textContent") == "104"
        assert page.run("document.querySelectorAll('#pending button').length") == 0
        assert all(request.startswith(address) for request in page.requests)
        assert page.complaints == []


@pytest.mark.skipif(installed() is None, reason=f"no browser is installed (looked for {', '.join(NAMES)})")
def test_opened_as_a_file_the_page_says_how_to_open_it() -> None:
    program = installed()
    assert program is not None
    with browse(program) as page:
        page.visit((ROOT / "docs" / "browser" / "wheel.html").as_uri())
        assert "python -m http.server" in page.run("state.textContent")
