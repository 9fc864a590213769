"""DescribeAcls (key 29, versions 1-3): answer SECURITY_DISABLED, as Kafka without an authorizer does.

Kafka: `AclApis.handleDescribeAcls`.
Not implemented: ACLs.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode


def handle(call: Call) -> None:
    """Raise ApiError, always."""
    raise ApiError(ErrorCode.security_disabled, "No Authorizer is configured on the broker")
