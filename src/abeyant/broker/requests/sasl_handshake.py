"""SaslHandshake (key 17, versions 0-1): agree on the SASL mechanism of a connection.

Kafka: `SaslServerAuthenticator.handleHandshakeRequest`.
Not implemented: GSSAPI.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Start the authentication, or close the connection if the mechanism is not enabled."""
    login = call.connection.login
    if login is None:  # already authenticated, or no SASL on this listener
        raise ApiError(ErrorCode.illegal_sasl_state)
    started = login.begin(call.request.mechanism, bare=call.version == 0)
    error = ErrorCode.none if started else ErrorCode.unsupported_sasl_mechanism
    call.answer(Message(error_code=error, mechanisms=login.mechanisms))
    if not started:
        call.connection.close(f"the SASL mechanism {call.request.mechanism!r} is not enabled")
