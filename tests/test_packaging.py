"""What the package says of itself: links that work wherever it is read, one version, all that it needs in the sdist."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import abeyant

ROOT = Path(__file__).parents[1]
HOME = "https://forge.example/ours/abeyant"
ADDRESS = re.compile(rf"{re.escape(HOME)}/(?:blob|raw)/main/([^)#\s]+)")


@pytest.fixture(scope="module")
def setup() -> ModuleType:
    found = importlib.util.spec_from_file_location("setup_of_abeyant", ROOT / "setup.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_link_of_the_readme_is_absolute_and_leads_to_a_file(setup: ModuleType) -> None:
    shown = setup.readme((ROOT / "README.md").read_text(), HOME)
    assert not re.search(r"\]\((?!https?:|#)", shown)
    files = ADDRESS.findall(shown)
    assert len(files) > 10
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert setup.urls(HOME)["Homepage"] == HOME


def test_without_a_home_the_readme_keeps_the_words_of_its_links(setup: ModuleType) -> None:
    assert not re.search(r"\]\((?!https?:|#)", setup.readme((ROOT / "README.md").read_text(), ""))
    assert setup.readme("![a picture](docs/b.svg) [a page](docs/c.md) [d](https://e/f)", "") == (
        "a picture a page [d](https://e/f)"
    )
    assert setup.urls("") == {}


@pytest.mark.parametrize(
    ("link", "absolute"),
    [
        ("[a](docs/a.md#part)", "[a](https://host/blob/main/docs/a.md#part)"),
        ("![two words](docs/b.svg)", "![two words](https://host/raw/main/docs/b.svg)"),
        ("[c](https://elsewhere/c) [d](#below)", "[c](https://elsewhere/c) [d](#below)"),
    ],
)
def test_links_to_files_of_the_repository_become_absolute(setup: ModuleType, link: str, absolute: str) -> None:
    assert setup.readme(link, "https://host") == absolute


def test_one_version_is_named_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == abeyant.__version__
    assert f"\nversion: {abeyant.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert "urls" in project["dynamic"]
