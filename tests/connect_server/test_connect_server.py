"""A real server of Spark Connect, in processes of its own, whose Python lacks the package: a session brings it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

import abeyant
from abeyant.engine import is_compiled
from abeyant.pipeline.spark.java import find_java
from pipeline.request_log.kafka_lines import fetch, produce
from waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "spark-connect.md"
SITE = sysconfig.get_path("purelib")
START_SECONDS = 120.0

CLIENT = Path(__file__).with_name("connect_client.py")


def bare_python(path: Path, packages: str) -> Path:
    """A command that is this Python with what is in the folder `packages` alone: no site, so nothing else installed."""
    # Before what Spark names: its own pyspark is in a zip file, which is compiled anew at every start.
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{packages}:$PYTHONPATH"\nexec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return path


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    python = str(bare_python(folder / "python", SITE))
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    environment.pop("PYTHONPATH", None)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "spark-internal"], env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            return listens(port)

        wait_until(answers, "the server does not listen", START_SECONDS)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def run(server: str, shown: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "logs" / "broker-1").mkdir(parents=True)
    lines = [produce(remote=5.0), fetch(remote=500.5), b""]
    (folder / "logs" / "broker-1" / "kafka-request.log").write_bytes(b"\n".join(lines))
    return subprocess.run(
        [sys.executable, str(CLIENT), shown.replace("sc://HOST:15002", server), str(folder)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def shown(sign: str) -> str:
    """The block of the page that has this in it."""
    [block] = [code for code in re.findall(r"```py(?:thon)?\n(.*?)```", PAGE.read_text(), re.DOTALL) if sign in code]
    return str(block)


WANTED = {
    "operations": [["FETCH_CONSUMER", "expired"], ["PRODUCE", "completed"]],
    "outcomes": [["o1", "completed"], ["o2", "expired"]],
}


def test_the_package_comes_with_the_session(server: str, tmp_path: Path) -> None:
    ran = run(server, shown("make_archive"), tmp_path)
    assert ran.returncode == 0, ran.stderr[:3000]
    # Spark gives the Python of foreachBatch, which is the server's own, nothing of what a session brought.
    told = {"stream": "resolved", "sink": "ModuleNotFoundError: No module named 'abeyant'"}
    assert json.loads(ran.stdout) == WANTED | {"compiled": False, **told}


def test_an_environment_comes_with_the_session(server: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        python = bare_python(tmp_path / "python", f"$(dirname $0)/../lib:{SITE}")
        archive.add(python, "bin/python")
        home = Path(abeyant.__file__).parent
        for file in home.rglob("*"):
            if file.suffix in (".py", ".so"):
                archive.add(file, f"lib/abeyant/{file.relative_to(home)}")
    made = shown("make_archive").partition("home =")[0] + shown("archive=True")
    ran = run(server, made, tmp_path)
    assert ran.returncode == 0, ran.stderr[:3000]
    told = json.loads(ran.stdout)
    assert 'Cannot run program "environment/bin/python"' in told.pop("stream")
    assert told.pop("sink") != "resolved"
    assert told == WANTED | {"compiled": is_compiled()}
