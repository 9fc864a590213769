"""A member of a classic group: its metadata and its pending requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from abeyant.broker.wire.schema import ErrorCode


class JoinRequest(NamedTuple):
    """A JoinGroup request, independent of its version. Times are in ms."""

    member_id: str
    """Empty for a new member."""
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    needs_id: bool = True
    """Whether a new member first gets an id and has to join again with it (KIP-394, from version 4 on)."""
    may_skip: bool = True
    """Whether the client knows `skip_assignment` (KIP-814, from version 9 on)."""


class JoinResponse(NamedTuple):
    """The response to a JoinGroup."""

    error: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Each member's id, instance id and metadata, in the response to the leader."""
    skip_assignment: bool = False


class SyncResponse(NamedTuple):
    """The response to a SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


OnJoin = Callable[[JoinResponse], object]
OnSync = Callable[[SyncResponse], object]


class Member:
    """A member of a classic group. Times are in ms."""

    def __init__(self, member_id: str, request: JoinRequest) -> None:
        """Create the member from its first JoinGroup."""
        self.id = member_id
        self.instance_id = request.instance_id
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.session_timeout = request.session_timeout
        self.rebalance_timeout = request.rebalance_timeout
        self.protocol_type = request.protocol_type
        self.protocols = request.protocols
        self.assignment = b""
        self.is_new = False  # its first JoinGroup is pending, so it does not know its id and sends no heartbeats
        self.joining: OnJoin | None = None  # answers its JoinGroup
        self.syncing: OnSync | None = None  # answers its SyncGroup

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol; empty if the member does not support the protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the first of the member's protocols that is in `candidates`."""
        return next(name for name, _ in self.protocols if name in candidates)

    def answer_sync(self, response: SyncResponse) -> bool:
        """Answer the member's pending SyncGroup, if any. Return whether a SyncGroup was pending."""
        syncing, self.syncing = self.syncing, None
        if syncing is None:
            return False
        syncing(response)
        return True

    def __repr__(self) -> str:
        return f"<Member {self.id}>"
