"""A group of the classic protocol: its members and its state. It has no clock.

Kafka: `ClassicGroup`. The transitions are in `rebalancing`; joining and leaving are in `protocol`.

    Empty ---------> PreparingRebalance ----> CompletingRebalance ----> Stable
      ^                 |     ^  ^                     |                  |
      +-----------------+     |  +---------------------+                  |
                              +-------------------------------------------+
"""

from __future__ import annotations

import uuid
from collections import Counter
from enum import Enum

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import JoinResponse, Member, OnJoin, SyncResponse
from abeyant.broker.groups.subscription import CONSUMER, subscribed_topics
from abeyant.broker.wire.schema import ErrorCode

_LONGEST_NAME = 1_000  # characters, of at most 4 bytes


class State(Enum):
    """The states of a group, by Kafka's names."""

    EMPTY = "Empty"
    """The group has no members, but may have offsets."""
    PREPARING = "PreparingRebalance"
    """Members are joining."""
    COMPLETING = "CompletingRebalance"
    """All members have joined; the leader is computing the assignment."""
    STABLE = "Stable"
    """All members have their assignment."""
    DEAD = "Dead"
    """Deleted, converted to a consumer group, or led by another coordinator."""


class ClassicGroup:
    """A group of the classic protocol. `members` are in joining order."""

    type = "classic"

    def __init__(self, group_id: str, now_ms: int | None) -> None:
        """Create an empty group."""
        self.id = group_id
        self.state = State.EMPTY
        self.previous = State.EMPTY
        self.since_ms = now_ms  # when the group entered this state; None if loaded from an old record without the time
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}  # member ids by instance id
        self.pending: dict[str, None] = {}  # members that got an id and have not joined with it yet
        self.unsynced: set[str] = set()  # members that joined and have not sent a SyncGroup yet
        self.new_member_added = False  # during the initial rebalance delay
        self.awaiting_join = 0  # members with a pending JoinGroup
        self._supported: Counter[str] = Counter()  # number of members that support each protocol

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.id} {self.state.value} of {len(self.members)}>"

    # -- queries

    @property
    def all_joined(self) -> bool:
        """Return whether every known member has joined this rebalance."""
        return self.awaiting_join == len(self.members) and not self.pending

    @property
    def client_id(self) -> str:
        """Return the leader's client id; empty without a leader."""
        leader = self.members.get(self.leader or "")
        return "" if leader is None else leader.client_id

    def not_joined(self) -> list[tuple[str, str]]:
        """Return the group id and member id of each member that has not joined this rebalance."""
        missing = [member.id for member in self.members.values() if member.joining is None]
        return [(self.id, member_id) for member_id in [*missing, *self.pending]]

    @property
    def rebalance_timeout(self) -> int:
        """Return the longest rebalance time-out of the members, in ms."""
        return max((member.rebalance_timeout for member in self.members.values()), default=0)

    @property
    def can_rebalance(self) -> bool:
        """Return whether a rebalance can start: members are not joining already, and the group is not dead."""
        return self.state in (State.EMPTY, State.COMPLETING, State.STABLE)

    @property
    def simple(self) -> bool:
        """Return whether no member has ever joined, so that the group has only offsets."""
        return self.protocol_type is None

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic. Decodes the members' subscriptions: O(members)."""
        if self.protocol_type != CONSUMER or self.protocol is None:
            return False
        return any(topic in subscribed_topics(member.metadata(self.protocol)) for member in self.members.values())

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Return whether all members support one of the protocols in `names`."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(self._supported[name] == len(self.members) for name in names)

    def require(self, member_id: str, instance_id: str | None) -> Member:
        """Return a member. Raises ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for a replaced static member."""
        if instance_id is not None:
            current = self.static.get(instance_id)
            if current is None:
                raise ApiError(ErrorCode.unknown_member_id)
            if current != member_id:
                raise ApiError(ErrorCode.fenced_instance_id)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.unknown_member_id)
        return member

    def require_current(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        """Return a member. Raises ApiError as `require` does, and ILLEGAL_GENERATION for another generation."""
        if self.state is State.DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        member = self.require(member_id, instance_id)
        if generation != self.generation:
            raise ApiError(ErrorCode.illegal_generation)
        return member

    def join_response(self, member: Member, *, leads: bool) -> JoinResponse:
        """Return the response to a member's JoinGroup. The response to the leader lists all members."""
        members = self.members.values() if leads else ()
        return JoinResponse(
            ErrorCode.none, member.id, self.generation, self.protocol_type, self.protocol, self.leader or "",
            tuple((one.id, one.instance_id, one.metadata(self.protocol)) for one in members),
        )  # fmt: skip

    def new_id(self, client_id: str, instance_id: str | None) -> str:
        """Return a new member id, short enough for a response that lists all members."""
        return f"{(client_id if instance_id is None else instance_id)[:_LONGEST_NAME]}-{uuid.uuid4()}"

    # -- changes

    def become(self, state: State, now_ms: int) -> None:
        """Enter a state."""
        self.previous, self.state, self.since_ms = self.state, state, now_ms

    def add(self, member: Member) -> None:
        """Add a member. The first member becomes the leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        self.pending.pop(member.id, None)
        self._supported.update({name for name, _ in member.protocols})
        self.awaiting_join += member.joining is not None

    def remove(self, member: Member) -> None:
        """Remove a member. If it was the leader, the oldest remaining member becomes the leader."""
        del self.members[member.id]
        if member.instance_id is not None and self.static.get(member.instance_id) == member.id:
            del self.static[member.instance_id]
        self.unsynced.discard(member.id)
        self._supported.subtract({name for name, _ in member.protocols})
        self.awaiting_join -= member.joining is not None
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def replace(self, instance_id: str, new_id: str) -> Member:
        """Give a static member a new id, after its process restarted. Pending requests get FENCED_INSTANCE_ID."""
        old = self.members[self.static[instance_id]]
        led = self.leader == old.id
        self.answer_join(old, JoinResponse(ErrorCode.fenced_instance_id, old.id))
        old.answer_sync(SyncResponse(ErrorCode.fenced_instance_id))
        self.remove(old)
        old.id = new_id
        self.add(old)
        if led:
            self.leader = new_id
        return old

    def await_join(self, member: Member, joining: OnJoin) -> None:
        """Keep a member's JoinGroup pending. An earlier pending JoinGroup gets no response, as in Kafka."""
        self.awaiting_join += member.joining is None
        member.joining = joining

    def answer_join(self, member: Member, response: JoinResponse) -> None:
        """Answer the member's JoinGroup, if one is pending."""
        joining, member.joining = member.joining, None
        if joining is not None:
            self.awaiting_join -= 1
            joining(response)

    def update_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """Replace the protocols of a member."""
        self._supported.subtract({name for name, _ in member.protocols})
        member.protocols = protocols
        self._supported.update({name for name, _ in protocols})

    def elect_leader(self) -> bool:
        """Choose a leader among the members that have joined. Return False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].joining is None:
            joined = next((member.id for member in self.members.values() if member.joining is not None), None)
            if joined is None:
                return False
            self.leader = joined
        return True

    def next_generation(self, now_ms: int) -> None:
        """Begin the next generation, after all members have joined."""
        self.generation += 1
        self.unsynced.clear()
        if self.members:
            self.protocol = self.choose_protocol()
            self.become(State.COMPLETING, now_ms)
        else:
            self.protocol = None
            self.become(State.EMPTY, now_ms)

    def choose_protocol(self) -> str:
        """Return the protocol with the most votes, among the protocols that all members support."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]
