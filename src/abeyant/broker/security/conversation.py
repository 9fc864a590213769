"""The exchange of tokens by which a client authenticates with one SASL mechanism."""

from __future__ import annotations

__all__ = ["AuthenticationError", "Conversation", "Refused"]


class AuthenticationError(Exception):
    """A failed authentication; the message is for the client."""


class Conversation:
    """One authentication."""

    ended = False
    user = ""
    """The user's name, from the client or from its token."""
    by_token = False
    """Whether it authenticates with a delegation token."""
    ends_ms: int | None = None
    """Expiry of the client's credentials, in milliseconds since 1970; None for no expiry."""

    def answer(self, token: bytes, now_ms: int) -> bytes:
        """Return the response to the client's token, and set `ended` after the last. Raises AuthenticationError."""
        raise NotImplementedError


class Refused(Conversation):
    """An authentication that fails with this message at its first token."""

    def __init__(self, message: str) -> None:
        self._message = message

    def answer(self, token: bytes, now_ms: int) -> bytes:
        """Raise AuthenticationError."""
        raise AuthenticationError(self._message)
