"""The exchange of tokens by which a client authenticates with one SASL mechanism."""

from __future__ import annotations

__all__ = ["AuthenticationError", "Conversation", "Refused"]


class AuthenticationError(Exception):
    """A failed authentication. The message is for the client."""


class Conversation:
    """One client's authentication with a SASL mechanism. Each mechanism is a subclass."""

    ended = False
    user = ""
    """The user's name, from the client or from its token."""
    by_token = False
    """Whether the client authenticates with a delegation token."""
    ends_ms: int | None = None
    """Expiry of the client's credentials, in milliseconds since 1970; None for no expiry."""

    def answer(self, token: bytes, now_ms: int) -> bytes:
        """Return the response to the client's token. After the last token, set `ended`. Raises AuthenticationError."""
        raise NotImplementedError


class Refused(Conversation):
    """An authentication that fails at its first token, with the given message."""

    def __init__(self, message: str) -> None:
        self._message = message

    def answer(self, token: bytes, now_ms: int) -> bytes:
        """Raise AuthenticationError."""
        raise AuthenticationError(self._message)
