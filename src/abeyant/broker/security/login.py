"""SASL: how a client authenticates before any other request.

A client names a mechanism (SaslHandshake), then sends tokens until it is authenticated: in SaslAuthenticate requests,
or bare after version 0 of the handshake, as in Kafka's `SaslServerAuthenticator`. PLAIN is a name and a password (RFC
4616); SCRAM never sends the password (RFC 5802), and is implemented by scramp.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

from abeyant.broker.security.credentials import SCRAM, Credential, Credentials
from abeyant.lazy import needs

__all__ = ["MECHANISMS", "AuthenticationError", "Login", "Users"]

MECHANISMS: Final = ("PLAIN", *SCRAM)
_BEFORE: Final = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")  # the requests before authentication


class AuthenticationError(Exception):
    """A failed authentication; the message is for the client."""


class Users:
    """Names and passwords, and the SASL mechanisms that are enabled."""

    def __init__(
        self, passwords: Mapping[str, str], mechanisms: tuple[str, ...], credentials: Credentials | None = None
    ) -> None:
        """Hash the passwords into `credentials`, which may change later.

        Raises AbeyantError if a mechanism's library is missing, ValueError for non-strings.
        """
        credentials = credentials or Credentials()
        for name, password in passwords.items():
            if not (isinstance(name, str) and isinstance(password, str) and name and password):
                raise ValueError(f"users: names and passwords must be non-empty strings, not {name!r}: ...")
        self.passwords = dict(passwords)
        self.mechanisms = mechanisms
        self._scram: dict[str, tuple[Any, dict[str, Credential]]] = {}
        for mechanism in mechanisms:
            if mechanism in SCRAM:
                known = credentials.of(mechanism)
                for name, password in passwords.items():
                    known[name] = Credential.of_password(mechanism, password)
                self._scram[mechanism] = _scramp().ScramMechanism(mechanism), known

    def conversation(self, mechanism: str) -> Conversation:
        """Start one client's authentication with a mechanism."""
        if mechanism == "PLAIN":
            return _Plain(self.passwords)
        scram, known = self._scram[mechanism]
        return _Scram(mechanism, scram.make_server, known)


class Conversation:
    """One authentication."""

    ended = False
    user = ""
    """The name that the client gave."""

    def answer(self, token: bytes) -> bytes:
        """Return the response to the client's token, and set `ended` after the last. Raises AuthenticationError."""
        raise NotImplementedError


class Login:
    """The state of one connection's authentication. Use from the loop's thread only."""

    __slots__ = ("_conversation", "_users", "bare", "largest")

    def __init__(self, users: Users, largest: int) -> None:
        self._users = users
        self.largest = largest
        """Maximum bytes of a request before authentication; -1 for the general limit."""
        self._conversation: Conversation | None = None
        self.bare = False
        """Whether tokens come without a request header."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Return the mechanisms that are enabled."""
        return self._users.mechanisms

    @property
    def waits_for_token(self) -> bool:
        """Return whether a mechanism has been agreed on."""
        return self._conversation is not None

    def admit(self, api: str) -> None:
        """Raise ValueError for an API that needs authentication first."""
        if api not in _BEFORE:
            raise ValueError(f"{api} before authentication")

    def begin(self, mechanism: str, *, bare: bool) -> bool:
        """Agree on a mechanism. Return False if it is not enabled."""
        if mechanism not in self.mechanisms:
            return False
        self._conversation = self._users.conversation(mechanism)
        self.bare = bare
        return True

    def answer(self, token: bytes) -> tuple[bytes, str | None]:
        """Return the response to a token, and the user once authenticated. Raises AuthenticationError."""
        assert self._conversation is not None
        answer = self._conversation.answer(token)
        return answer, self._conversation.user if self._conversation.ended else None


class _Plain(Conversation):
    """RFC 4616: an identity to act as, a name and a password, separated by zero bytes."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def answer(self, token: bytes) -> bytes:
        wrong = "Authentication failed: Invalid username or password"
        try:
            acts_as, name, password = token.decode().split("\0")
        except ValueError:
            raise AuthenticationError("Invalid SASL/PLAIN response: expected 3 tokens, each of them UTF-8") from None
        known = self._passwords.get(name, "")
        if not (known and hmac.compare_digest(known.encode(), password.encode())):
            raise AuthenticationError(wrong)
        if acts_as not in ("", name):
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.ended, self.user = True, name
        return b""


class _Scram(Conversation):
    """RFC 5802: client first, server first, client final, server final."""

    def __init__(
        self, mechanism: str, make_server: Callable[[Callable[[str], Any]], Any], known: Mapping[str, Any]
    ) -> None:
        self._mechanism = mechanism
        self._server = make_server(self._look_up)
        self._known = known
        self._begun = False

    def _look_up(self, name: str) -> Any:
        self.user = name
        return self._known[name]

    def answer(self, token: bytes) -> bytes:
        try:
            text = token.decode()
            if not self._begun:
                self._begun = True
                self._server.set_client_first(text)
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
        """Accept a nonce that only ends with ours, as Kafka does: librdkafka before 2.6.1 repeats its own part."""
        sent, ours = final.partition(",r=")[2].partition(",")[0], self._server.nonce
        if sent.endswith(str(ours)):
            self._server.nonce = type(ours)(sent)


def _scramp() -> Any:
    try:
        import scramp
    except ModuleNotFoundError as error:
        raise needs("SCRAM", {"broker-security": [error.name or "scramp"]}) from error
    return scramp
