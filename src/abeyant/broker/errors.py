"""The errors in responses."""

from __future__ import annotations

from abeyant.broker.wire.schema import ErrorCode

NO_AUTHORIZER = "No Authorizer is configured."
# Kafka's default message for INVALID_REQUEST
INVALID_REQUEST = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an"
    " incompatible broker. See the broker logs for more details."
)


class ApiError(Exception):
    """An error for the client: Kafka's code, and a message if the API has a field for it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
