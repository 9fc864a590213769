"""A real server of Azure's blobs on loopback, Azurite, and the jars by which Spark speaks to it.

npm installs the server, Maven fetches the jars: each once, into the user's cache. Azurite has the blob endpoint alone,
so this is an account without a hierarchical namespace. Looked at over HTTP, without Spark.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from abeyant.pipeline.spark.java import find_java
from object_store.buckets import MissingError
from object_store.gateway import SPARKS_OWN, cache, jars, ran, wait_for

SERVER = "azurite@3.37.0"
POM = Path(__file__).with_name("azure.pom.xml")
ACCOUNT, CONTAINER = "abeyant", "lake"
KEY = base64.b64encode(b"not-a-secret").decode()
PASSWORD = "changeit"
_VERSION = "2021-08-06"


@dataclass(frozen=True)
class Azure:
    """A server that runs, with one container."""

    port: int
    jars: tuple[Path, ...]
    certificate: Path | None = None
    """Of a server that speaks HTTPS; a trust store with it, `trust.p12`, is beside it."""
    renames: bool = False

    @property
    def scheme(self) -> str:
        return "abfs" if self.certificate is None else "abfss"

    @property
    def host(self) -> str:
        return f"{ACCOUNT}.dfs.core.windows.net"

    @property
    def uri(self) -> str:
        return f"{self.scheme}://{CONTAINER}@{self.host}"

    @property
    def settings(self) -> dict[str, str]:
        """A Spark session's."""
        azure = {
            f"account.key.{self.host}": KEY,
            "abfs.endpoint": f"127.0.0.1:{self.port}",
            "account.hns.enabled": "false",
            "fns.account.service.type": "BLOB",
        }
        java = {}
        if self.certificate is not None:
            store = self.certificate.with_name("trust.p12")
            trust = f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={PASSWORD}"
            java = {"spark.driver.defaultJavaOptions": trust}
        else:
            # Without HTTPS the driver's default, Apache's client, ends with "SSL socket factory may not be null".
            azure |= {"always.use.https": "false", "networking.library": "JDK_HTTP_URL_CONNECTION"}
        settings = {f"spark.hadoop.fs.azure.{name}": value for name, value in azure.items()}
        return settings | java | {"spark.jars": ",".join(map(str, self.jars))}

    def read(self, name: str) -> bytes | None:
        try:
            return self.ask("GET", f"/{name}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def write(self, name: str, data: bytes) -> None:
        self.ask("PUT", f"/{name}", data=data)

    def files(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        query = {"restype": "container", "comp": "list", "prefix": f"{folder}/", "include": "metadata"}
        while True:
            listed = ET.fromstring(self.ask("GET", "", query))
            for blob in listed.iter("Blob"):
                if blob.findtext("Metadata/hdi_isfolder", "").lower() != "true":
                    name, size = blob.findtext("Name", ""), blob.findtext("Properties/Content-Length", "0")
                    found[name.removeprefix(f"{folder}/")] = int(size)
            query["marker"] = listed.findtext("NextMarker") or ""
            if not query["marker"]:
                return found

    def ask(self, method: str, name: str, query: dict[str, str] | None = None, data: bytes = b"") -> bytes:
        """Send one request, signed as the service's "Shared Key" says."""
        query, path = query or {}, f"/{ACCOUNT}/{CONTAINER}{urllib.parse.quote(name)}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        if method == "PUT":
            headers |= {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
        length = str(len(data)) if data else ""
        signed = [method, "", "", length, "", headers.get("Content-Type", ""), *[""] * 6]
        signed += [f"{header}:{value}" for header, value in sorted(headers.items()) if header.startswith("x-ms-")]
        # The account twice: once for whose it is, once for it is in the path of an emulator.
        signed += [f"/{ACCOUNT}{path}", *(f"{key}:{value}" for key, value in sorted(query.items()))]
        proof = hmac.new(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(proof).decode()}"
        scheme = "http" if self.certificate is None else "https"
        url = f"{scheme}://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        asked = urllib.request.Request(url, data if method == "PUT" else None, headers, method=method)
        # Not through a proxy that the environment may name.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.certificate is not None:
            trusting = ssl.create_default_context(cafile=str(self.certificate))
            handlers.append(urllib.request.HTTPSHandler(context=trusting))
        with urllib.request.build_opener(*handlers).open(asked, timeout=60) as answer:
            return bytes(answer.read())


def server() -> Path:
    """The server's program, installed if need be."""
    folder = cache("azure-server", SERVER.encode())
    if not (folder / ".complete").exists():
        for program in "node", "npm":
            if shutil.which(program) is None:
                raise MissingError(f"there is no {program} on the PATH")
        folder.mkdir(parents=True, exist_ok=True)
        ran(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), SERVER])
        (folder / ".complete").touch()
    return folder / "node_modules" / ".bin" / "azurite-blob"


@contextmanager
def running(folder: Path) -> Iterator[Azure]:
    """Run a server over a folder until the block ends. Raises `MissingError` where there can be none."""
    with serving(folder) as port:
        azure = Azure(port, jars(POM, SPARKS_OWN))
        azure.ask("PUT", "", {"restype": "container"})
        yield azure


@contextmanager
def running_https(folder: Path) -> Iterator[Azure]:
    """Run one that speaks HTTPS, by a certificate made here and now."""
    keytool = str(find_java().home / "bin" / "keytool")
    if not Path(keytool).exists():
        raise MissingError(f"there is no {keytool}")
    folder.mkdir(parents=True)
    keys, certificate, trust = folder / "keys.p12", folder / "certificate.pem", folder / "trust.p12"
    common = ["-alias", "azure", "-storetype", "PKCS12", "-storepass", PASSWORD]
    made = ["-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1"]
    ran([keytool, *made, *common, "-keystore", str(keys)])
    ran([keytool, "-exportcert", "-rfc", *common, "-keystore", str(keys), "-file", str(certificate)])
    ran([keytool, "-importcert", "-noprompt", *common, "-keystore", str(trust), "-file", str(certificate)])
    with serving(folder / "blobs", "--cert", str(keys), "--pwd", PASSWORD) as port:
        azure = Azure(port, jars(POM, SPARKS_OWN), certificate)
        azure.ask("PUT", "", {"restype": "container"})
        yield azure


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[int]:
    """Run a server over a folder until the block ends; give its port."""
    program = server()
    folder.mkdir(parents=True)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [str(program), "--location", str(folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    # It sends no telemetry, and takes requests that are newer than itself.
    command += ["--disableTelemetry", "--skipApiVersionCheck", "--loose", "--silent", *more]
    environment = os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            wait_for(process, port, "the server of blobs")
            yield port
        finally:
            process.terminate()
