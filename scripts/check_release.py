"""Refuse a release that would go to a stranger: no home yet, another repository, or a name that is somebody else's.

    python -m scripts.check_release --repository https://HOST/OWNER/NAME [--index URL]

The home stands in pyproject.toml, [tool.abeyant]. The index is pip's own (PIP_INDEX_URL, pip's configuration, its
default) unless one is given. A name is ours when the project's metadata there names our home.
"""

from __future__ import annotations

import argparse
import email.parser
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
_JSON = "application/vnd.pypi.simple.v1+json"
_PATIENCE = 30.0


class ReleaseError(Exception):
    """The release is refused; the message is one line."""


def project(root: Path = ROOT) -> tuple[str, str]:
    """Return the name and the home; the home is empty while there is none."""
    found = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"]["name"], found["tool"]["abeyant"]["home"].rstrip("/")


def index_of_pip() -> str:
    """Return the index that pip installs from."""
    if url := os.environ.get("PIP_INDEX_URL"):
        return url
    pip = [sys.executable, "-m", "pip"]
    told = subprocess.run([*pip, "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    if told.returncode == 0 and told.stdout.strip():
        return told.stdout.strip()
    shown = subprocess.run([*pip, "download", "--help"], capture_output=True, text=True, check=True).stdout
    default = re.search(r"\(default\s+(https?://[^\s)]+)\)", shown)
    if default is None:
        raise ReleaseError("pip does not say which index it uses: give --index URL")
    return default[1]


def check_name(name: str, home: str, index: str) -> str:
    """Return how the index knows the name: free, or ours. Raise ReleaseError where it is another's, or cannot be known.

    Asks the simple API (PEP 691) and the metadata of the newest file (PEP 658, PEP 700).
    """
    page = f"{index.rstrip('/')}/{name}/"
    text = _fetch(page, accept=_JSON)
    if text is None:
        return f"{name} is free"
    try:
        files: list[dict[str, Any]] = json.loads(text)["files"]
    except (ValueError, LookupError, TypeError) as error:
        raise ReleaseError(f"{page} has the name, and does not say in JSON whose it is") from error
    told = [file for file in files if file.get("core-metadata") or file.get("dist-info-metadata")]
    if not told:
        raise ReleaseError(f"{page} has the name, and no metadata that says whose it is")
    newest = max(told, key=lambda file: file.get("upload-time") or "")
    metadata = _fetch(f"{urljoin(page, newest['url'])}.metadata") or ""
    fields = email.parser.Parser().parsestr(metadata)
    addresses = [line.partition(",")[2].strip() for line in fields.get_all("Project-URL", [])]
    if not any(address.rstrip("/") == home for address in (*addresses, fields.get("Home-page", ""))):
        raise ReleaseError(f"{name} is another's project on the index: its metadata does not name {home}")
    return f"{name} is ours"


def _fetch(url: str, accept: str = "*/*") -> str | None:
    """Return the text at an address; None where the server says that there is nothing."""
    try:
        with urlopen(Request(url, headers={"Accept": accept}), timeout=_PATIENCE) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except HTTPError as error:
        if error.code == 404:
            return None
        raise ReleaseError(f"{url} answers {error.code}: whose the name is cannot be known") from error
    except (URLError, OSError) as error:
        raise ReleaseError(f"{url} does not answer: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the module's docstring says; return the exit status."""
    parser = argparse.ArgumentParser(description="Check that a release may be published.")
    parser.add_argument("--repository", required=True, help="address of the repository that publishes")
    parser.add_argument("--index", help="simple API of the index (default: pip's index)")
    options = parser.parse_args(arguments)
    name, home = project()
    try:
        if not home:
            raise ReleaseError("there is no home to publish from: set `home` in pyproject.toml, [tool.abeyant]")
        if options.repository.rstrip("/") != home:
            raise ReleaseError(f"{options.repository} is not the home, {home}")
        print(f"check_release: {check_name(name, home, options.index or index_of_pip())}")
    except ReleaseError as error:
        print(f"check_release: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
