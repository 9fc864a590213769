"""DeleteAcls (key 31, versions 1-3): remove the ACLs that match filters.

Kafka: `AclApis.handleDeleteAcls`, `AclControlManager.deleteAcls`.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from abeyant.broker.acls import Acl
from abeyant.broker.errors import NO_AUTHORIZER
from abeyant.broker.requests.common.acls import all_known
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DeleteAclsFilter": {"pattern_type_filter": 3}}


def handle(call: Call) -> None:
    """Remove the ACLs. Respond, for each filter, with the ACLs that it matched."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        call.answer(error_response(call.request, ErrorCode.security_disabled, NO_AUTHORIZER))
        return
    filters = [
        Acl(
            entry.resource_type_filter, entry.resource_name_filter, entry.pattern_type_filter, entry.principal_filter,
            entry.host_filter, entry.operation, entry.permission_type,
        )
        for entry in call.request.filters
    ]  # fmt: skip
    if not all_known(call, filters):
        return
    matches = [acls.matching(acl_filter) for acl_filter in filters]
    acls.delete(chain.from_iterable(matches))  # only now: filters of one request do not hide ACLs from one another
    call.answer(Message(filter_results=[_result(match) for match in matches]))


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(filter_results=[Message(error_code=error, error_message=message) for _ in request.filters])


def _result(acls: list[Acl]) -> Message:
    rows = [
        Message(
            resource_type=acl.resource_type, resource_name=acl.name, pattern_type=acl.pattern,
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission,
        )
        for acl in acls
    ]  # fmt: skip
    return Message(matching_acls=rows)
