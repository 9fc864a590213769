"""Find where this installation came from, for messages that say how to install an extra.

Installers note the origin in the distribution's `direct_url.json` (PEP 610): a checkout, a file, the URL of an archive
or a repository. They note nothing for a package from an index. Until the first release no index has the package, so
`pip install` needs a path or URL; a release is recognised by the home page in its metadata.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["install_command", "lacking_by_extra"]

_NAME: Final = "abeyant"
_BROUGHT: Final = re.compile(r"""([\w.-]+)(?:\[[\w,.-]+\])?[^;]*;.*\bextra == ['"]([\w-]+)['"]""")
_NOT_FOR_USERS: Final = "dev"


def install_command(*extras: str) -> str:
    """Return the command that installs the extras from where this installation came. Reads two small files."""
    from importlib.metadata import PackageNotFoundError, distribution  # costs as much as all of the package's timers

    released, noted = False, None
    try:
        package = distribution(_NAME)
        released = bool(package.metadata.get_all("Project-URL"))
        noted = json.loads(package.read_text("direct_url.json") or "null")
    except (PackageNotFoundError, OSError, ValueError):
        pass  # run from a folder on the path, or a note that is damaged
    checkout = Path(__file__).parents[2]
    return command(noted, extras, checkout if (checkout / "pyproject.toml").is_file() else None, released=released)


def lacking_by_extra() -> dict[str, list[str]]:
    """Return, for each extra, its distributions that are not installed; {} if this package itself is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution, requires

    try:
        requirements = requires(_NAME) or []
    except PackageNotFoundError:  # run from a folder on the path
        return {}
    missing: dict[str, list[str]] = {}
    for name, extra in (match.groups() for match in map(_BROUGHT.match, requirements) if match is not None):
        if extra == _NOT_FOR_USERS:
            continue
        absent = missing.setdefault(extra, [])
        try:
            distribution(name)
        except PackageNotFoundError:
            absent.append(name)
    return missing


def command(direct_url: Any, extras: tuple[str, ...], checkout: Path | None, *, released: bool) -> str:
    """Return the command that installs the package with `extras`, from where it was installed before.

    `direct_url` is the content of `direct_url.json` (PEP 610), None without that file. `checkout` is the checkout that
    the package is run from, if any; `released` is whether an index has the package. The command has no credentials: no
    password or query of a URL, and no user other than `git`.
    """
    suffix = f"[{','.join(extras)}]"
    if isinstance(direct_url, Mapping) and isinstance(direct_url.get("url"), str):
        editable, vcs = (direct_url.get("dir_info") or {}).get("editable"), direct_url.get("vcs_info") or {}
        with suppress(ValueError):  # not a URL, or an invalid port
            url = urlsplit(direct_url["url"])
            if not vcs and (file := _file(url)) is not None:
                if file.exists():
                    return f"pip install {'-e ' if editable else ''}{_quoted(f'{file}{suffix}')}"
                return f"{_unknown(suffix)}; it was {file}, which is gone"
            if (address := _address(url, vcs, direct_url.get("subdirectory"))) is not None:
                return f"pip install {_quoted(f'{_NAME}{suffix} @ {address}')}"
    elif checkout is not None:
        return f"pip install {_quoted(f'{checkout}{suffix}')}"
    elif released:
        return f"pip install {_quoted(f'{_NAME}{suffix}')}"
    return _unknown(suffix)


def _unknown(suffix: str) -> str:
    place = _quoted(f"PLACE{suffix}")
    return f"pip install {place}, where PLACE is the wheel or checkout from which {_NAME} was installed"


def _file(parts: SplitResult) -> Path | None:
    """Return the path of the file or folder that a file: URL names; None for other URLs."""
    from urllib.request import url2pathname  # here: it takes a tenth of a broker's start

    if parts.scheme != "file":
        return None
    host = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return Path(url2pathname(host + parts.path))


def _address(parts: SplitResult, vcs: Mapping[str, Any], subdirectory: object) -> str | None:
    """Return the requirement's URL without user, password and query; None if it has no scheme or host."""
    host = parts.hostname or ("localhost" if parts.scheme == "file" else "")  # pip takes no address without a host
    if not parts.scheme or not host:
        return None
    # `git` is everybody's user of Git over SSH: no secret, and part of the address.
    user = "git@" if parts.username == "git" and parts.password is None else ""
    host = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    scheme = f"{vcs['vcs']}+{parts.scheme}" if vcs.get("vcs") else parts.scheme
    revision = vcs.get("commit_id") or vcs.get("requested_revision")
    return (
        f"{scheme}://{user}{host}{port}{parts.path}"
        + (f"@{revision}" if revision else "")
        + ("?(hidden)" if parts.query else "")
        + (f"#subdirectory={subdirectory}" if isinstance(subdirectory, str) else "")
    )


def _quoted(word: str) -> str:
    """Quote a word for this system's usual shell."""
    return f'"{word}"' if os.name == "nt" else shlex.quote(word)
