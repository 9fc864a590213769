"""Store the quotas of users, client ids and addresses (AlterClientQuotas), and find the one that applies to a client.

Kafka: `ClientQuotaControlManager`, `ClientQuotasImage`, `DefaultQuotaCallback`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.reconfiguration import address_of
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs, sorted by type. With the name None, the quota is the default for names without their own."""

_TYPES: Final = (USER, CLIENT_ID, IP)
_CLIENT_KEYS: Final = {PRODUCE: "LONG", FETCH: "LONG", REQUEST: "DOUBLE", MUTATION: "DOUBLE"}
_IP_KEYS: Final = {CONNECTION: "INT"}
_MOST: Final = {"LONG": 2**63, "INT": 2**31 - 1}
_EXACT, _DEFAULT, _ANY = range(3)  # how a filter matches a name


class Limit(NamedTuple):
    """The quota that applies to a client."""

    value: float
    key: tuple[str, str]
    """(user, client id): use is counted together for each such pair; "" stands for all users or all client ids."""


class Filter(NamedTuple):
    """One component of DescribeClientQuotas."""

    entity_type: str
    match_type: int
    match: str | None


class QuotaTable:
    """All quotas of a cluster. Use from the loop's thread only."""

    def __init__(self, store: MetadataStore) -> None:
        """Read the quotas from `store`."""
        self._store = store
        self._quotas: dict[Entity, dict[str, float]] = dict(store.quotas())
        self._limits: dict[tuple[str, str, str], Limit | None] = {}
        self._addresses: dict[str, str | None] = {}  # resolved addresses, by host name with a quota
        self.enabled = bool(self._quotas)
        """Whether any entity has a quota. If False, requests are not measured."""

    def alter(self, entity: Entity, changes: Sequence[tuple[str, float | None]], *, validate_only: bool) -> None:
        """Set an entity's quotas; the value None removes a quota. If ApiError is raised, nothing has changed."""
        values = dict(self._quotas.get(entity, {}))
        if len(dict(changes)) < len(changes):
            text = f"Ignoring duplicate entity {shown(entity)}"  # Kafka's message, although a key is repeated
            raise ApiError(ErrorCode.invalid_request, text)
        quota_types = _keys(entity, self._look_up)
        for key, value in changes:
            if value is None:
                values.pop(key, None)
            else:
                _check(quota_types, key, value)
                values[key] = value
        if validate_only:
            return
        self._store.put_quotas(entity, values)
        self._quotas[entity] = values
        if not values:
            del self._quotas[entity]
        self._limits.clear()
        self.enabled = bool(self._quotas)

    def describe(self, filters: Iterable[Filter], *, strict: bool) -> list[tuple[Entity, dict[str, float]]]:
        """Return the entities that match all filters, with their quotas. Raises ApiError for invalid filters.

        If `strict`, leave out entities with a type that no filter names.
        """
        by_type = _by_type(filters)
        return [
            (entity, values)
            for entity, values in self._quotas.items()
            if _matches(dict(entity), by_type) and not (strict and len(entity) != len(by_type))
        ]

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the most specific quota named `key` for a client; None if no such quota applies. O(1)."""
        if not self.enabled:
            return None
        cache_key = key, user, client_id
        if cache_key not in self._limits:
            if len(self._limits) > 10_000:  # clients may give any id
                self._limits.clear()
            self._limits[cache_key] = self._find(key, user, client_id)
        return self._limits[cache_key]

    def _find(self, key: str, user: str, client_id: str) -> Limit | None:
        for names, limit_key in (
            ({USER: user, CLIENT_ID: client_id}, (user, client_id)),
            ({USER: user, CLIENT_ID: None}, (user, client_id)),
            ({USER: user}, (user, "")),
            ({USER: None, CLIENT_ID: client_id}, (user, client_id)),
            ({USER: None, CLIENT_ID: None}, (user, client_id)),
            ({USER: None}, (user, "")),
            ({CLIENT_ID: client_id}, ("", client_id)),
            ({CLIENT_ID: None}, ("", client_id)),
        ):
            value = self._quotas.get(entity_of(names), {}).get(key)
            if value is not None:
                return Limit(value, limit_key)
        return None

    def _look_up(self, name: str) -> str | None:
        """Resolve a host name and cache the address, since a name server is slow; None if it does not resolve."""
        self._addresses[name] = address = address_of(name)
        return address

    def connection_rate(self, address: str) -> float | None:
        """Return the number of connections per second that an address may make; None for no limit."""
        if not self.enabled:
            return None
        default = None
        for entity, values in self._quotas.items():
            (kind, name), *_ = entity
            if kind != IP or CONNECTION not in values:
                continue
            if name is None:
                default = values[CONNECTION]
            elif (self._addresses[name] if name in self._addresses else self._look_up(name)) == address:
                return values[CONNECTION]
        return default


def entity_of(names: Mapping[str, str | None]) -> Entity:
    """Return the entity for a mapping of entity types to names."""
    return tuple(sorted(names.items()))


def _keys(entity: Entity, look_up: Callable[[str], str | None]) -> Mapping[str, str]:
    """Return the names of the quotas that an entity may have, with the type of their values.

    Raises ApiError for an invalid entity. `look_up` resolves a host name, and returns None if it cannot.
    """
    names = dict(entity)
    if not names:
        raise ApiError(ErrorCode.invalid_request, "Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _TYPES:
            raise ApiError(ErrorCode.invalid_request, f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise ApiError(ErrorCode.invalid_request, f"Empty {kind} not supported")
    if IP not in names:
        return _CLIENT_KEYS
    if len(names) > 1:
        text = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise ApiError(ErrorCode.invalid_request, text)
    name = names[IP]
    if name is not None and look_up(name) is None:
        raise ApiError(ErrorCode.invalid_request, f"{name} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _check(quota_types: Mapping[str, str], key: str, value: float) -> None:
    """Raise ApiError unless the quota `key` is in `quota_types` and may have this value."""
    kind = quota_types.get(key)
    if kind is None:
        raise ApiError(ErrorCode.invalid_request, f"Invalid configuration key {key}")
    if not value > 0:  # also refuses NaN
        raise ApiError(ErrorCode.invalid_request, f"Quota {key} must be greater than 0")
    if kind != "DOUBLE":
        if value > _MOST[kind]:
            article = "an" if kind == "INT" else "a"
            raise ApiError(ErrorCode.invalid_request, f"Proposed value for {key} is too large for {article} {kind}.")
        if math.fmod(value, 1) > 1e-6:
            raise ApiError(ErrorCode.invalid_request, f"{key} cannot be a fractional value.")


def _by_type(filters: Iterable[Filter]) -> dict[str, Filter]:
    """Return the filters by entity type. Raises ApiError for an invalid filter or an invalid combination of filters."""
    by_type: dict[str, Filter] = {}
    for component in filters:
        if not component.entity_type:
            raise ApiError(ErrorCode.invalid_request, "Invalid empty entity type.")
        if component.entity_type in by_type:
            text = f"Entity type {component.entity_type} cannot appear more than once in the filter."
            raise ApiError(ErrorCode.invalid_request, text)
        if component.entity_type not in _TYPES:
            raise ApiError(ErrorCode.unsupported_version, f"Unsupported entity type {component.entity_type}")
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise ApiError(ErrorCode.invalid_request, f"Unknown match type {component.match_type}")
        if component.match_type == _EXACT and component.match is None:
            text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            raise ApiError(ErrorCode.invalid_request, text)
        if component.match_type != _EXACT and component.match is not None:
            kind = "DEFAULT" if component.match_type == _DEFAULT else "SPECIFIED"
            text = f"Request specified MATCH_TYPE_{kind}, but also specified a match string."
            raise ApiError(ErrorCode.invalid_request, text)
        by_type[component.entity_type] = component
    if IP in by_type and len(by_type) > 1:
        text = (
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
        raise ApiError(ErrorCode.invalid_request, text)
    return by_type


def _matches(names: Mapping[str, str | None], filters: Mapping[str, Filter]) -> bool:
    return all(
        kind in names and (component.match_type == _ANY or names[kind] == component.match)
        for kind, component in filters.items()
    )


def shown(entity: Entity) -> str:
    """Format an entity as in Kafka's messages."""
    names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"
