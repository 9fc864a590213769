"""The fixture `kafka`, its marker, and `--kafka=genuine` where there is no genuine Kafka to be had."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ALONE = ("-p", "no:cacheprovider")
PLUGINS = ("pytest_abeyant", "pytest_abeyant_kafka")


def run(folder: Path, code: str, *options: str, path: str | None = None) -> str:
    (folder / "test_it.py").write_text(code)
    plugins = [part for name in PLUGINS for part in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", "-rs", *ALONE, *plugins, *options, str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    if path is not None:
        environment["PATH"] = path
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder, timeout=120)
    return ran.stdout + ran.stderr


def test_a_test_gets_the_cluster_that_its_marker_describes(tmp_path: Path) -> None:
    code = """
import pytest

def test_plain(kafka):
    assert len(kafka.brokers) == 1

@pytest.mark.kafka(brokers=3, clock="held", min_insync_replicas=2, **{"replica.lag.time.max.ms": 5000})
def test_marked(kafka):
    assert len(kafka.brokers) == 3
    assert kafka.clock.held
    assert kafka.settings["min.insync.replicas"] == 2
    assert kafka.settings["replica.lag.time.max.ms"] == 5000
    assert kafka.topics() == []
"""
    assert "2 passed" in run(tmp_path, code, "-W", "error")


def test_markers_of_a_module_and_of_a_test_add_up(tmp_path: Path) -> None:
    code = """
import pytest

pytestmark = pytest.mark.kafka(brokers=2, min_insync_replicas=2)

@pytest.mark.kafka(clock="held", **{"min.insync.replicas": 1})
def test_both(kafka):
    assert len(kafka.brokers) == 2
    assert kafka.clock.held
    assert kafka.settings["min.insync.replicas"] == 1
"""
    assert "1 passed" in run(tmp_path, code, "-W", "error")


MISTAKES = {
    "min_insync_replica=2": "did you mean min.insync.replicas",
    "broker=3": "has no option broker; did you mean brokers?",
    "3": "takes only named options",
    "settings={}": "has no settings=: write them beside the others, min_insync_replicas=2",
    'data="here"': "has no data=: create your own Cluster for it",
    'clock="stopped"': 'clock must be "real" or "held"',
}


def test_a_mistake_in_the_marker_fails_the_test_with_one_line(tmp_path: Path) -> None:
    tests = [
        f"@pytest.mark.kafka({marker})\ndef test_{number}(kafka): pass\n" for number, marker in enumerate(MISTAKES)
    ]
    found = run(tmp_path, "\n".join(["import pytest\n", *tests]))
    assert f"{len(MISTAKES)} errors" in found
    told = re.split(
        r"^_+ ERROR at setup of test_\d _+$", found.partition("= short test summary")[0], flags=re.MULTILINE
    )
    for one, said in zip(told[1:], MISTAKES.values(), strict=True):
        assert one.count(said) == 1, one
    assert "Traceback" not in found


def test_genuine_kafka_skips_what_only_ours_can_do_and_fails_where_there_is_none(tmp_path: Path) -> None:
    code = """
import pytest

@pytest.mark.kafka(clock="held")
def test_held(kafka): pass

@pytest.mark.kafka(min_insync_replicas=2)
def test_settings(kafka): pass

def test_plain(kafka): pass
"""
    found = run(tmp_path, code, "--kafka=genuine", path="/nonexistent")
    assert "2 skipped, 1 error" in found
    assert 'only abeyant.broker has clock="held"' in found
    assert "Kafka needs Java 17 or newer and Maven" in found


def test_a_conftest_may_have_an_option_kafka_of_its_own(tmp_path: Path) -> None:
    """Whoever tests with Kafka has one sooner than others; and the plugin is in every run, wanted or not."""
    conftest = 'def pytest_addoption(parser): parser.addoption("--kafka", action="store_true")\n'
    (tmp_path / "conftest.py").write_text(conftest)
    code = "def test_it(request, kafka): assert request.config.getoption('--kafka')\n"
    assert "1 passed" in run(tmp_path, code, "--kafka")
    found = run(tmp_path, code, "--kafka", "--abeyant-kafka=genuine", path="/nonexistent")
    assert "Kafka needs Java 17 or newer and Maven" in found
    (tmp_path / "conftest.py").write_text(conftest.replace('action="store_true"', 'default="none"'))
    assert "1 passed" in run(tmp_path, code, "--kafka=servers")


def test_the_plugin_imports_nothing_of_abeyant() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import pytest_abeyant_kafka; print(set(sys.modules) - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded == "{'pytest_abeyant_kafka'}\n"
