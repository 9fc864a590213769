"""Refuse requests whose ACLs have types, operations or permissions that Kafka does not know."""

from __future__ import annotations

from collections.abc import Iterable

from abeyant.broker.acls import Acl, require_known
from abeyant.broker.requests.common.call import Call


def all_known(call: Call, acls: Iterable[Acl]) -> bool:
    """Return whether Kafka knows all types, operations and permissions in these ACLs or filters.

    If not, close the connection, as Kafka does.
    """
    try:
        require_known(acls)
    except ValueError as error:
        call.connection.close(f"cannot read its request ({call.api.name} version {call.version}): {error}")
        return False
    return True
