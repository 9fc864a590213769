"""One file that runs with a bare Python, which has none of our packages."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from scripts.make_pyz import MakeError, make

pytestmark = pytest.mark.slow

PYTHON = Path(sys.base_prefix, "bin", "python3")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return make(tmp_path_factory.mktemp("pyz") / "abeyant.pyz", [f"{sys.version_info[0]}.{sys.version_info[1]}"])
    except MakeError as error:
        pytest.skip(f"packages cannot be had here: {error}")


@contextmanager
def broker(pyz: Path, cache: str) -> Iterator[dict[str, Any]]:
    line = [str(PYTHON), "-I", str(pyz), "broker", "--port", "0", "--control", "--window", "--topic", "orders"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, env={"XDG_CACHE_HOME": cache}, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()
    assert process.returncode == 0


def produced(servers: str) -> list[object]:
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    return errors


@pytest.mark.skipif(not PYTHON.exists(), reason="this Python is laid out otherwise")
def test_a_bare_python_runs_the_broker(pyz: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    with broker(pyz, cache) as first, broker(pyz, cache) as second:  # both unpack
        for told in (first, second):
            assert told["window"] != told["control"]
            assert produced(told["bootstrap.servers"]) == [None]
    [kept] = Path(cache, "abeyant").iterdir()
    assert (kept / "abeyant" / "window" / "window.js").exists()
    with broker(pyz, "/dev/null/nowhere") as told:
        assert told["brokers"] == 1


@pytest.mark.skipif(not PYTHON.exists(), reason="this Python is laid out otherwise")
def test_another_python_is_told_which_it_is_for(pyz: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pyz"
    with zipfile.ZipFile(pyz) as made, zipfile.ZipFile(other, "w") as copy:
        copy.writestr("__main__.py", made.read("__main__.py"))
        copy.writestr("made.json", json.dumps({"for": ["cpython-42-x86_64-linux-gnu"], "digest": "0"}))
    done = subprocess.run([PYTHON, "-I", other, "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("abeyant.pyz: error: this Python is cpython-3")
    assert done.stderr.endswith("; run the file with one of cpython-42-x86_64-linux-gnu\n")
