"""Tokens for OAUTHBEARER, the keys that sign them, and a client that authenticates step by step."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from abeyant.broker import Cluster
from abeyant.broker.security.jwt import Token, validator
from abeyant.broker.settings import Settings
from broker.wire import WireClient

NOW = 1_700_000_000  # seconds
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(data).decode().rstrip("=")


def unsecured(header: object = None, **claims: object) -> str:
    """A token without a signature; of alice, for an hour, unless the claims say otherwise."""
    given = {"sub": "alice", "exp": NOW + 3600} | claims
    return f"{part(header or {'alg': 'none'})}.{part({key: one for key, one in given.items() if one is not None})}."


def at(text: str, settings: Mapping[str, object] | None = None, seconds: float = NOW) -> Token:
    return validator(Settings(settings).__getitem__)(text, int(seconds * 1000))


class Keys:
    """A key of each kind, their file, and tokens that they sign."""

    def __init__(self, folder: Path) -> None:
        self._rsa = rsa.generate_private_key(65537, 2048)
        self._curve = ec.generate_private_key(ec.SECP256R1())
        self._secret = b"a secret of 32 bytes at the least"
        numbers, point = self._rsa.public_key().public_numbers(), self._curve.public_key().public_numbers()
        self.keys = [
            {"kty": "RSA", "kid": "rsa", "n": part(numbers.n.to_bytes(256)), "e": part(numbers.e.to_bytes(3))},
            {
                "kty": "EC", "kid": "curve", "crv": "P-256", "alg": "ES256",
                "x": part(point.x.to_bytes(32)), "y": part(point.y.to_bytes(32)),
            },
            {"kty": "oct", "kid": "secret", "k": part(self._secret)},
        ]  # fmt: skip
        self.path = folder / "jwks.json"
        self.path.write_text(json.dumps({"keys": self.keys}))
        self.settings = {"sasl.oauthbearer.jwks.endpoint.url": self.path.as_uri()}

    def signed(self, key: str, claims: Mapping[str, object] | None = None, algorithm: str | None = None) -> str:
        """A token that a key signs."""
        kinds = {"rsa": "RS256", "curve": "ES256", "secret": "HS256"}
        header = {"alg": algorithm or kinds[key], "kid": key}
        given: dict[str, object] = {"sub": "alice", "exp": NOW + 3600, "iat": NOW, **(claims or {})}
        text = f"{part(header)}.{part({name: one for name, one in given.items() if one is not None})}"
        return f"{text}.{part(getattr(self, f'sign_by_{key}')(text.encode()))}"

    def sign_by_rsa(self, data: bytes) -> bytes:
        return self._rsa.sign(data, padding.PKCS1v15(), SHA256())

    def sign_by_curve(self, data: bytes) -> bytes:
        first, second = utils.decode_dss_signature(self._curve.sign(data, ec.ECDSA(SHA256())))
        return first.to_bytes(32) + second.to_bytes(32)

    def sign_by_secret(self, data: bytes) -> bytes:
        return hmac.digest(self._secret, data, hashlib.sha256)


def valid(kafka: Cluster, seconds: float = 60, **claims: object) -> str:
    return unsecured(exp=kafka.clock.now_ms() / 1000 + seconds, **claims)


def first(token: str, acts_as: str = "") -> bytes:
    return f"n,{f'a={acts_as}' if acts_as else ''},\x01auth=Bearer {token}\x01\x01".encode()


_OPEN: list[WireClient] = []


def close_sessions() -> None:
    """Close the connections of all sessions."""
    while _OPEN:
        _OPEN.pop().socket.close()


class Session:
    """One connection, whose client authenticates when a test asks for it."""

    def __init__(self, kafka: Cluster, at: str | None = None) -> None:
        self.wire = WireClient(at or kafka.bootstrap)
        _OPEN.append(self.wire)

    def begin(self, mechanism: str = "OAUTHBEARER") -> str:
        error: str = self.wire.ask(HANDSHAKE, 1, mechanism=mechanism).error_code.name
        return error

    def send(self, token: bytes) -> tuple[str, str, float]:
        """The error, its message or the broker's token, and the session's seconds."""
        said = self.wire.ask(AUTHENTICATE, 2, auth_bytes=token)
        lifetime: timedelta = said.session_lifetime
        return said.error_code.name, said.error_message or said.auth_bytes.decode(), lifetime.total_seconds()

    def is_served(self) -> bool:
        try:
            self.wire.ask(METADATA, 12, topics=[])
        except ConnectionError:
            return False
        return True
