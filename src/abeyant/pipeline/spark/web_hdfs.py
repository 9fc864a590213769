"""Read HDFS files over HTTP, in plain Python: for workers, which have no JVM.

The protocol is Hadoop's WebHDFS, enabled by default in every name node. The name node redirects to a data node, which
serves the requested bytes.
"""

from __future__ import annotations

import http.client
import io
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from pyarrow import fs

__all__ = ["WebHdfs"]

_SECONDS: Final = 60.0
_TRIES: Final = 3
# As Hadoop's own client: through no proxy that the environment names.
_opener: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class WebHdfs:
    """The part of Arrow's file system interface that readers use. Paths are absolute and unquoted; raises `OSError`."""

    def __init__(self, addresses: Sequence[str], user: str) -> None:
        self._addresses: Final = addresses
        self._user: Final = user

    def get_file_info(self, what: str | fs.FileSelector) -> Any:
        """Return the `FileInfo` of a path, or a list with the `FileInfo` of each path below a selector's folder."""
        from pyarrow import fs

        if isinstance(what, str):
            try:
                status = self._get_json(what, "GETFILESTATUS")["FileStatus"]
            except FileNotFoundError:
                return fs.FileInfo(what, type=fs.FileType.NotFound)
            return _info(what, status)
        infos, folders = [], [what.base_dir]
        while folders:
            folder = folders.pop()
            for entry in self._get_json(folder, "LISTSTATUS")["FileStatuses"]["FileStatus"]:
                info = _info(f"{folder.rstrip('/')}/{entry['pathSuffix']}", entry)
                infos.append(info)
                if what.recursive and info.type == fs.FileType.Directory:
                    folders.append(info.path)
        return infos

    def open_input_file(self, path: str) -> io.RawIOBase:
        """Open a file for reading, with random access."""
        return _File(self, path, int(self._get_json(path, "GETFILESTATUS")["FileStatus"]["length"]))

    def request(self, path: str, what: str, **more: object) -> Any:
        """Send the operation `what` to one name node after the other; return the first response, a stream."""
        query = urllib.parse.urlencode({"op": what, "user.name": self._user, **more})
        last_error: OSError = OSError("no name node is configured")
        for address in self._addresses:
            try:
                return _opener.open(f"{address}/webhdfs/v1{urllib.parse.quote(path)}?{query}", timeout=_SECONDS)
            except urllib.error.HTTPError as error:
                last_error = _explained(error, path)
                if isinstance(last_error, FileNotFoundError):
                    raise last_error from error
            except (urllib.error.URLError, http.client.HTTPException) as error:
                last_error = OSError(f"{address} does not answer: {getattr(error, 'reason', error)}")
        raise last_error

    def _get_json(self, path: str, operation: str) -> Any:
        with self.request(path, operation) as response:
            return json.load(response)


def _info(path: str, status: dict[str, Any]) -> fs.FileInfo:
    from pyarrow import fs

    kind = fs.FileType.Directory if status["type"] == "DIRECTORY" else fs.FileType.File
    return fs.FileInfo(path, type=kind, size=status["length"] if kind == fs.FileType.File else None)


def _explained(error: urllib.error.HTTPError, path: str) -> OSError:
    """Return a name node's error without its Java trace: often the node is not active, or the file does not exist."""
    try:
        exception = json.load(error)["RemoteException"]
    except (ValueError, LookupError, TypeError):
        return OSError(f"{error.url.partition('?')[0]}: {error.code} {error.reason}")
    message = str(exception.get("message", "")).strip().partition("\n")[0]
    if exception.get("exception") == "FileNotFoundException":
        return FileNotFoundError(message or path)
    return OSError(f"{exception.get('exception')}: {message}")


class _File(io.RawIOBase):
    """A file of HDFS, open for reading. Reads continue in one response until a seek to another offset."""

    def __init__(self, files: WebHdfs, path: str, size: int) -> None:
        self._files: Final = files
        self._path: Final = path
        self._size: Final = size
        self._at = 0
        self._answer: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if at != self._at:
            self._drop()
        self._at = at
        return at

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self._at >= self._size:
            return 0
        view = memoryview(buffer).cast("B")[: self._size - self._at]
        for remaining in reversed(range(_TRIES)):
            try:
                if self._answer is None:
                    self._answer = self._files.request(self._path, "OPEN", offset=self._at)
                count = int(self._answer.readinto(view))
            except OSError:
                if not remaining:
                    raise
                count = 0
            if count:
                self._at += count
                return count
            # The data node has ended: the name node may redirect to another.
            self._drop()
        raise OSError(f"{self._path} ends after {self._at} bytes of {self._size}")

    def close(self) -> None:
        self._drop()
        super().close()

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None
