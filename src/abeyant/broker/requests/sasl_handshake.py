"""SaslHandshake (key 17, versions 0-1): agree on the SASL mechanism of a connection.

Kafka: `SaslServerAuthenticator.handleHandshakeRequest`.
Not implemented: GSSAPI, OAUTHBEARER.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Begin the authentication, or close the connection where the mechanism is not enabled."""
    login = call.connection.login
    if login is None:  # authenticated already, or no SASL here
        raise ApiError(ErrorCode.illegal_sasl_state)
    begun = login.begin(call.request.mechanism, bare=call.version == 0)
    error = ErrorCode.none if begun else ErrorCode.unsupported_sasl_mechanism
    call.answer(Message(error_code=error, mechanisms=login.mechanisms))
    if not begun:
        call.connection.close(f"it asked for the SASL mechanism {call.request.mechanism!r}, which is not enabled")
