"""FindCoordinator: there is none yet, which is what clients are told; they start all the same."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import INVALID_REQUEST
from abeyance.broker.requests.call import Call
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"FindCoordinatorRequest": {"key": None, "key_type": 0, "coordinator_keys": ()}}
_TYPES = (0, 1)  # of groups, of transactions


def handle(call: Call) -> None:
    """Answer."""
    request = call.request
    if request.key_type in _TYPES:
        call.answer(refused(request, ErrorCode.coordinator_not_available))
    else:
        call.answer(_response(request, ErrorCode.invalid_request, INVALID_REQUEST))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return _response(request, error, None)


def _response(request: Any, error: ErrorCode, message: str | None) -> Message:
    return Message(
        throttle_time=NO_TIME, error_code=error, error_message=message, node_id=-1, host="", port=-1,
        coordinators=[
            Message(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
            for key in request.coordinator_keys
        ],
    )  # fmt: skip
