"""The archive of Spark's classes: made once, kept apart by what it is for, used where it fits, and never required."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from abeyant.pipeline.spark import archive
from abeyant.pipeline.spark.archive import CLASS_ARCHIVE, archive_options, class_list
from abeyant.pipeline.spark.java import Java, find_java
from waiting import wait_until

JARS = Path(pyspark.__file__).parent / "jars"
# As PySpark does: a Java with a gateway, which ends with its standard input.
PROGRAM = """
import atexit, shlex, sys
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from abeyant.pipeline.spark.archive import class_list
from abeyant.pipeline.spark.jvm import end_listing
home, jar, log, options = sys.argv[1:]
split = [*shlex.split(options), "-Xlog:class+load:file=" + log]
port, process = launch_gateway(
    jarpath=jar, java_path=home + "/bin/java", javaopts=split, die_on_exit=True, return_proc=True
)
gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
gateway.proc = process
listed = class_list(options)
if listed is not None:
    atexit.register(end_listing, gateway, listed)
"""

the_java = functools.cache(find_java)


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A folder with one jar of Spark's, whose program takes no second."""
    folder = tmp_path / "jars"
    folder.mkdir()
    shutil.copy(next(JARS.glob("py4j-*.jar")), folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "a cache"


@pytest.fixture(autouse=True)
def _enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_memory", lambda: 8 << 30)


def asked(jars: Path, cache: Path, named: str = "", *, write: bool = True, java: Java | None = None) -> str:
    """What a JVM is told to do with an archive: `write`, `use`, or nothing."""
    options = archive_options(java or the_java(), jars, named, write=write, environ={}, cache=cache)
    told = " ".join(options)
    return "write" if class_list(told) else "use" if "SharedArchiveFile" in told else told


def archives(cache: Path) -> list[Path]:
    return sorted(cache.glob("*"))


def source(jars: Path, cache: Path, how: str = "wait") -> str:
    """Run a JVM that may list its classes, wait for the archive if told, and return where a class came from."""
    options = archive_options(the_java(), jars, "", write=True, environ={}, cache=cache)
    (jar,), log = jars.glob("*.jar"), jars.with_name("loaded.log")
    call: list[str | Path] = [sys.executable, "-c", PROGRAM, the_java().home, jar, log, " ".join(options)]
    environment = {**os.environ, CLASS_ARCHIVE: how}
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (loaded,) = (line for line in log.read_text().splitlines() if " py4j.GatewayServer source: " in line)
    return loaded.partition(" source: ")[2]


def test_a_jvm_lists_its_classes_and_the_next_takes_them_from_the_archive(jars: Path, cache: Path) -> None:
    assert source(jars, cache) == f"file:{next(jars.glob('*.jar'))}"
    assert [file.suffix for file in archives(cache)] == [".list", ".new"]
    assert source(jars, cache) == "shared objects file"
    assert [file.suffix for file in archives(cache)] == [".jsa"]


@pytest.mark.slow  # starts a JVM
@pytest.mark.skipif(shutil.which("nice") is None, reason="no nice here")
def test_who_does_not_wait_leaves_it_to_a_process_of_the_lowest_priority(
    jars: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, nice = tmp_path / "called", tmp_path / "bin" / "nice"
    nice.parent.mkdir()
    nice.write_text(f'#!/bin/sh\nprintf "%s " "$@" > "{called}"\nexec {shutil.which("nice")} "$@"\n')
    nice.chmod(0o700)
    monkeypatch.setenv("PATH", f"{nice.parent}{os.pathsep}{os.environ['PATH']}")
    source(jars, cache, how="")
    wait_until(lambda: called.exists() and called.read_text().startswith("-n 19 "))
    assert "-Xshare:dump" in called.read_text()


@pytest.mark.slow  # starts a JVM
@pytest.mark.parametrize("damage", ["cut", "other bytes"])
def test_a_damaged_one_is_passed_over_in_silence(jars: Path, cache: Path, damage: str) -> None:
    from_jar = source(jars, cache)
    assert asked(jars, cache) == "use"
    (made,) = archives(cache)
    size = made.stat().st_size
    made.chmod(0o600)
    made.write_bytes(b"no class of" * 99 if damage == "cut" else b"?" * size)
    assert asked(jars, cache) == ("write" if damage == "cut" else "use")
    assert source(jars, cache) == from_jar


def test_one_jvm_at_a_time_writes_it(jars: Path, cache: Path) -> None:
    assert asked(jars, cache, write=False) == ""
    assert archives(cache) == []
    assert asked(jars, cache) == "write"
    assert asked(jars, cache) == ""
    (claimed,) = archives(cache)
    claimed.write_bytes(bytes(4096))  # so far; its head comes last
    assert asked(jars, cache) == ""


def test_one_that_never_came_is_written_by_another(jars: Path, cache: Path) -> None:
    assert asked(jars, cache) == "write"
    (claimed,) = archives(cache)
    long_ago = time.time() - 3600
    os.utime(claimed, (long_ago, long_ago))
    assert asked(jars, cache) == "write"
    assert asked(jars, cache) == ""


def test_it_is_for_one_java_and_for_the_jars_as_they_are(jars: Path, cache: Path) -> None:
    java = the_java()
    assert asked(jars, cache) == "write"
    assert asked(jars, cache) == ""
    other = Java(home=java.home.parent, version=java.version, source=java.source, wrapped=False)
    assert asked(jars, cache, java=other) == "write"
    (jar,) = jars.glob("*.jar")
    os.utime(jar, (0, 0))
    assert asked(jars, cache) == "write"


def test_no_more_than_three_are_kept_and_those_used_last(jars: Path, cache: Path) -> None:
    cache.mkdir()
    (cache / "not an archive").touch()
    for age in range(5):
        old = cache / f"classes-{age}-5.jsa"
        old.write_bytes(b"whole")
        os.utime(old, (1000 - age, 1000 - age))
    unused = cache / "classes-of jars that are gone.new"  # whole, but nobody came to use it
    unused.write_bytes(b"whole")
    os.utime(unused, (10, 10))
    (cache / "classes-under way.new").touch()
    assert asked(jars, cache) == "write"
    kept = {"classes-0-5.jsa", "classes-1-5.jsa", "classes-under way.new", "not an archive"}
    assert kept < {file.name for file in archives(cache)}
    assert len(archives(cache)) == 5


@pytest.mark.parametrize(
    "named",
    [
        "-XX:SharedArchiveFile=mine.jsa",
        "-XX:ArchiveClassesAtExit=mine.jsa",
        "-XX:DumpLoadedClassList=mine.list",
        "-Xshare:off",
    ],
)
def test_who_says_what_to_share_is_heard(jars: Path, cache: Path, named: str) -> None:
    assert asked(jars, cache, f"-Xmx1g {named}") == ""


def test_it_can_be_switched_off(jars: Path, cache: Path) -> None:
    off = {"ABEYANT_CLASS_ARCHIVE": "off"}
    assert archive_options(the_java(), jars, "", write=True, environ=off, cache=cache) == []


def test_none_is_written_where_memory_is_scarce(jars: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_memory", lambda: 2 << 30)
    assert asked(jars, cache) == ""
    assert archives(cache) == []


def test_a_cache_that_cannot_be_written_to_is_no_error(jars: Path, tmp_path: Path) -> None:
    no_folder = tmp_path / "a file"
    no_folder.touch()
    assert asked(jars, no_folder / "cache") == ""
