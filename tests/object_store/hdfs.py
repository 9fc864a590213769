"""A real HDFS on loopback: a name node and a data node, each a process, from Hadoop's own jars.

Maven fetches the jars once, into the user's cache. Looked at over HTTP (WebHDFS), without Spark and without a JVM.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from abeyant.pipeline.spark.java import find_java
from object_store.buckets import MissingError
from object_store.gateway import jars

POM = Path(__file__).with_name("hdfs.pom.xml")
FOLDER = "lake"
_START_SECONDS = 90.0
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@dataclass(frozen=True)
class Hdfs:
    """One that runs."""

    port: int
    http: int
    """The name node's port for WebHDFS."""
    renames: bool = True

    @property
    def uri(self) -> str:
        return f"hdfs://127.0.0.1:{self.port}/{FOLDER}"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "spark.hadoop.dfs.namenode.http-address": f"127.0.0.1:{self.http}",
            "spark.hadoop.dfs.replication": "1",
        }

    def read(self, name: str) -> bytes | None:
        try:
            with self._ask(name, "OPEN") as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def write(self, name: str, data: bytes) -> None:
        # In two steps, as the protocol wants it: where to, and then what.
        with self._ask(name, "CREATE", "PUT", overwrite="true", noredirect="true") as answer:
            place = json.loads(answer.read())["Location"]
        with _opener.open(urllib.request.Request(place, data, method="PUT"), timeout=60):
            pass

    def files(self, folder: str) -> dict[str, int]:
        found, look_at = {}, [""]
        while look_at:
            inside = look_at.pop()
            for entry in self._listed(f"{folder}/{inside}".rstrip("/")):
                name = f"{inside}/{entry['pathSuffix']}".lstrip("/")
                if entry["type"] == "DIRECTORY":
                    look_at.append(name)
                else:
                    found[name] = int(entry["length"])
        return found

    def _listed(self, folder: str) -> list[dict[str, Any]]:
        try:
            with self._ask(folder, "LISTSTATUS") as answer:
                entries: list[dict[str, Any]] = json.loads(answer.read())["FileStatuses"]["FileStatus"]
                return entries
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise

    def _ask(self, name: str, what: str, method: str = "GET", **more: str) -> Any:
        path = urllib.parse.quote(f"/{FOLDER}/{name}".rstrip("/"))
        query = urllib.parse.urlencode({"op": what, "user.name": _user(), **more})
        url = f"http://127.0.0.1:{self.http}/webhdfs/v1{path}?{query}"
        return _opener.open(urllib.request.Request(url, method=method), timeout=60)


# Not through a proxy that the environment may name.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _user() -> str:
    import getpass

    return getpass.getuser()


@contextmanager
def running(folder: Path) -> Iterator[Hdfs]:
    """Run one over a folder until the block ends. Raises `MissingError` where there can be none."""
    needed = jars(POM, exclude="")
    port, http = _free_ports(2)
    _configure(folder / "conf", {
        "fs.defaultFS": f"hdfs://127.0.0.1:{port}",
        "dfs.namenode.http-address": f"127.0.0.1:{http}",
        "dfs.namenode.name.dir": (folder / "names").as_uri(),
        "dfs.datanode.data.dir": (folder / "blocks").as_uri(),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.replication": "1",
        "dfs.namenode.edits.noeditlogchannelflush": "true",  # no machine fails here
    })  # fmt: skip
    path = os.pathsep.join(map(str, [folder / "conf", *needed]))
    java = [str(find_java().home / "bin" / "java"), *_BRIEF, "-cp", path]
    node = "org.apache.hadoop.hdfs.server"
    hdfs = Hdfs(port, http)
    with ExitStack() as stack:
        with (folder / "format.log").open("wb") as log:
            subprocess.run(
                [*java, f"{node}.namenode.NameNode", "-format", "-force"], stdout=log, stderr=log, check=True
            )
        nodes = [
            stack.enter_context(_process([*java, f"{node}.{name}"], folder / f"{name}.log"))
            for name in ("namenode.NameNode", "datanode.DataNode")
        ]
        _wait(hdfs, nodes, folder)
        yield hdfs


def _configure(folder: Path, settings: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    ]
    text = "\n".join(["<configuration>", *lines, "</configuration>", ""])
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(text)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_ones:
        sockets = [open_ones.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)  # nothing of it is kept


def _wait(hdfs: Hdfs, nodes: list[subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait until a file can be written: the data node is known then, and the name node out of its safe mode."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            hdfs.write("begun", b"begun")
            return
        except OSError as error:
            if time.monotonic() > end or any(node.poll() is not None for node in nodes):
                said = [(folder / f"{name}.log").read_text(errors="replace") for name in ("namenode.NameNode",)]
                raise MissingError(f"HDFS does not answer: {error}; {said[0][-500:]}") from error
        time.sleep(0.2)


def main() -> None:
    """Run one until Enter is pressed: to look at by hand."""
    import tempfile

    home = Path(tempfile.mkdtemp(prefix="abeyant-hdfs-"))
    with running(home) as hdfs:
        input(f"{hdfs.uri}, http://127.0.0.1:{hdfs.http}; Enter ends it ")
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
