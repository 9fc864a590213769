"""Validate clients' JSON Web Tokens (RFC 7519): unsecured tokens, and tokens that are signed with a known key.

Kafka: `OAuthBearerUnsecuredValidatorCallbackHandler`, `BrokerJwtValidator`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from abeyant.broker.security.jwk import decode
from abeyant.broker.security.jwks import URL, Keys, keys_of
from abeyant.errors import AbeyantError

__all__ = ["InvalidTokenError", "Token", "Validator", "validator"]

_AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_ISSUER: Final = "sasl.oauthbearer.expected.issuer"

Values = Callable[[str], Any]
"""A function that returns the value of a setting for one listener."""


_PREFIX: Final = "unsecuredValidator"
_OF_UNSECURED: Final = tuple(
    _PREFIX + name for name in ("PrincipalClaimName", "ScopeClaimName", "RequiredScope", "AllowableClockSkewMs")
)
_OF_LOGIN: Final = "unsecuredLogin"  # options of a Kafka broker's own client, without effect here
_TRUST: Final = "ssl.truststore.location"
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


class InvalidTokenError(Exception):
    """A token that is not valid. The message has the reason, for the broker's log."""

    def __init__(self, message: str, missing_scope: tuple[str, ...] = ()) -> None:
        """Create the error. `missing_scope` has all required scopes if the only defect is that the token lacks one."""
        super().__init__(message)
        self.missing_scope = missing_scope


class Token(NamedTuple):
    """The claims of a valid token."""

    principal: str
    ends_ms: int
    """Expiry in milliseconds since 1970."""


Validator = Callable[[str, int], Token]
"""A function that checks a token at a time in milliseconds since 1970, and returns its claims.

Raises InvalidTokenError.
"""


def validator(values: Values, options: Mapping[str, str] = _NO_OPTIONS) -> Validator:
    """Return a validator of signed tokens if the settings have a URL of keys, else a validator of unsecured tokens.

    `options` are the login module's options. Raises AbeyantError for unreadable keys, and for options without effect.
    """
    url = values(URL)
    option_names = _OF_UNSECURED if url is None else (_TRUST,)
    for name in options:
        if name not in option_names and not name.startswith(_OF_LOGIN):
            raise AbeyantError(f"sasl.jaas.config: {name} has no effect; give only {', '.join(option_names)}")
    if url is not None:
        return _Signed(keys_of(url, values, options), values)
    for name in (_AUDIENCE, _ISSUER):
        if values(name):
            raise AbeyantError(f"{name} has no effect without {URL}: anybody can make unsecured tokens")
    return _Unsecured(options)


class _Unsecured:
    """A validator of tokens with {"alg": "none"}, which anybody can make."""

    def __init__(self, options: Mapping[str, str]) -> None:
        subject, scope, required, skew = (options.get(name, "").strip() for name in _OF_UNSECURED)
        self._subject, self._scope, self._required = subject or "sub", scope or "scope", tuple(required.split())
        if invalid := [value for value in self._required if not _SCOPE.fullmatch(value)]:
            raise AbeyantError(f"sasl.jaas.config: {_PREFIX}RequiredScope: {invalid[0]!r} is not a valid scope")
        if not (skew or "0").isdecimal():
            raise AbeyantError(f"sasl.jaas.config: {_PREFIX}AllowableClockSkewMs is {skew!r}, not a number of ms")
        self._skew_ms = int(skew or 0)

    def __call__(self, text: str, now_ms: int) -> Token:
        header, claims, _, signature = _parts(text)
        if header.get("alg") != "none" or signature:
            raise InvalidTokenError("the token must have alg none and no signature, as the broker has no keys")
        principal = _name(claims, self._subject)
        ends, issued = _time(claims, "exp"), _time(claims, "iat", required=False)
        if ends <= now_ms - self._skew_ms:
            raise InvalidTokenError("the token has expired")
        if issued is not None and (issued > now_ms + self._skew_ms or ends <= issued):
            raise InvalidTokenError("the token was issued in the future, or after its expiry")
        claim = claims.get(self._scope)
        if claim is not None and not isinstance(claim, (str, list)):
            raise InvalidTokenError(f"the token's claim {self._scope} is {claim!r}, not a scope or a list of scopes")
        scope = {str(value).strip() for value in ([claim] if isinstance(claim, str) else claim or ())}
        if missing := [value for value in self._required if value not in scope]:
            raise InvalidTokenError(f"the token's scope lacks {missing[0]}", self._required)
        return Token(principal, ends)


class _Signed:
    """A validator of tokens that are signed with one of the known keys."""

    def __init__(self, keys: Keys, values: Values) -> None:
        self._keys = keys
        self._skew_ms: int = 1000 * values("sasl.oauthbearer.clock.skew.seconds")
        self._audience: tuple[str, ...] = values(_AUDIENCE) or ()
        self._issuer: str | None = values(_ISSUER)
        self._subject: str = values("sasl.oauthbearer.sub.claim.name")
        self._scope: str = values("sasl.oauthbearer.scope.claim.name")

    def __call__(self, text: str, now_ms: int) -> Token:
        header, claims, signed, signature = _parts(text)
        if "crit" in header:  # RFC 7515: refuse critical extensions that are not understood
            raise InvalidTokenError(f"the token has critical extensions, {header['crit']!r}: none is supported")
        key = self._keys.key(header.get("kid"), now_ms)
        if key is None:
            raise InvalidTokenError(f"the broker has no key with the token's key id, {header.get('kid')!r}")
        if header.get("alg") != key.algorithm or not key.verify(signed, signature):
            raise InvalidTokenError("the token's algorithm or signature does not match the key")
        ends = _time(claims, "exp")
        _time(claims, "iat")
        begins = _time(claims, "nbf", required=False)
        if ends <= now_ms - self._skew_ms or (begins is not None and begins > now_ms + self._skew_ms):
            raise InvalidTokenError("the token has expired, or is not valid yet")
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if self._audience and not any(name in self._audience for name in audiences):
            raise InvalidTokenError(f"the token's audience is {audience!r}, not one of {', '.join(self._audience)}")
        if self._issuer is not None and claims.get("iss") != self._issuer:
            raise InvalidTokenError(f"the token's issuer is {claims.get('iss')!r}, not {self._issuer!r}")
        _check_scope(self._scope, claims.get(self._scope))
        return Token(_name(claims, self._subject), ends)


def _parts(text: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Return a token's header, claims, signed bytes and signature. Raises InvalidTokenError."""
    try:
        header, claims, signature = text.split(".")
        return _json(header), _json(claims), f"{header}.{claims}".encode(), decode(signature)
    except (ValueError, RecursionError):
        raise InvalidTokenError("the token is not a JSON Web Token") from None


def _json(text: str) -> dict[str, Any]:
    value = json.loads(decode(text))
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _check_scope(claim: str, scope: object) -> None:
    """Raise InvalidTokenError if one of a signed token's scopes is blank or repeated, as Kafka does."""
    values = scope if isinstance(scope, list) else [scope] if isinstance(scope, str) else []
    names = [value.strip() if isinstance(value, str) else "" for value in values]
    if not all(names) or len(set(names)) < len(names):
        raise InvalidTokenError(f"the token's claim {claim} is {scope!r}: a scope is blank or repeated")


def _name(claims: dict[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip():
        raise InvalidTokenError(f"the token's claim {claim} is {value!r}, not a name")
    return value


def _time(claims: dict[str, Any], claim: str, *, required: bool = True) -> Any:
    """Return a claim's time in ms since 1970; None if it is missing and not required. Raises InvalidTokenError."""
    value = claims.get(claim)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1 << 50:
        raise InvalidTokenError(f"the token's claim {claim} is {value!r}, not a time in seconds")
    return int(value * 1000)
