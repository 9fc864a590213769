"""Refuse requests about ACLs with numbers that Kafka does not know."""

from __future__ import annotations

from collections.abc import Iterable

from abeyant.broker.acls import Acl, require_known
from abeyant.broker.requests.common.call import Call


def all_known(call: Call, acls: Iterable[Acl]) -> bool:
    """Return whether all numbers in rules or filters are known. Close the connection if not, as Kafka does."""
    try:
        require_known(acls)
    except ValueError as error:
        call.connection.close(f"cannot read its request ({call.api.name} version {call.version}): {error}")
        return False
    return True
