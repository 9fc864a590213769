"""AlterUserScramCredentials (key 51, versions 0-0): add, replace and delete users' SCRAM credentials.

Kafka: `ScramControlManager.alterCredentials`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Change the credentials. Respond with a result for each user."""
    found = call.broker.cluster.controller.scram.alter(call.request.deletions, call.request.upsertions)
    results = [
        Message(user=user) if error is None else Message(user=user, error_code=error.code, error_message=error.message)
        for user, error in found.items()
    ]
    call.answer(Message(results=results))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    users = dict.fromkeys(one.name for one in (*request.deletions, *request.upsertions))
    return Message(results=[Message(user=user, error_code=error) for user in users])
