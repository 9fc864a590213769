"""What a broker answers instead of what was asked."""

from __future__ import annotations

from abeyance.broker.wire.schema import ErrorCode


class ApiError(Exception):
    """An error for the client: Kafka's code, and where the API has room for it a message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
