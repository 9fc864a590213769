"""SaslAuthenticate (key 36, versions 0-2): exchange a token of the SASL mechanism, until the client is authenticated.

Kafka: `SaslServerAuthenticator.handleSaslToken`.
Not implemented: reauthentication (KIP-368).
"""

from __future__ import annotations

import datetime
from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.security.login import AuthenticationError
from abeyant.broker.wire.schema import ErrorCode, Message

_FOR_GOOD = datetime.timedelta(0)  # nobody has to authenticate anew


def handle(call: Call) -> None:
    """Answer; whoever is not let in is told why, and its connection ends."""
    connection = call.connection
    login = connection.login
    if login is None or not login.waits_for_token:
        call.answer(refused(call.request, ErrorCode.illegal_sasl_state))
        return
    try:
        token, is_in = login.answer(call.request.auth_bytes)
    except AuthenticationError as error:
        call.answer(_response(ErrorCode.sasl_authentication_failed, str(error), b""))
        connection.close(f"not let in: {error}")
        return
    if is_in:
        connection.login, connection.user = None, login.user
    call.answer(_response(ErrorCode.none, None, token))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, "SaslAuthenticate request received after successful authentication", b"")


def _response(error: ErrorCode, message: str | None, token: bytes) -> Message:
    return Message(error_code=error, error_message=message, auth_bytes=token, session_lifetime=_FOR_GOOD)
