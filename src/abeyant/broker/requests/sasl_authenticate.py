"""SaslAuthenticate (key 36, versions 0-2): exchange tokens of the SASL mechanism until the client is authenticated.

Kafka: `SaslServerAuthenticator.handleSaslToken`.
Not implemented: reauthentication (KIP-368).
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.security.login import AuthenticationError
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Answer the token. If authentication fails, answer with the reason and close the connection."""
    connection = call.connection
    login = connection.login
    if login is None or not login.waits_for_token:
        raise ApiError(ErrorCode.illegal_sasl_state)
    try:
        token, user = login.answer(call.request.auth_bytes)
    except AuthenticationError as error:
        call.answer(Message(error_code=ErrorCode.sasl_authentication_failed, error_message=str(error)))
        connection.close(str(error))
        return
    if user is not None:
        connection.login, connection.user = None, user
    call.answer(Message(auth_bytes=token))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error, error_message="SaslAuthenticate request received after successful authentication")
