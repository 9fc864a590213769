"""Set client quotas, for which Kafka's Python clients have no method. Use from the loop's thread only."""

from __future__ import annotations

import math
from collections.abc import Mapping

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.api.target import check_text
from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.table import CLIENT_ID, CONNECTION, FETCH, IP, MUTATION, PRODUCE, REQUEST, USER, entity_of
from abeyant.errors import AbeyantError, did_you_mean

_KNOWN = (PRODUCE, FETCH, REQUEST, MUTATION, CONNECTION)


def set_quotas(
    cluster: BaseCluster, quotas: Mapping[str, float | None], user: str | None, client_id: str | None, ip: str | None
) -> None:
    """Set an entity's quotas; the value None removes a quota. If AbeyantError is raised, nothing has changed."""
    if not isinstance(quotas, Mapping):
        raise AbeyantError(f"quotas must be a dict of names and numbers, not {quotas!r}")
    for name, value in quotas.items():
        if name not in _KNOWN:
            raise AbeyantError(f"there is no quota {name!r}{did_you_mean(str(name), _KNOWN)}; there are {list(_KNOWN)}")
        if value is not None and not _is_number(value):
            raise AbeyantError(f"{name} must be a number, or None to remove it, not {value!r}")
    names = {kind: name for kind, name in ((USER, user), (CLIENT_ID, client_id), (IP, ip)) if name is not None}
    for kind, given in names.items():
        check_text(kind.replace("-", "_"), given)
    default = {IP: None} if CONNECTION in quotas else {CLIENT_ID: None}
    try:
        cluster.controller.quotas.alter(entity_of(names or default), list(quotas.items()), validate_only=False)
    except ApiError as error:
        raise AbeyantError(error.message) from None


def _is_number(value: object) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:  # an int beyond all floats
        return False
