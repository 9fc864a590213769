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
    """Change each entity's quotas: all of the entity's changes or none. Respond with a result for each entity."""
    quotas = call.broker.cluster.controller.quotas
    results: dict[Entity, Message] = {}
    for entry in call.request.entries:
        entity = entity_of({part.entity_type: part.entity_name for part in entry.entity})
        try:
            if entity in results:
                text = f"Ignoring duplicate entity {shown(entity)}"
                raise ApiError(ErrorCode.invalid_request, text)
            changes = [(op.key, None if op.remove else op.value) for op in entry.ops]
            quotas.alter(entity, changes, validate_only=call.request.validate_only)
            results[entity] = _result(entity)
        except ApiError as error:
            results[entity] = _result(entity, error.code, error.message)
    call.answer(Message(entries=list(results.values())))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    entities = [entity_of({part.entity_type: part.entity_name for part in entry.entity}) for entry in request.entries]
    return Message(entries=[_result(entity, error) for entity in entities])


def _result(entity: Entity, error: ErrorCode = ErrorCode.none, message: str | None = None) -> Message:
    names = [Message(entity_type=kind, entity_name=name) for kind, name in entity]
    return Message(error_code=error, error_message=message, entity=names)
