"""A real S3 server on loopback, versitygw over a folder, and the jars by which Spark speaks to it.

The server is built by Go's own tool, the jars come by Maven: each once, into the user's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from object_store.buckets import MissingError

SERVER = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
POM = Path(__file__).with_name("pom.xml")
BUCKET = "bucket"
KEY, SECRET = "abeyant", "not-a-secret"
# Spark brings these, newer.
SPARKS_OWN = "io.netty,org.slf4j,org.apache.httpcomponents,commons-codec,commons-logging"


@dataclass(frozen=True)
class Gateway:
    """A server that runs, with one bucket."""

    port: int
    folder: Path
    """What is in the bucket, as the server keeps it: a file an object. Looked at, never written."""
    jars: tuple[Path, ...]
    renames: bool = False

    @property
    def uri(self) -> str:
        return f"s3a://{BUCKET}"

    @property
    def settings(self) -> dict[str, str]:
        """A Spark session's."""
        s3a = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": KEY,
            "secret.key": SECRET,
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()} | {
            "spark.jars": ",".join(map(str, self.jars))
        }

    def read(self, name: str) -> bytes | None:
        files = self._arrow()
        if files.get_file_info(f"{BUCKET}/{name}").type == fs.FileType.NotFound:
            return None
        with files.open_input_file(f"{BUCKET}/{name}") as stream:
            return bytes(stream.read())

    def write(self, name: str, data: bytes) -> None:
        with self._arrow().open_output_stream(f"{BUCKET}/{name}", compression=None) as stream:
            stream.write(data)

    def files(self, folder: str) -> dict[str, int]:
        home, found = self.folder / folder, {}
        for place, _, names in os.walk(home):  # passes over a folder that is removed meanwhile
            for name in names:
                file = Path(place, name)
                with suppress(FileNotFoundError):
                    found[file.relative_to(home).as_posix()] = file.stat().st_size
        return found

    def _arrow(self) -> fs.S3FileSystem:
        """A reader that is not Spark."""
        return fs.S3FileSystem(
            access_key=KEY, secret_key=SECRET, region="us-east-1", scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
        )  # fmt: skip


def cache(name: str, told: bytes) -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "abeyant"
    return home / f"{name}-{hashlib.sha256(told).hexdigest()[:12]}"


def ran(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | dict(environment or {}), timeout=900
    )
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise MissingError(f"{command[0]} failed: {said[0] if said else 'it said nothing'}")


def server() -> Path:
    """The server's program, built if need be."""
    folder = cache("s3-server", SERVER.encode())
    if not (folder / "versitygw").exists():
        if shutil.which("go") is None:
            raise MissingError("there is no go on the PATH")
        ran(["go", "install", SERVER], {"GOBIN": str(folder)})
    return folder / "versitygw"


def jars(pom: Path = POM, exclude: str = SPARKS_OWN) -> tuple[Path, ...]:
    """What a pom names, fetched if need be."""
    folder = cache(f"jars-{pom.stem}", pom.read_bytes() + exclude.encode())
    if not (folder / ".complete").exists():
        if shutil.which("mvn") is None:
            raise MissingError("there is no mvn on the PATH")
        folder.mkdir(parents=True, exist_ok=True)
        beside = str(shutil.copy(pom, folder / "pom.xml"))  # Maven looks for more around the file that it is given
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        ran(["mvn", "-q", "-B", "-f", beside, *goal, *([f"-DexcludeGroupIds={exclude}"] if exclude else [])])
        (folder / ".complete").touch()
    return tuple(sorted(folder.glob("*.jar")))


@contextmanager
def running(folder: Path) -> Iterator[Gateway]:
    """Run a server over a folder until the block ends. Raises `MissingError` where there can be none."""
    program, needed = server(), jars()
    (folder / BUCKET).mkdir(parents=True)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(program),
        "--port",
        f"127.0.0.1:{port}",
        "--access",
        KEY,
        "--secret",
        SECRET,
        "--quiet",
        "posix",
        str(folder),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(process, port, "the S3 server")
            yield Gateway(port, folder / BUCKET, needed)
        finally:
            process.terminate()


def wait_for(process: subprocess.Popen[bytes], port: int, what: str) -> None:
    """Return once a server that was started answers at a port of this machine."""
    for _ in range(600):
        if process.poll() is not None:
            raise MissingError(f"{what} ended with status {process.returncode}")
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise MissingError(f"{what} does not answer")
