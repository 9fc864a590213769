"""FindCoordinator: there is none yet, which is what clients are told; they start all the same."""

from __future__ import annotations

from typing import Any

from abeyance.broker.requests.call import Call
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"FindCoordinatorRequest": {"key": None, "key_type": 0, "coordinator_keys": ()}}
_TYPES = (0, 1)  # of groups, of transactions


def handle(call: Call) -> None:
    """Answer."""
    known = call.request.key_type in _TYPES
    call.answer(refused(call.request, ErrorCode.coordinator_not_available if known else ErrorCode.invalid_request))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return Message(
        throttle_time=NO_TIME, error_code=error, error_message=None, node_id=-1, host="", port=-1,
        coordinators=[
            Message(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=None)
            for key in request.coordinator_keys
        ],
    )  # fmt: skip
