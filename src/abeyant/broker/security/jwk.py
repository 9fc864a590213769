"""JSON Web Keys (RFC 7517), which verify the signatures of tokens: RS256, ES256 and HS256."""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from abeyant.lazy import needs

__all__ = ["Key", "decode", "read_keys"]

_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_SHORTEST_SECRET: Final = 32  # bytes, as RFC 7518 has it (section 3.2)
_SHORTEST_RSA: Final = 2048  # bits (section 3.3)

Verify = Callable[[bytes, bytes], bool]
"""A function that returns whether its second argument is a valid signature of the first."""


class Key(NamedTuple):
    """A key: the algorithm of its signatures, and the function that verifies a signature."""

    algorithm: str
    verify: Verify


def read_keys(text: str) -> dict[str | None, Key]:
    """Return the signature keys of a JSON Web Key Set by key id; the id is None for a key without an id.

    Raises ValueError for an invalid set, AbeyantError if a key needs `cryptography`, which is not installed.
    """
    keys: dict[str | None, Key] = {}
    try:
        for key in json.loads(text)["keys"]:
            if key.get("use", "sig") != "sig":
                continue  # issuers list their keys for encryption, too
            number = key.get("kid")
            if number in keys:
                raise ValueError(f"several keys have the id {number!r}: give each its own kid")
            keys[number] = _key(key)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a JSON member is missing or has the wrong type: {error}") from None
    if not keys:
        raise ValueError("the key set has no key for signatures")
    return keys


def _key(key: Mapping[str, Any]) -> Key:
    kind = key["kty"]
    if kind not in _KINDS:
        raise ValueError(f"the key type {kind!r} is not among {', '.join(_KINDS)}")
    algorithm, verifier = _KINDS[kind]
    if key.get("alg", algorithm) != algorithm:
        raise ValueError(f"the algorithm {key['alg']!r} of an {kind} key is not {algorithm}")
    return Key(algorithm, verifier(key))


def decode(text: str) -> bytes:
    """Return the bytes of a base64url text, padded or not. Raises ValueError."""
    if not _BASE64.fullmatch(text):
        raise ValueError("a value in the key or token is not base64url")
    text = text.rstrip("=")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _number(text: str) -> int:
    return int.from_bytes(decode(text))


def _secret(key: Mapping[str, Any]) -> Verify:
    secret = decode(key["k"])
    if len(secret) < _SHORTEST_SECRET:
        raise ValueError(f"the secret of an oct key has {len(secret)} bytes; at least {_SHORTEST_SECRET} are needed")
    return lambda signed, signature: hmac.compare_digest(hmac.digest(secret, signed, "sha256"), signature)


def _rsa(key: Mapping[str, Any]) -> Verify:
    _require_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    modulus = _number(key["n"])
    if modulus.bit_length() < _SHORTEST_RSA:
        raise ValueError(f"an RSA key has {modulus.bit_length()} bits; at least {_SHORTEST_RSA} are needed")
    public = rsa.RSAPublicNumbers(_number(key["e"]), modulus).public_key()

    def verify(signed: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, signed, padding.PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    return verify


def _curve(key: Mapping[str, Any]) -> Verify:
    _require_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    if key["crv"] != "P-256":
        raise ValueError(f"the curve {key['crv']!r} is not P-256")
    public = ec.EllipticCurvePublicNumbers(_number(key["x"]), _number(key["y"]), ec.SECP256R1()).public_key()

    def verify(signed: bytes, signature: bytes) -> bool:
        if len(signature) != 64:  # two numbers of 32 bytes
            return False
        der = utils.encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
        try:
            public.verify(der, signed, ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    return verify


_KINDS: Final[dict[str, tuple[str, Callable[[Mapping[str, Any]], Verify]]]] = {
    "RSA": ("RS256", _rsa), "EC": ("ES256", _curve), "oct": ("HS256", _secret),
}  # fmt: skip


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError as error:
        raise needs("a signed token", {"broker-security": [error.name or "cryptography"]}) from error
