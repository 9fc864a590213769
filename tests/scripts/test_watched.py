"""Set-up tells what its commands do, in their own words made short, and ends with what a failed one said."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from scripts.watched import Watched, run_all


def python(code: str) -> Watched:
    return Watched("packages", [sys.executable, "-c", code])


@pytest.mark.parametrize(
    ("line", "news"),
    [
        ("Collecting pandas==2.3.3", "looking for pandas"),
        ("Downloading https://host/numpy-2.4.6-cp311-cp311-any.whl (300 kB)", "downloading numpy-2.4.6"),
        ("Building wheel for pyspark (pyproject.toml): started", "unpacking pyspark"),
        ("Installing collected packages: pytz, tzdata", "installing 2 packages"),
        ("  [11/36] Cythonizing src/abeyant/idle/peers.py", "translating module 11 of 36 to C"),
        ("  building 'abeyant.engine.wheel' extension", "compiling abeyant.engine.wheel"),
        ("whatever else", "starting"),
    ],
)
def test_a_line_of_output_becomes_news(tmp_path: Path, line: str, news: str) -> None:
    watched = python(f"print({line!r})")
    assert watched.run(tmp_path) == 0
    assert str(watched) == f"packages: {news}"


def test_a_download_is_told_in_megabytes(tmp_path: Path) -> None:
    # What pip does: the file grows in a folder of its own below TMPDIR.
    code = """
import os, pathlib, time
print("Downloading spark-4.tar.gz (2.0 MB)")
folder = pathlib.Path(os.environ["TMPDIR"], "pip-unpack-1")
folder.mkdir()
(folder / "spark-4.tar.gz").write_bytes(bytes(1_200_000))
time.sleep(60)
"""
    watched = python(code)
    told = []

    def wait() -> None:
        while "1 of" not in (words := str(watched)):
            time.sleep(0.01)
        told.append(words)
        watched.stop()

    waiting = threading.Thread(target=wait)
    waiting.start()
    watched.run(tmp_path)
    waiting.join()
    assert told == ["packages: downloading spark-4, 1 of 2 MB"]


def test_one_that_fails_ends_the_others_and_is_told_with_its_last_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing = python("import sys; print('no such thing'); sys.exit(3)")
    with pytest.raises(SystemExit, match=r"set-up: error: packages: .* failed"):
        run_all([python("import time; time.sleep(600)"), failing], tmp_path, time.monotonic())
    assert "no such thing" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
