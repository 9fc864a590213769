"""Make build/abeyant.pyz: the command, and what the broker needs, in one file for any machine that has a Python.

    python -m scripts.make_pyz                        for the Python that runs this
    python -m scripts.make_pyz 3.11 3.12 3.13 3.14    for these, on this operating system and processor
    python3 -I build/abeyant.pyz broker --brokers 3 --window

The core in it is interpreted. Packages that the broker needs have compiled parts, which cannot be imported from a zip
file: at its first run it unpacks itself beside the user's other caches.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipapp
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "broker,window,metrics"
_GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
_UNUSED = ("bin", "__pycache__")

_MAIN = '''\
"""Unpack this file once, beside the user's other caches, and run the command `abeyant`."""

import atexit
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile

OWN = os.path.dirname(os.path.abspath(__file__))


def unpack(archive, folder, parts):
    for name in archive.namelist():
        part, _, rest = name.partition("/")
        if part in parts and rest and not name.endswith("/"):
            path = os.path.join(folder, *rest.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(name) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)


def unpacked():
    with zipfile.ZipFile(OWN) as archive:
        made = json.loads(archive.read("made.json"))
        own = sysconfig.get_config_var("SOABI") or sysconfig.get_platform()
        if own not in made["for"]:
            sys.exit(f"abeyant.pyz: error: this Python is {own}; run the file with one of {', '.join(made['for'])}")
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        folder = os.path.join(cache, "abeyant", f"pyz-{made['digest']}-{own}")
        if os.path.isdir(folder):
            return folder
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            part = tempfile.mkdtemp(prefix="part-", dir=os.path.dirname(folder))
        except OSError:  # nothing may be kept here: unpack for this run alone
            folder = tempfile.mkdtemp(prefix="abeyant-pyz-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            unpack(archive, folder, ("common", own))
            return folder
        unpack(archive, part, ("common", own))
        try:
            os.rename(part, folder)
        except OSError:  # another process was here first
            shutil.rmtree(part, ignore_errors=True)
        return folder


sys.path.insert(0, unpacked())
from abeyant.cli import main

sys.exit(main())
'''


class MakeError(Exception):
    """What cannot be made, in one line."""


def make(target: Path, versions: list[str]) -> Path:
    """Write the file for Pythons "3.N" on this system, and return its path. Raises MakeError."""
    with tempfile.TemporaryDirectory(prefix="abeyant-pyz-") as made:
        folder = Path(made)
        wheel = _wheel(folder / "wheel")
        pins = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8").splitlines()
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(line for line in pins if "==" in line), encoding="utf-8")
        trees = {_abi(version): folder / version for version in versions}
        for version, tree in zip(versions, trees.values(), strict=True):
            wanted = [f"{wheel}[{EXTRAS}]", "--constraint", str(constraints)]
            _pip("install", "--no-compile", "--target", str(tree), "--only-binary=:all:", *_platform(version), *wanted)
        source = folder / "source"
        digest = _merge(trees, source)
        described = {"for": list(trees), "digest": digest}
        (source / "made.json").write_text(json.dumps(described), encoding="utf-8")
        (source / "__main__.py").write_text(_MAIN, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        zipapp.create_archive(source, target, "/usr/bin/env python3", compressed=True)
    return target


def _wheel(folder: Path) -> Path:
    """Build our wheel, of a copy: a checkout's `build/` may hold modules that are no more."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "scripts/compilation.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    words = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    _pip("wheel", str(folder), *words, ABEYANT_NO_COMPILE="1")
    [found] = folder.glob("*.whl")
    return found


def _abi(version: str) -> str:
    own = str(sysconfig.get_config_var("SOABI") or sysconfig.get_platform())
    return own.replace(sys.implementation.cache_tag or "", f"cpython-{version.replace('.', '')}", 1)


def _platform(version: str) -> list[str]:
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return []
    own = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    names = [own] if not own.startswith("linux_") else [f"{libc}_{own.removeprefix('linux_')}" for libc in _GLIBC]
    return ["--python-version", version, *(word for name in names for word in ("--platform", name))]


def _merge(trees: dict[str, Path], source: Path) -> str:
    """Copy what all trees have in common to one folder, and the rest of each to its own; return a digest of it all."""
    files = {
        abi: {
            path.relative_to(tree): path for path in sorted(tree.rglob("*")) if path.is_file() and _is_used(path, tree)
        }
        for abi, tree in trees.items()
    }
    digest = hashlib.sha256(_MAIN.encode())
    for abi, found in files.items():
        for name, path in found.items():
            data = path.read_bytes()
            shared = all(name in other and other[name].read_bytes() == data for other in files.values())
            folder = "common" if shared else abi
            copy = source / folder / name
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
                digest.update(f"{folder}/{name.as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:16]


def _is_used(path: Path, tree: Path) -> bool:
    parts = path.relative_to(tree).parts
    return not set(parts) & set(_UNUSED) and path.name not in ("RECORD", "direct_url.json")


def _pip(*words: str, **variables: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MakeError(f"pip {words[0]} failed: {' '.join(done.stderr.split())[-600:]}")


def main() -> None:
    """Make the file, and say how large it is."""
    versions = sys.argv[1:] or [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    try:
        made = make(ROOT / "build" / "abeyant.pyz", versions)
    except MakeError as error:
        raise SystemExit(f"make_pyz: error: {error}") from None
    print(f"made: {made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB, for Python {', '.join(versions)}")


if __name__ == "__main__":
    main()
