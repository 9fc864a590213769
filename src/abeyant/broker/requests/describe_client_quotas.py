"""DescribeClientQuotas (key 48, versions 0-1): describe the quotas of users, client ids and addresses.

Kafka: `ClientQuotasImage.describe`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.quotas.table import Filter
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Respond with the entities that match the filters, and their quotas."""
    filters = [Filter(one.entity_type, one.match_type, one.match) for one in call.request.components]
    entries = [
        Message(
            entity=[Message(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[Message(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in call.broker.cluster.controller.quotas.describe(filters, strict=call.request.strict)
    ]
    call.answer(Message(error_message="", entries=entries))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error, entries=None)
