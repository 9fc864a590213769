"""OAUTHBEARER (RFC 7628): a client authenticates with a token. Kafka: `OAuthBearerSaslServer`.

Extensions, which a client may send with its token, are accepted and ignored, as by Kafka's own validators.
"""

from __future__ import annotations

import re
from typing import Final

from abeyant.broker.security.conversation import AuthenticationError, Conversation
from abeyant.broker.security.jwt import InvalidTokenError, Validator
from abeyant.reporting import logger

__all__ = ["MECHANISM", "OAuthBearer"]

MECHANISM: Final = "OAUTHBEARER"
_FIRST: Final = re.compile(
    rb"n,(?:a=(?P<acts_as>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    rb"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER: Final = re.compile(rb"bearer +([-_~.+/a-zA-Z0-9]+=*)", re.IGNORECASE)
_SEEN: Final = b"\x01"  # by which a client acknowledges a refusal


class OAuthBearer(Conversation):
    """OAUTHBEARER: the client sends a token. If it is refused, the client gets the reason and acknowledges it."""

    def __init__(self, validate: Validator) -> None:
        self._validate = validate
        self._refusal = ""

    def answer(self, token: bytes, now_ms: int) -> bytes:
        """Return b"" for a valid token, else the reason for the token's refusal. Raises AuthenticationError."""
        if self._refusal and token == _SEEN:
            raise AuthenticationError(self._refusal)
        first = _FIRST.fullmatch(token)
        pairs = dict(pair.split(b"=", 1) for pair in first["pairs"].split(b"\x01") if pair) if first else {}
        bearer = _BEARER.fullmatch(pairs.get(b"auth", b""))
        if first is None or bearer is None:
            raise AuthenticationError(
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{MECHANISM}"
            )
        try:
            claims = self._validate(bearer[1].decode(), now_ms)
        except InvalidTokenError as error:
            logger("broker").warning("a client's token is refused: %.200s", error)  # clients decide its length
            self._refusal = _refusal(error)
            return self._refusal.encode()
        acts_as = (first["acts_as"] or b"").decode().replace("=2C", ",").replace("=3D", "=")
        if acts_as not in ("", claims.principal):
            raise AuthenticationError(
                f"Authentication failed: Client requested an authorization id ({acts_as}) that is different from the "
                f"token's principal name ({claims.principal})"
            )
        self.ended, self.user, self.ends_ms = True, claims.principal, claims.ends_ms
        return b""


def _refusal(error: InvalidTokenError) -> str:
    """Return the response to a client whose token is refused, in Kafka's wording."""
    if error.missing_scope:
        return f'{{"status":"insufficient_scope", "scope":"[{", ".join(error.missing_scope)}]"}}'
    return '{"status":"invalid_token"}'
