"""AlterClientQuotas (key 49, versions 0-1): set and remove quotas of users, client ids and addresses.

Kafka: `ClientQuotaControlManager.alterClientQuotas`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.table import Entity, entity_of, shown
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Change each entity's quotas, all or none of an entity's. Answer with a result for each."""
    quotas = call.broker.cluster.controller.quotas
    found: dict[Entity, Message] = {}
    for entry in call.request.entries:
        entity = entity_of({one.entity_type: one.entity_name for one in entry.entity})
        try:
            if entity in found:
                text = f"Ignoring duplicate entity {shown(entity)}"
                raise ApiError(ErrorCode.invalid_request, text)
            changes = [(one.key, None if one.remove else one.value) for one in entry.ops]
            quotas.alter(entity, changes, validate_only=call.request.validate_only)
            found[entity] = _result(entity)
        except ApiError as error:
            found[entity] = _result(entity, error.code, error.message)
    call.answer(Message(entries=list(found.values())))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    entities = [entity_of({one.entity_type: one.entity_name for one in entry.entity}) for entry in request.entries]
    return Message(entries=[_result(entity, error) for entity in entities])


def _result(entity: Entity, error: ErrorCode = ErrorCode.none, message: str | None = None) -> Message:
    names = [Message(entity_type=kind, entity_name=name) for kind, name in entity]
    return Message(error_code=error, error_message=message, entity=names)
