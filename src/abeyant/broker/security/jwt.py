"""JSON Web Tokens of clients (RFC 7519): unsecured ones, and ones that are signed with a known key.

Kafka: `OAuthBearerUnsecuredValidatorCallbackHandler`, `BrokerJwtValidator`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from abeyant.broker.security.jwk import Key, decode, read_keys
from abeyant.errors import AbeyantError

__all__ = ["InvalidTokenError", "Token", "Validator", "validator"]

_HEADER_OF_KEYS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_ISSUER: Final = "sasl.oauthbearer.expected.issuer"

Values = Callable[[str], Any]
"""Returns the value of a setting for one listener."""


class InvalidTokenError(Exception):
    """A token that is not valid; the message says why, for the broker's log."""


class Token(NamedTuple):
    """What a valid token claims."""

    principal: str
    ends_ms: int
    """Milliseconds since 1970."""


Validator = Callable[[str, int], Token]
"""Returns what a token claims, at a time in milliseconds since 1970. Raises InvalidTokenError."""


def validator(values: Values) -> Validator:
    """Return the validator that the settings ask for: of unsecured tokens, unless they name a file of keys.

    Raises AbeyantError for a file that cannot be read.
    """
    url = values(_HEADER_OF_KEYS)
    if url is not None:
        return _Signed(_keys(url), values)
    for name in (_AUDIENCE, _ISSUER):
        if values(name):
            raise AbeyantError(f"{name} has no effect without {_HEADER_OF_KEYS}: anybody can make unsecured tokens")
    return _Unsecured()


def _keys(url: str) -> dict[str | None, Key]:
    try:
        parts = urlsplit(url)
        if parts.scheme == "file":
            return read_keys(Path(unquote(parts.path)).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AbeyantError(f"{_HEADER_OF_KEYS}: cannot use {url}: {error}; it has to be a JSON Web Key Set") from None
    raise AbeyantError(f"{_HEADER_OF_KEYS}: {url} is not read here; save it, and give file:///path/of/jwks.json")


class _Unsecured:
    """Tokens with {"alg": "none"}: anybody can make them."""

    def __call__(self, text: str, now_ms: int) -> Token:
        header, claims, _, signature = _parts(text)
        if header.get("alg") != "none" or signature:
            raise InvalidTokenError("an unsecured token has alg none and an empty signature")
        principal = _name(claims, "sub")
        ends, issued = _time(claims, "exp"), _time(claims, "iat", required=False)
        if ends <= now_ms:
            raise InvalidTokenError("it has expired")
        if issued is not None and (issued > now_ms or ends <= issued):
            raise InvalidTokenError("it was issued in the future, or after its expiry")
        return Token(principal, ends)


class _Signed:
    """Tokens that are signed with one of some keys."""

    def __init__(self, keys: dict[str | None, Key], values: Values) -> None:
        self._keys = keys
        self._skew_ms: int = 1000 * values("sasl.oauthbearer.clock.skew.seconds")
        self._audience: tuple[str, ...] = values(_AUDIENCE) or ()
        self._issuer: str | None = values(_ISSUER)
        self._subject: str = values("sasl.oauthbearer.sub.claim.name")

    def __call__(self, text: str, now_ms: int) -> Token:
        header, claims, signed, signature = _parts(text)
        if "crit" in header:  # RFC 7515: refuse what is critical and not understood
            raise InvalidTokenError(f"its header needs {header['crit']!r}, which is not known here")
        key = self._key(header.get("kid"))
        if header.get("alg") != key.algorithm or not key.verify(signed, signature):
            raise InvalidTokenError("its signature is not that of the key")
        ends = _time(claims, "exp")
        _time(claims, "iat")
        begins = _time(claims, "nbf", required=False)
        if ends <= now_ms - self._skew_ms or (begins is not None and begins > now_ms + self._skew_ms):
            raise InvalidTokenError("it has expired, or is not valid yet")
        audience = claims.get("aud")
        given = audience if isinstance(audience, list) else [audience]
        if self._audience and not any(one in self._audience for one in given):
            raise InvalidTokenError(f"its audience is {audience!r}")
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise InvalidTokenError(f"its issuer is {claims.get('iss')!r}")
        return Token(_name(claims, self._subject), ends)

    def _key(self, number: object) -> Key:
        """Return the key with this id, or the only one. Raises InvalidTokenError."""
        found = self._keys.get(number) if number is None or isinstance(number, str) else None
        if found is None and len(self._keys) == 1:
            [found] = self._keys.values()
        if found is None:
            raise InvalidTokenError(f"there is no key {number!r}")
        return found


def _parts(text: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Return a token's header, claims, signed bytes and signature. Raises InvalidTokenError."""
    try:
        header, claims, signature = text.split(".")
        return _json(header), _json(claims), f"{header}.{claims}".encode(), decode(signature)
    except (ValueError, RecursionError):
        raise InvalidTokenError("it is no JSON Web Token") from None


def _json(text: str) -> dict[str, Any]:
    found = json.loads(decode(text))
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _name(claims: dict[str, Any], claim: str) -> str:
    found = claims.get(claim)
    if not isinstance(found, str) or not found.strip():
        raise InvalidTokenError(f"its claim {claim} is {found!r}, not a name")
    return found


def _time(claims: dict[str, Any], claim: str, *, required: bool = True) -> Any:
    """Return a claim's time in milliseconds, None if it is missing and may be. Raises InvalidTokenError."""
    found = claims.get(claim)
    if found is None and not required:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not abs(found) < 1 << 50:
        raise InvalidTokenError(f"its claim {claim} is {found!r}, not a time in seconds")
    return int(found * 1000)
