"""SaslAuthenticate (key 36, versions 0-2): exchange tokens of the SASL mechanism until the client is authenticated.

Kafka: `SaslServerAuthenticator.handleSaslToken`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.security.login import AuthenticationError
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond to the client's token. If authentication fails, respond with the reason and close the connection."""
    connection = call.connection
    login = connection.login
    if login is None or not login.waits_for_token:
        raise ApiError(ErrorCode.illegal_sasl_state)
    try:
        token, session = login.answer(call.request.auth_bytes, call.broker.now_ms())
    except AuthenticationError as error:
        call.answer(Message(error_code=ErrorCode.sasl_authentication_failed, error_message=str(error)))
        connection.close(str(error))
        return
    lifetime = 0
    if session is not None:
        connection.authenticated(session)
        lifetime = session.lifetime_ms
    call.answer(Message(auth_bytes=token, session_lifetime=timedelta(milliseconds=lifetime)))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error, error_message="SaslAuthenticate request received after successful authentication")
