"""pytest-asyncio, anyio's plugin, uvicorn and gunicorn on our loop, by the lines that docs/asyncio.md gives for it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import uvicorn

from abeyant import aio
from test_docs import PAGES, blocks

TEST = """
import asyncio

import pytest

from abeyant import aio

@pytest.mark.{mark}
async def test_it_is_ours() -> None:
    await asyncio.sleep(0.001)
    assert type(asyncio.get_running_loop()) is aio.EventLoop
"""


@pytest.mark.parametrize(
    ("mark", "plugin", "words"),
    [
        ("asyncio", "pytest_asyncio.plugin", "def pytest_asyncio_loop_factories"),
        ("anyio", "anyio.pytest_plugin", "def anyio_backend"),
    ],
)
def test_a_conftest_as_shown(tmp_path: Path, mark: str, plugin: str, words: str) -> None:
    (shown,) = (code for _, code in blocks(PAGES["docs/asyncio.md"], "python") if words in code)
    (tmp_path / "conftest.py").write_text(f"from abeyant import aio\n{shown}")
    (tmp_path / "test_it.py").write_text(TEST.format(mark=mark))
    scope = "asyncio_default_fixture_loop_scope = function\n" if mark == "asyncio" else ""
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{scope}")
    call = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", plugin]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        call, cwd=tmp_path, env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_the_loop_that_uvicorn_is_told_of() -> None:
    found = re.search(r"--loop (\S+)`", PAGES["docs/asyncio.md"].read_text())
    assert found is not None
    factory = uvicorn.Config("app:app", loop=found[1]).get_loop_factory()
    assert factory is aio.EventLoop


APP = """
import asyncio

async def app(scope, receive, send):
    assert scope["type"] == "http"
    loop = type(asyncio.get_running_loop())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{loop.__module__}.{loop.__name__}".encode()})
"""


def test_a_worker_of_gunicorn_as_shown(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="gunicorn and uvicorn-worker are not installed")
    text = PAGES["docs/asyncio.md"].read_text()
    (worker,) = (code for _, code in blocks(PAGES["docs/asyncio.md"], "python") if "uvicorn_worker" in code)
    command = re.search(r"`gunicorn ([^`]+)`", text)
    assert command is not None
    (tmp_path / "workers.py").write_text(worker)
    (tmp_path / "app.py").write_text(APP)
    call = [sys.executable, "-m", "gunicorn", *shlex.split(command[1]), "--bind", "127.0.0.1:0"]
    with subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as gunicorn:
        assert gunicorn.stderr is not None
        try:
            said = iter(gunicorn.stderr.readline, "")
            address = next(found[1] for line in said if (found := re.search(r"Listening at: (\S+)", line)))
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert answer.read().decode() == f"{aio.EventLoop.__module__}.{aio.EventLoop.__name__}"
        finally:
            gunicorn.terminate()
            told = gunicorn.stderr.read()
    assert gunicorn.returncode == 0, told
