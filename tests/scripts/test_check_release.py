"""A release is refused while there is no home, from elsewhere, and where the index has the name for somebody else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts import check_release

HOME = "https://forge.example/ours/abeyant"


class _Index(BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, str]]

    def do_GET(self) -> None:
        status, text = self.answers.get(self.path, (404, ""))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[tuple[str, dict[str, tuple[int, str]]]]:
    """A package index on this machine: its address, and what it answers by path."""
    answers: dict[str, tuple[int, str]] = {}
    handler = type("_Handler", (_Index,), {"answers": answers})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple", answers
        server.shutdown()
        thread.join()


def listed(*homes: str) -> dict[str, tuple[int, str]]:
    """An index with a file for each home, the last one the newest."""
    names = [f"abeyant-0.{number}-py3-none-any.whl" for number in range(len(homes))]
    files = [
        {"url": f"../../files/{name}", "core-metadata": {"sha256": "0"}, "upload-time": f"2026-01-0{number + 1}"}
        for number, name in enumerate(names)
    ]
    metadata = {
        f"/files/{name}.metadata": (200, f"Metadata-Version: 2.4\nName: abeyant\nProject-URL: Homepage, {home}\n")
        for name, home in zip(names, homes, strict=True)
    }
    return {"/simple/abeyant/": (200, json.dumps({"files": files[::-1]}))} | metadata


def test_a_name_that_is_free_or_ours_may_be_published(index: tuple[str, dict[str, tuple[int, str]]]) -> None:
    address, answers = index
    assert check_release.check_name("abeyant", HOME, address) == "abeyant is free"
    answers.update(listed("https://forge.example/before", f"{HOME}/"))
    assert check_release.check_name("abeyant", HOME, f"{address}/") == "abeyant is ours"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (listed("https://forge.example/stranger"), "is another's project"),
        (listed(HOME, "https://forge.example/stranger"), "is another's project"),
        ({"/simple/abeyant/": (200, '{"files": []}')}, "no metadata"),
        ({"/simple/abeyant/": (200, "<html>")}, "does not say in JSON"),
        ({"/simple/abeyant/": (503, "")}, "answers 503"),
    ],
)
def test_any_other_answer_refuses(
    answers: dict[str, tuple[int, str]], said: str, index: tuple[str, dict[str, tuple[int, str]]]
) -> None:
    index[1].update(answers)
    with pytest.raises(check_release.ReleaseError, match=said):
        check_release.check_name("abeyant", HOME, index[0])


def test_an_index_that_does_not_answer_refuses() -> None:
    with pytest.raises(check_release.ReleaseError, match="does not answer"):
        check_release.check_name("abeyant", HOME, "http://127.0.0.1:1/simple")


def test_the_index_is_that_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    assert check_release.index_of_pip() == "http://127.0.0.1:1/simple"


@pytest.mark.parametrize(
    ("home", "repository", "said"),
    [("", HOME, "there is no home"), (HOME, "https://forge.example/fork/abeyant", "is not the home")],
)
def test_without_a_home_or_from_elsewhere_nothing_is_published(
    home: str, repository: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_release, "project", lambda: ("abeyant", home))
    assert check_release.main(["--repository", repository, "--index", "http://127.0.0.1:1"]) == 1
    assert said in capsys.readouterr().err
