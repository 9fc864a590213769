"""Helpers of the delegation token APIs: check the requester, change the expiry, and convert principals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.allowed import client_of
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

NO_TIME_MS = -1


def require_identity(call: Call) -> None:
    """Raise ApiError for an anonymous client, and for a client that authenticated with a delegation token."""
    session = call.connection.session
    by_token = session is not None and session.by_token
    if by_token or call.connection.user == "ANONYMOUS":
        raise ApiError(ErrorCode.delegation_token_request_not_allowed)


def change_expiry(call: Call, period: timedelta, change: Callable[[str, bytes, int], int]) -> None:
    """Call `change(principal, hmac, period_ms)`. Respond with the token's new expiry, which it returns, in ms."""
    refused_at = NO_TIME_MS
    try:
        require_identity(call)
        refused_at = 0  # as Kafka's controller sends, which refuses from here on
        period_ms = round(period.total_seconds() * 1000)
        expires_ms = change(client_of(call).principal, call.request.hmac, period_ms)
    except ApiError as error:
        call.answer(Message(error_code=error.code, expiry_timestamp=refused_at))
        return
    call.answer(Message(expiry_timestamp=expires_ms))


def principal(kind: str | None, name: str | None) -> str:
    """Return a principal as ACLs and tokens write it, for instance "User:alice"."""
    return f"{kind}:{name}"


def principal_fields(text: str, prefix: str = "") -> dict[str, Any]:
    """Return the fields of a response that name the principal `text`. Their names begin with `prefix`."""
    kind, _, name = text.partition(":")
    return {f"{prefix}principal_type": kind, f"{prefix}principal_name": name}
