"""Check that no zombie writes. A zombie is a producer or group member that another one has replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Committed, Ended, History, Membership, Place, Produced


def no_zombie_writes() -> Check:
    """Check that no write is acknowledged that arrived after its writer had been fenced.

    A producer is fenced when another producer with its transactional id gets an epoch: then its records, offsets and
    ends of transactions are refused. A member of a classic group is fenced when a later generation gets its
    assignments: then the member's commits are refused. A member of the consumer protocol is fenced when it leaves, when
    the group does not know it, or when another member gets a partition that was never revoked from it. A commit with an
    old member epoch is also refused for a partition that was assigned to the member after that epoch.

    Writes that arrived before the fencing may be acknowledged after it. Offsets that a producer commits without its
    group's generation are fenced by the producer's epoch alone; commits without a member are not fenced.
    """

    def look(history: History) -> Verdict:
        owners = [
            owner for owner in history.initialized if owner.error == "NONE" and owner.transactional_id is not None
        ]
        generations: dict[tuple[str, int], float] = {}  # when a generation first got its assignments
        for response in history.memberships:
            if response.api == "SyncGroup" and response.error == "NONE":
                generations.setdefault((response.group, response.generation), response.at)
        count, wrong = 0, []
        for write in _writes(history):
            if write.error != "NONE" or write.since is None:
                continue
            if write.transactional_id is not None:
                count += 1
                fences = [
                    owner.at
                    for owner in owners
                    if owner.transactional_id == write.transactional_id
                    and owner.producer > write.producer
                    and owner.at < write.since
                ]
                writer = f"producer {write.producer[0]} in epoch {write.producer[1]} of {write.transactional_id}"
            elif isinstance(write, Committed) and (write.group, write.generation) in generations:
                count += 1
                fences = [
                    at
                    for (group, generation), at in generations.items()
                    if group == write.group and generation > write.generation and at < write.since
                ]
                writer = f"a member of {write.group} in generation {write.generation}"
            else:
                continue
            if fences:
                wrong.append(
                    f"at {write.since:.3f} s {_what(write)} of {writer}, which was fenced at {min(fences):.3f} s"
                )
        for commit, fenced in _of_consumer_groups(history):
            count += 1
            if fenced is not None:
                writer = f"{commit.member} of {commit.group} in epoch {commit.generation}"
                wrong.append(f"at {commit.since:.3f} s {_what(commit)} of {writer}, which was fenced at {fenced:.3f} s")
        return Verdict(count, "write with a producer's epoch or a group's generation", tuple(wrong))

    return Check("no zombie writes", look)


@dataclass
class _Member:
    """A member of the consumer protocol, according to the responses to its heartbeats."""

    epoch: int = -1
    at: float = 0.0
    """The time at which the member got this epoch."""
    has: dict[Place, int] = field(default_factory=dict)
    """Its partitions, each with the member epoch in which it was assigned."""
    gone: float | None = None
    """The time at which it left, was unknown, or was replaced; None while it is a member."""


def _of_consumer_groups(history: History) -> Iterator[tuple[Committed, float | None]]:
    """Yield (commit, time at which its member was fenced or None) for acknowledged commits in the consumer protocol."""
    heartbeats = [heartbeat for heartbeat in history.memberships if heartbeat.api == "ConsumerGroupHeartbeat"]
    groups: dict[str, dict[str, _Member]] = defaultdict(lambda: defaultdict(_Member))
    commits = [
        (commit.since, commit)
        for commit in history.committed
        if commit.error == "NONE"
        and commit.since is not None
        and commit.transactional_id is None
        and commit.generation >= 0
    ]
    position = 0
    for since, commit in sorted(commits, key=lambda pair: pair[0]):
        while position < len(heartbeats) and heartbeats[position].at < since:
            _follow(groups[heartbeats[position].group], heartbeats[position])
            position += 1
        member = groups[commit.group].get(commit.member) if commit.group in groups else None
        if member is not None:
            had_since = member.has.get((commit.topic, commit.partition), member.epoch)
            stale = commit.generation < had_since
            yield commit, member.gone if member.gone is not None else member.at if stale else None


def _follow(members: dict[str, _Member], heartbeat: Membership) -> None:
    """Update a group's members by the response to a heartbeat."""
    member, at = members[heartbeat.member], heartbeat.at
    if heartbeat.error == "UNKNOWN_MEMBER_ID" or (heartbeat.error == "NONE" and heartbeat.generation < 0):
        member.gone, member.has = at, {}
    elif heartbeat.error == "NONE":
        member.gone = None
        if heartbeat.generation != member.epoch:
            member.epoch, member.at = heartbeat.generation, at
        if heartbeat.assigned is not None:
            member.has = {place: member.has.get(place, member.epoch) for place in heartbeat.assigned}
            for other in members.values():
                if other is not member and not heartbeat.assigned.isdisjoint(other.has):
                    other.gone, other.has = at, {}


def _writes(history: History) -> list[Produced | Committed | Ended]:
    return [*history.produced, *history.committed, *history.ended]


def _what(write: Produced | Committed | Ended) -> str:
    if isinstance(write, Produced):
        return f"{write.topic}-{write.partition} took a record"
    if isinstance(write, Committed):
        return f"{write.topic}-{write.partition} took the commit of offset {write.offset}"
    return f"the {'commit' if write.committed else 'abort'} was taken"
