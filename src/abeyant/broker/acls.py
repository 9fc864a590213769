"""Access control lists: authorize operations on topics, groups, transactional ids, tokens, users and the cluster.

Kafka: `StandardAuthorizer`, `AclControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.settings import AUTHORIZER
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore
    from abeyant.broker.settings import Settings

# Kafka's numbers
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(
    3, 13
)
CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14
CLUSTER_NAME: Final = "kafka-cluster"
_ANY, _ALL, _MATCH, _LITERAL, _PREFIXED, _DENY, _ALLOW = 1, 2, 2, 3, 4, 2, 3
_TYPES: Final = ("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER")
_PATTERNS: Final = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
_OPERATIONS: Final = (
    "UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
)  # fmt: skip
_PERMISSIONS: Final = ("UNKNOWN", "ANY", "DENY", "ALLOW")
# The operations whose ALLOW rules also allow the key
_IMPLIED: Final = {
    DESCRIBE: (DESCRIBE, READ, WRITE, DELETE, ALTER),
    DESCRIBE_CONFIGS: (DESCRIBE_CONFIGS, ALTER_CONFIGS),
}


class Acl(NamedTuple):
    """An access control rule, or a filter of rules. In a filter, None and ANY match everything."""

    resource_type: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, acl: Acl) -> bool:
        """Return whether a rule matches this filter."""
        return (
            self.resource_type in (_ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (_ANY, acl.operation)
            and self.permission in (_ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern not in (_ANY, _MATCH, acl.pattern):
            return False
        if self.name is None or self.pattern != _MATCH:
            return self.name in (None, acl.name)
        return acl.covers(self.name)

    def covers(self, name: str) -> bool:
        """Return whether this rule is for the resource `name`, by its exact name, a prefix, or "*"."""
        if self.pattern == _PREFIXED:
            return name.startswith(self.name or "")
        return self.name in (name, "*")


def require_known(acls: Iterable[Acl]) -> None:
    """Raise ValueError for a rule or a filter with an unknown type, pattern, operation or permission."""
    for acl in acls:
        for field, names, value in (
            ("resource type", _TYPES, acl.resource_type), ("pattern type", _PATTERNS, acl.pattern),
            ("operation", _OPERATIONS, acl.operation), ("permission type", _PERMISSIONS, acl.permission),
        ):  # fmt: skip
            if not 0 < value < len(names):
                raise ValueError(f"{field} {value} is unknown: use 1 to {len(names) - 1}")


class Client(NamedTuple):
    """The principal and host of a request, for authorization."""

    principal: str
    host: str


class Acls:
    """The access control rules of a cluster. Use from the loop's thread only."""

    def __init__(self, settings: Settings, store: MetadataStore) -> None:
        """Read the rules from `store`."""
        self.enabled = settings["authorizer.class.name"] == AUTHORIZER
        """Whether the brokers authorize requests."""
        self._super_users = {user.strip() for user in (settings["super.users"] or "").split(";")}
        self._default: bool = settings["allow.everyone.if.no.acl.found"]
        self._store = store
        self._acls: dict[Acl, None] = dict.fromkeys(Acl(*fields) for fields in store.acls())

    def create(self, acls: Iterable[Acl]) -> list[ApiError | None]:
        """Add rules. Return for each rule its error, or None."""
        errors: list[ApiError | None] = []
        for acl in acls:
            try:
                _check(acl)
                if acl not in self._acls:
                    self._store.put_acl(acl, exists=True)
                    self._acls[acl] = None
                errors.append(None)
            except ApiError as error:
                errors.append(error)
        return errors

    def matching(self, acl_filter: Acl) -> list[Acl]:
        """Return the rules that match a filter."""
        return [acl for acl in self._acls if acl_filter.matches(acl)]

    def delete(self, acls: Iterable[Acl]) -> None:
        """Remove rules. Raises ApiError if the removal cannot be stored."""
        for acl in acls:
            if acl in self._acls:
                self._store.put_acl(acl, exists=False)
                del self._acls[acl]

    def allows(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        """Return whether a client may perform an operation on a resource. DENY overrides ALLOW. O(rules)."""
        if client.principal in self._super_users:
            return True
        has_rule = allowed = False
        for acl in self._acls:
            if acl.resource_type == resource_type and acl.covers(name):
                has_rule = True
                if _applies(acl, client, operation):
                    if acl.permission == _DENY:
                        return False
                    allowed = True
        return allowed or (not has_rule and self._default)

    def allows_any(self, client: Client, operation: int, resource_type: int) -> bool:
        """Return whether a client may perform an operation on any resource of this type. O(rules squared)."""
        if self.allows(client, operation, resource_type, "hardcode"):  # as Kafka has it, for super users and defaults
            return True
        applying = [
            acl for acl in self._acls if acl.resource_type == resource_type and _applies(acl, client, operation)
        ]
        denials = [acl for acl in applying if acl.permission == _DENY]
        return any(
            acl.permission == _ALLOW
            and not any(
                denial.covers(acl.name or "") and (denial.name == "*" or denial.pattern >= acl.pattern)
                for denial in denials
            )
            for acl in applying
        )


def _applies(acl: Acl, client: Client, operation: int) -> bool:
    """Return whether a rule is for this client and operation."""
    if acl.principal not in (client.principal, "User:*") or acl.host not in (client.host, "*"):
        return False
    if acl.operation in (_ALL, operation):
        return True
    return acl.permission == _ALLOW and acl.operation in _IMPLIED.get(operation, ())


def _check(acl: Acl) -> None:
    """Raise ApiError if a rule's cluster name, principal or resource name is invalid, or a field is ANY or UNKNOWN."""
    if acl.resource_type == CLUSTER and acl.name != CLUSTER_NAME:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        raise ApiError(ErrorCode.invalid_request, text)
    if ":" not in (acl.principal or ""):
        reason = "no colon is present separating the principal type from the principal name"
        raise ApiError(ErrorCode.invalid_request, f"Could not parse principal from `{acl.principal}` ({reason})")
    if not acl.name:
        raise ApiError(ErrorCode.invalid_request, "Invalid empty resource name")
    for field, names, value, least in (
        ("resourceType", _TYPES, acl.resource_type, TOPIC), ("patternType", _PATTERNS, acl.pattern, _LITERAL),
        ("operation", _OPERATIONS, acl.operation, _ALL), ("permissionType", _PERMISSIONS, acl.permission, _DENY),
    ):  # fmt: skip
        if value < least:
            raise ApiError(ErrorCode.invalid_request, f"Invalid {field} {names[value]}")
