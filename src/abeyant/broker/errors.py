"""The error that a request handler raises to send an error response."""

from __future__ import annotations

from abeyant.broker.wire.schema import ErrorCode

NO_AUTHORIZER = "No Authorizer is configured."
# Kafka's default message for INVALID_REQUEST
INVALID_REQUEST = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an"
    " incompatible broker. See the broker logs for more details."
)


class ApiError(Exception):
    """An error to send to the client: Kafka's code, and a message, sent if the API's response has a field for it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
