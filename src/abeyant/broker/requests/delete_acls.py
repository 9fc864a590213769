"""DeleteAcls (key 31, versions 1-3): remove the ACLs that match filters.

Kafka: `AclApis.handleDeleteAcls`, `AclControlManager.deleteAcls`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abeyant.broker.acls import Acl, Acls
from abeyant.broker.errors import NO_AUTHORIZER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import results
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DeleteAclsFilter": {"pattern_type_filter": 3}}


def handle(call: Call) -> None:
    """Remove the ACLs. Answer with those that each filter matched."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        call.answer(error_response(call.request, ErrorCode.security_disabled, NO_AUTHORIZER))
        return
    matched: list[Acl] = []
    found = results(call.request.filters, partial(_matching, acls, matched), _failed)
    acls.delete(matched)  # only now: filters of one request do not hide ACLs from one another
    call.answer(Message(filter_results=found))


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(filter_results=[Message(error_code=error, error_message=message) for _ in request.filters])


def _matching(acls: Acls, matched: list[Acl], one: Any) -> Message:
    wanted = Acl(
        one.resource_type_filter, one.resource_name_filter, one.pattern_type_filter, one.principal_filter,
        one.host_filter, one.operation, one.permission_type,
    )  # fmt: skip
    found = acls.matching(wanted)
    matched += found
    rows = [
        Message(
            resource_type=acl.resource_type, resource_name=acl.name, pattern_type=acl.pattern,
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission,
        )
        for acl in found
    ]  # fmt: skip
    return Message(matching_acls=rows)


def _failed(_: Any, error: ErrorCode) -> Message:
    return Message(error_code=error)
