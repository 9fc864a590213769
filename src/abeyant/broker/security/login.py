"""SASL: how a client authenticates before any other request.

A client names a mechanism (SaslHandshake), then sends tokens until it is authenticated: in SaslAuthenticate requests,
or without a request header after version 0 of SaslHandshake, as in Kafka's `SaslServerAuthenticator`. PLAIN is a name
and a password (RFC 4616). SCRAM never sends the password (RFC 5802), and is implemented by scramp. A delegation token
is used like a user in SCRAM: its id is the name, its HMAC the password (KIP-48). OAUTHBEARER is in oauthbearer.py.

A session may have an end (KIP-368): the client's token expires, or `connections.max.reauth.ms` have passed. After its
end the next request closes the connection, unless the request begins another authentication.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final, NamedTuple

from abeyant.broker.security.conversation import AuthenticationError, Conversation, Refused
from abeyant.broker.security.credentials import SCRAM, Credential, Credentials
from abeyant.broker.security.jwt import Validator
from abeyant.broker.security.oauthbearer import MECHANISM as OAUTHBEARER
from abeyant.broker.security.oauthbearer import OAuthBearer
from abeyant.lazy import needs

__all__ = ["MECHANISMS", "AuthenticationError", "Login", "SaslSession", "Users"]

MECHANISMS: Final = ("PLAIN", *SCRAM, OAUTHBEARER)
_TOKEN: Final = ",tokenauth=true"
_CENTURY_MS: Final = 100 * 365 * 86_400_000
_RENEWABLE_AFTER_MS: Final = 1000  # since the last authentication began, as in Kafka
_BEFORE: Final = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")  # the requests before authentication


class SaslSession(NamedTuple):
    """An authenticated session of a connection."""

    user: str
    mechanism: str
    by_token: bool
    """Whether the client has authenticated with a delegation token."""
    renews: bool
    """Whether the session renewed an earlier session of the same connection."""
    began_ms: int
    ends_ms: int | None
    """End of the session in milliseconds since 1970; None for no end."""

    @property
    def lifetime_ms(self) -> int:
        """Return the session's length in milliseconds, a century at most; 0 for a session without an end."""
        return 0 if self.ends_ms is None else min(max(self.ends_ms - self.began_ms, 0), _CENTURY_MS)

    def is_over(self, now_ms: int) -> bool:
        """Return whether the session has ended."""
        return self.ends_ms is not None and now_ms >= self.ends_ms

    def is_renewable(self, now_ms: int) -> bool:
        """Return whether the client may authenticate again: if the session has an end, and at most once a second."""
        return self.ends_ms is not None and (not self.renews or now_ms - self.began_ms >= _RENEWABLE_AFTER_MS)


class Users:
    """The users' names and passwords, and the SASL mechanisms that are enabled."""

    def __init__(
        self,
        passwords: Mapping[str, str],
        mechanisms: tuple[str, ...],
        credentials: Credentials | None = None,
        validate: Validator | None = None,
        longest: Mapping[str, int] | None = None,
    ) -> None:
        """Hash the passwords into `credentials`, which may change later.

        `validate` checks the tokens of OAUTHBEARER. `longest` has the maximum length of a session in milliseconds, by
        mechanism; 0 or less means no limit. Raises AbeyantError if a mechanism's library is missing, ValueError for a
        name or password that is empty or not a string.
        """
        credentials = credentials or Credentials()
        for name, password in passwords.items():
            if not (isinstance(name, str) and isinstance(password, str) and name and password):
                raise ValueError(f"users: names and passwords must be non-empty strings, not {name!r}: ...")
        self.passwords = dict(passwords)
        self.mechanisms = mechanisms
        self.longest = longest or {}
        self._validate = validate
        self._credentials = credentials
        self._scram: dict[str, tuple[Any, dict[str, Credential]]] = {}
        self._prepare()

    def with_mechanisms(self, mechanisms: tuple[str, ...], validate: Validator | None) -> Users:
        """Return a copy of the users with other mechanisms enabled. Raises AbeyantError if a library is missing."""
        users = copy(self)
        users.mechanisms, users._validate = mechanisms, validate
        users._prepare()
        return users

    def _prepare(self) -> None:
        """Hash the passwords for each SCRAM mechanism that is enabled for the first time."""
        for mechanism in self.mechanisms:
            if mechanism in SCRAM and mechanism not in self._scram:
                credentials = self._credentials.of(mechanism)
                for name, password in self.passwords.items():
                    credentials[name] = Credential.of_password(mechanism, password)
                self._scram[mechanism] = _scramp().ScramMechanism(mechanism), credentials

    def conversation(self, mechanism: str) -> Conversation:
        """Start one client's authentication with a mechanism."""
        if mechanism == "PLAIN":
            return _Plain(self.passwords)
        if mechanism == OAUTHBEARER:
            assert self._validate is not None
            return OAuthBearer(self._validate)
        scram, credentials = self._scram[mechanism]
        return _Scram(mechanism, scram.make_server, credentials, self._credentials)


class Login:
    """The state of one connection's authentication. Use from the loop's thread only."""

    __slots__ = ("_before", "_conversation", "_mechanism", "_users", "bare", "largest")

    def __init__(self, users: Users, largest: int, before: SaslSession | None = None) -> None:
        """Start before a mechanism is agreed on. `before` is the session that the client renews, if any."""
        self._users = users
        self._before = before
        self._mechanism = ""
        self.largest = largest
        """Maximum bytes of a request before authentication; -1 for the general limit."""
        self._conversation: Conversation | None = None
        self.bare = False
        """Whether the client sends tokens without a request header."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the mechanisms that are enabled."""
        return self._users.mechanisms

    @property
    def waits_for_token(self) -> bool:
        """Return whether the client's next message is a token, as a mechanism has been agreed on."""
        return self._conversation is not None

    def admit(self, api: str) -> None:
        """Raise ValueError if a client has to authenticate before it may send requests of this API."""
        if api not in _BEFORE:
            raise ValueError(f"the client sent {api} before it was authenticated")

    def begin(self, mechanism: str, *, bare: bool) -> bool:
        """Agree on a mechanism with the client. Return False if the mechanism is not enabled."""
        if mechanism not in self.mechanisms:
            return False
        before = self._before
        self._mechanism = mechanism
        if before is not None and mechanism != before.mechanism:
            self._conversation = Refused(
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{before.mechanism}'"
            )
        else:
            self._conversation = self._users.conversation(mechanism)
        self.bare = bare
        return True

    def answer(self, token: bytes, now_ms: int) -> tuple[bytes, SaslSession | None]:
        """Return the response to a token, and the session once it begins, else None. Raises AuthenticationError."""
        conversation, before = self._conversation, self._before
        assert conversation is not None
        response = conversation.answer(token, now_ms)
        if not conversation.ended:
            return response, None
        if before is not None and conversation.user != before.user:
            change = f"User.{before.user}: User.{conversation.user}"
            raise AuthenticationError(f"Cannot change principals during re-authentication from {change}")
        longest = self._users.longest.get(self._mechanism, 0)
        ends = [now_ms + longest] if longest > 0 else []
        if conversation.ends_ms is not None:
            ends.append(conversation.ends_ms)
        session = SaslSession(
            conversation.user, self._mechanism, conversation.by_token, before is not None, now_ms,
            min(ends, default=None),
        )  # fmt: skip
        return response, session


class _Plain(Conversation):
    """PLAIN (RFC 4616): the token is an identity to act as, a name and a password, separated by zero bytes."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def answer(self, token: bytes, now_ms: int) -> bytes:
        message = "Authentication failed: Invalid username or password"
        try:
            acts_as, name, password = token.decode().split("\0")
        except ValueError:
            raise AuthenticationError("Invalid SASL/PLAIN response: expected 3 tokens, each of them UTF-8") from None
        expected = self._passwords.get(name, "")
        if not (expected and hmac.compare_digest(expected.encode(), password.encode())):
            raise AuthenticationError(message)
        if acts_as not in ("", name):
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.ended, self.user = True, name
        return b""


class _Scram(Conversation):
    """SCRAM (RFC 5802): the messages are client first, server first, client final, and server final."""

    def __init__(
        self,
        mechanism: str,
        make_server: Callable[[Callable[[str], Any]], Any],
        known: Mapping[str, Any],
        credentials: Credentials,
    ) -> None:
        self._mechanism = mechanism
        self._server = make_server(self._look_up)
        self._known = known
        self._credentials = credentials
        self._begun = False

    def _look_up(self, name: str) -> Any:
        if not self.by_token:
            self.user = name
            return self._known[name]
        token = self._credentials.tokens[name]
        self.user, self.ends_ms = token.owner.partition(":")[2], token.expires_ms
        return Credential.of_password(self._mechanism, b64encode(token.hmac).decode())

    def answer(self, token: bytes, now_ms: int) -> bytes:
        try:
            text = token.decode()
            if not self._begun:
                self._begun = True
                self.by_token = text.endswith(_TOKEN)
                self._server.set_client_first(text.removesuffix(_TOKEN))  # scramp knows no extensions
                self._server.client_first_bare = text.split(",", 2)[2]  # client and server sign all of it
                return bytes(self._server.get_server_first(), "utf-8")
            self._accept_repeated_nonce(text)
            self._server.set_client_final(text)
            final = bytes(self._server.get_server_final(), "utf-8")
        except Exception:  # noqa: BLE001  any bytes may come; an unknown name is a KeyError
            raise AuthenticationError(
                f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
                f"{self._mechanism}"
            ) from None
        self.ended = True
        return final

    def _accept_repeated_nonce(self, final: str) -> None:
        """Accept a nonce that only ends with the expected nonce, as Kafka does: librdkafka < 2.6.1 repeats a part."""
        nonce, own_nonce = final.partition(",r=")[2].partition(",")[0], self._server.nonce
        if nonce.endswith(str(own_nonce)):
            self._server.nonce = type(own_nonce)(nonce)


def _scramp() -> Any:
    try:
        import scramp
    except ModuleNotFoundError as error:
        raise needs("SCRAM", {"broker-security": [error.name or "scramp"]}) from error
    return scramp
