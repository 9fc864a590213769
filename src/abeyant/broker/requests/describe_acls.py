"""DescribeAcls (key 29, versions 1-3): list the ACLs that match a filter.

Kafka: `AclApis.handleDescribeAcls`.
"""

from __future__ import annotations

from abeyant.broker.acls import Acl
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.acls import all_known
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"DescribeAclsRequest": {"pattern_type_filter": 3}}


def handle(call: Call) -> None:
    """List the ACLs by resource."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        raise ApiError(ErrorCode.security_disabled, "No Authorizer is configured on the broker")
    request = call.request
    acl_filter = Acl(
        request.resource_type_filter, request.resource_name_filter, request.pattern_type_filter,
        request.principal_filter, request.host_filter, request.operation, request.permission_type,
    )  # fmt: skip
    if not all_known(call, [acl_filter]):
        return
    resources: dict[tuple[int, str | None, int], list[Message]] = {}
    for acl in acls.matching(acl_filter):
        row = Message(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission)
        resources.setdefault(acl[:3], []).append(row)
    rows = [
        Message(resource_type=kind, resource_name=name, pattern_type=pattern, acls=rules)
        for (kind, name, pattern), rules in resources.items()
    ]
    call.answer(Message(error_message="", resources=rows))
