"""TLS: the user's certificate, or one that is made for this machine together with the authority that signed it."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Final

from abeyant.errors import AbeyantError
from abeyant.installation import install_command

__all__ = ["Certificates"]

_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """A context for the brokers' side of TLS, and the file by which clients know whom to trust."""

    def __init__(self, host: str, keystore: str | None, password: str | None) -> None:
        """`keystore`: a PEM file with a private key and its chain of certificates, or None to make both for `host`.

        `password`: of that key, where it is encrypted.
        Raises AbeyantError for a file that cannot be used, and where `trustme`, which makes them, is not installed.
        """
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority: Path | None = None
        """PEM, of the authority that signed what was made here; None for a certificate of the user's."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if keystore is None:
            self._make(host)
            return
        try:
            self.context.load_cert_chain(keystore, password=lambda: password or "")  # or OpenSSL asks at the terminal
        except (OSError, ssl.SSLError) as error:
            raise AbeyantError(
                f"ssl.keystore.location: cannot use {keystore}: {error}; it has to be a PEM file with a private key "
                "and its certificates, and ssl.key.password that key's password if it has one"
            ) from None

    def close(self) -> None:
        """Remove the authority's file."""
        if self._folder is not None:
            self._folder.cleanup()

    def _make(self, host: str) -> None:
        try:
            import trustme
        except ModuleNotFoundError as error:
            raise AbeyantError(
                f"{error.name} is not installed; TLS without ssl.keystore.location needs it: "
                f"{install_command('broker-security')}"
            ) from error
        authority = trustme.CA()
        authority.issue_cert(*dict.fromkeys((*_NAMES, host))).configure_cert(self.context)
        self._folder = tempfile.TemporaryDirectory(prefix="abeyant-tls-")
        self.authority = Path(self._folder.name, "ca.pem")
        authority.cert_pem.write_to_path(self.authority)
