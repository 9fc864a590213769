"""Times that Kafka leaves out as -1, where kio (0.6) knows of no null."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_FIELDS = {
    "describe_transactions.v0.response.TransactionState": ("transaction_start_time",),
    **{
        f"create_delegation_token.v{version}.response.CreateDelegationTokenResponse": (
            "issue_timestamp", "expiry_timestamp", "max_timestamp",
        )
        for version in (1, 2, 3)
    },
    **{
        f"{one.lower()}_delegation_token.v{version}.response.{one}DelegationTokenResponse": ("expiry_timestamp",)
        for one in ("Renew", "Expire")
        for version in (1, 2)
    },
}  # fmt: skip


@cache
def accept_no_time() -> None:
    """Have kio read these as None. Call it before anything is read."""
    for path, fields in _FIELDS.items():
        module, _, name = path.rpartition(".")
        message: Any = getattr(import_module(f"kio.schema.{module}"), name)
        for field in fields:
            kind: Any = message.__annotations__[field] | None
            message.__annotations__[field] = kind
            message.__dataclass_fields__[field].type = kind
