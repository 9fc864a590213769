"""TLS with the user's certificate, or with a certificate for this machine that a generated authority has signed."""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from abeyant.errors import AbeyantError
from abeyant.installation import install_command

__all__ = ["Certificates"]

Values = Callable[[str], Any]
"""A function that returns the value of a setting for one listener."""

_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


_ATTRIBUTES: Final = {
    "commonName": "CN", "countryName": "C", "domainComponent": "DC", "localityName": "L", "organizationName": "O",
    "organizationalUnitName": "OU", "stateOrProvinceName": "ST", "streetAddress": "STREET", "userId": "UID",
}  # fmt: skip
_ESCAPED: Final = re.compile(r'([,+"\\<>;]|^[# ]| $)')


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """Return a certificate's subject in the form of Kafka's principals (RFC 2253): CN=till,OU=shop,O=Example."""
    parts = [
        "+".join(
            f"{_ATTRIBUTES.get(name, name)}={_ESCAPED.sub(lambda found: chr(92) + found[0], value)}"
            for name, value in one
        )
        for one in certificate.get("subject", ())
    ]
    return ",".join(reversed(parts))


class Certificates:
    """The brokers' certificates, and a file for clients with the certificate of the generated authority."""

    def __init__(self, host: str) -> None:
        """Prepare for brokers at `host`, a name in the certificate that is generated if the settings name none."""
        self._host = host
        self._authority: Any = None
        self.authority: Path | None = None
        """The generated authority's certificate, a PEM file; None if the user's certificate is used."""
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def context(self, values: Values) -> ssl.SSLContext:
        """Return a context for the brokers' side of TLS.

        Raises AbeyantError for an unusable file, for contradicting settings, and if `trustme`, which generates
        certificates, is needed and not installed.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for name in ("ssl.keystore.type", "ssl.truststore.type"):
            if values(name) not in ("PEM", "JKS"):  # JKS is Kafka's default, so it was not set
                raise AbeyantError(f"{name}: {values(name)!r} is not supported: convert the store to PEM")
        versions = values("ssl.enabled.protocols")
        if not versions or not set(versions) <= _VERSIONS.keys():
            raise AbeyantError(f"ssl.enabled.protocols: {','.join(versions)!r} is not among {', '.join(_VERSIONS)}")
        context.minimum_version = min(_VERSIONS[one] for one in versions)
        context.maximum_version = max(_VERSIONS[one] for one in versions)
        self._load_trust(context, values)
        self._load_key(context, values)  # last, as it may create files
        return context

    def _load_key(self, context: ssl.SSLContext, values: Values) -> None:
        keystore, key = values("ssl.keystore.location"), values("ssl.keystore.key")
        chain = values("ssl.keystore.certificate.chain")
        password = values("ssl.key.password")
        if keystore is None and key is None and chain is None:
            self._make(context)
            return
        if keystore is None and (key is None or chain is None):
            raise AbeyantError("ssl.keystore.key and ssl.keystore.certificate.chain need each other: give both, as PEM")
        try:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # OpenSSL reads keys from files only
                if keystore is None:
                    file.write(f"{key}\n{chain}\n")
                    file.flush()
                # Without the callback OpenSSL would prompt at the terminal.
                context.load_cert_chain(keystore or file.name, password=lambda: password or "")
        except (OSError, ssl.SSLError) as error:
            name = "ssl.keystore.key" if keystore is None else "ssl.keystore.location"
            raise AbeyantError(
                f"{name}: cannot use {keystore or 'the key'}: {error}; give a private key with its certificates as "
                "PEM, and in ssl.key.password the key's password, if the key has one"
            ) from None

    def _load_trust(self, context: ssl.SSLContext, values: Values) -> None:
        """Verify clients' certificates against the truststore, unless `ssl.client.auth` is "none"."""
        wanted = values("ssl.client.auth")
        file, text = values("ssl.truststore.location"), values("ssl.truststore.certificates")
        if wanted == "none":
            return
        if file is None and text is None:
            raise AbeyantError(
                f"ssl.client.auth={wanted} needs ssl.truststore.location, a PEM file of the authorities that sign "
                "clients' certificates"
            )
        try:
            context.load_verify_locations(cafile=file, cadata=text)
        except (OSError, ssl.SSLError) as error:
            where = "ssl.truststore.certificates" if file is None else f"ssl.truststore.location: cannot use {file}"
            raise AbeyantError(f"{where}: {error}; give PEM certificates") from None
        context.verify_mode = _CLIENT_AUTH[wanted]

    def close(self) -> None:
        """Delete the file with the authority's certificate."""
        if self._folder is not None:
            self._folder.cleanup()

    def _make(self, context: ssl.SSLContext) -> None:
        if self._authority is None:
            try:
                import trustme
            except ModuleNotFoundError as error:
                raise AbeyantError(
                    f"{error.name} is not installed; TLS without ssl.keystore.location needs it: "
                    f"{install_command('broker-security')}"
                ) from error
            self._authority = trustme.CA()
            self._folder = tempfile.TemporaryDirectory(prefix="abeyant-tls-")
            self.authority = Path(self._folder.name, "ca.pem")
            self._authority.cert_pem.write_to_path(self.authority)
        self._authority.issue_cert(*dict.fromkeys((*_NAMES, self._host))).configure_cert(context)
