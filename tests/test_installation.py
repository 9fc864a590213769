"""What a message says of where to install an extra from: the place from which this installation came."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from abeyant import cli
from abeyant.installation import command, install_command, lacking_by_extra
from abeyant.lazy import missing, needs

ROOT = Path(__file__).parents[1]
COMMIT = "1" * 40


def folder(path: Path, **details: Any) -> dict[str, Any]:
    return {"url": path.as_uri(), "dir_info": details}


def git(url: str, **more: str) -> dict[str, Any]:
    return {"url": url, "vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}, **more}


def archive(url: str) -> dict[str, Any]:
    return {"url": url, "archive_info": {"hash": "sha256=0"}}


def shown(noted: Any, *extras: str) -> str:
    return command(noted, extras or ("spark",), None, released=False)


def test_a_checkout_is_named_and_stays_editable(tmp_path: Path) -> None:
    place = tmp_path / "my checkout"
    place.mkdir()
    assert shown(folder(place)) == f"pip install '{place}[spark]'"
    assert shown(folder(place, editable=True), "spark", "report") == f"pip install -e '{place}[spark,report]'"


def test_a_wheel_on_disk_is_named_while_it_is_there(tmp_path: Path) -> None:
    wheel = tmp_path / "abeyant-0.1.0-py3-none-any.whl"
    wheel.touch()
    assert shown(archive(wheel.as_uri())) == f"pip install '{wheel}[spark]'"
    wheel.unlink()
    assert shown(archive(wheel.as_uri())) == (
        "pip install 'PLACE[spark]', where PLACE is the wheel or checkout from which abeyant was installed; "
        f"it was {wheel}, which is gone"
    )


@pytest.mark.parametrize(
    ("noted", "address"),
    [
        (git("https://host/a.git"), f"git+https://host/a.git@{COMMIT}"),
        (git("ssh://git@host:2222/a.git"), f"git+ssh://git@host:2222/a.git@{COMMIT}"),
        (git("file:///srv/a.git"), f"git+file://localhost/srv/a.git@{COMMIT}"),
        (git("https://host/a.git", subdirectory="b"), f"git+https://host/a.git@{COMMIT}#subdirectory=b"),
        (archive("https://host/abeyant.whl"), "https://host/abeyant.whl"),
        (archive("https://[::1]:8000/abeyant.whl"), "https://[::1]:8000/abeyant.whl"),
    ],
)
def test_an_address_is_named(noted: Any, address: str) -> None:
    assert shown(noted) == f"pip install 'abeyant[spark] @ {address}'"


@pytest.mark.parametrize(
    "url",
    [
        "https://alice:s3cret@host/abeyant.whl",
        "https://s3cret@host/abeyant.whl",
        "https://git:s3cret@host/abeyant.whl",
        "https://host/abeyant.whl?token=s3cret",
        "https://host/abeyant.whl#s3cret",
        "https://alice:s3cret@[::1/abeyant.whl",  # no address
        "https://alice:s3cret@host:port/abeyant.whl",
        "s3cret@host:a.git",
    ],
)
@pytest.mark.parametrize("kind", [git, archive])
def test_no_credentials_are_shown(url: str, kind: Any) -> None:
    said = shown(kind(url))
    assert "s3cret" not in said
    assert "alice" not in said
    assert said.startswith("pip install ")


@pytest.mark.parametrize("noted", [None, {}, [], {"url": 1}, {"url": ""}, {"url": "nonsense"}])
def test_without_a_note_no_name_is_given_that_no_index_has(noted: Any) -> None:
    said = "pip install 'PLACE[spark]', where PLACE is the wheel or checkout from which abeyant was installed"
    assert shown(noted) == said


def test_without_a_note_a_checkout_that_it_runs_from_is_named_else_a_release() -> None:
    checkout = Path("/srv/checkout")
    assert command(None, ("spark",), checkout, released=False) == "pip install '/srv/checkout[spark]'"
    assert command(None, ("spark",), None, released=True) == "pip install 'abeyant[spark]'"


def test_this_installation_is_named() -> None:
    noted = json.loads(distribution("abeyant").read_text("direct_url.json") or "null")
    if noted is None or not noted["url"].startswith("file:"):
        pytest.skip("the package under test was not installed from this machine")
    assert install_command("java") == shown(noted, "java")


def test_run_from_a_folder_on_the_path_the_checkout_is_named(tmp_path: Path) -> None:
    """Without the distribution: as with PYTHONPATH=src."""
    program = f"import sys; sys.path[:] = [{str(ROOT / 'src')!r}, *(p for p in sys.path if 'site-packages' not in p)]\n"
    program += "from abeyant.installation import install_command; print(install_command('spark'))"
    words = [sys.executable, "-S", "-c", program]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == f"pip install '{ROOT}[spark]'\n"


def test_all_that_is_missing_is_named_with_one_command() -> None:
    lacking = missing(
        {"spark": ("sys", "no_such_spark", "no_such_arrow"), "report": ("no_such_plot",), "java": ("os",)}
    )
    assert lacking == {"spark": ["no_such_spark", "no_such_arrow"], "report": ["no_such_plot"]}
    said = str(needs("analyze", lacking))
    assert said == (
        f"analyze needs no_such_spark, no_such_arrow and no_such_plot: {install_command('spark', 'report')}"
    )


def test_info_names_each_extra_that_is_not_here_and_one_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(lacking_by_extra()) == set(declared) - {"dev"}

    def without(name: str) -> importlib.metadata.Distribution:
        if name in ("argcomplete", "h11"):
            raise importlib.metadata.PackageNotFoundError(name)
        return distribution(name)

    monkeypatch.setattr(importlib.metadata, "distribution", without)
    assert {extra for extra, names in lacking_by_extra().items() if names} == {"completion", "window"}
    assert cli.main(["info"]) == 0
    said = capsys.readouterr().out
    assert "missing: completion (argcomplete), window (h11); to install: pip install" in said
    assert "[completion,window]" in said
