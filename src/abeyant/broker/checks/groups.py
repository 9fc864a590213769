"""Check that members of a group get partitions, and stay members while they send heartbeats."""

from __future__ import annotations

from collections import Counter

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import History, Membership


def every_member_has_its_share(group: str, members: int | None = None) -> Check:
    """Check that in the end `group` is stable, and each partition of its topics is assigned to one member.

    `members` is the expected number of members; None for any. As in Kafka, a member may be left without a partition if
    the topic has fewer partitions than subscribers, and the members' shares need not be equal.
    """

    def look(history: History) -> Verdict:
        found = history.groups.get(group)
        if found is None:
            return Verdict(0, f"member of {group}")
        missing = [] if found.state == "Stable" else [f"{group} is in {found.state}"]
        if members is not None and len(found.members) != members:
            missing.append(f"{group} has {len(found.members)} of {members} members")
        owners = Counter(place for _, places in found.members.values() for place in places)
        topics = sorted({topic for subscribed, _ in found.members.values() for topic in subscribed})
        for topic in topics:
            count = history.partitions.get(topic, 0)
            for partition in range(count):
                times = owners[topic, partition]
                if times != 1:
                    missing.append(f"{topic}-{partition} has {times or 'none'} of the members of {group}")
            subscribers = [member for member, (subscribed, _) in found.members.items() if topic in subscribed]
            if len(topics) == 1 and len(subscribers) <= count:
                idle = [member for member in subscribers if not found.members[member][1]]
                missing += [f"{member} has no partition of {topic}" for member in idle]
        return Verdict(len(found.members), f"member of {group}", (), tuple(missing))

    return Check(f"every member has its share ({group})", look)


def heartbeats_keep_members(group: str) -> Check:
    """Check that no member of a classic `group` is removed within its session time-out after a heartbeat.

    Allowed, as in Kafka, is the removal of members that leave, whose session the test itself expires, or that do not
    rejoin a rebalance in time. So a heartbeat counts only until the group's next generation.
    """

    def look(history: History) -> Verdict:
        expired = [event.at for event in history.events if event.subject == group]
        sessions: dict[str, float] = {}
        synced: dict[str, int] = {}
        alive: dict[str, tuple[float, int]] = {}  # when a member's heartbeat was answered, and its generation
        latest, seen, wrong = 0, 0, []
        for one in history.memberships:
            if one.group != group:
                continue
            if one.error == "NONE":
                latest = max(latest, one.generation)
            if one.api == "JoinGroup":
                sessions[one.member] = one.session
            elif one.api == "SyncGroup" and one.error == "NONE":
                synced[one.member] = one.generation
            elif one.api == "LeaveGroup":
                alive.pop(one.member, None)
            elif one.api == "Heartbeat" and one.error == "NONE" and synced.get(one.member) == one.generation:
                seen += 1
                alive[one.member] = one.at, one.generation
            if one.error == "UNKNOWN_MEMBER_ID" and one.member in alive:
                at, generation = alive.pop(one.member)
                own_end = any(at <= when <= one.at for when in expired)
                if one.since < at + sessions.get(one.member, 0.0) and generation == latest and not own_end:
                    wrong.append(_forgotten(one, at))
        return Verdict(seen, f"heartbeat of a member of {group}", tuple(wrong))

    return Check(f"heartbeats keep members ({group})", look)


def _forgotten(one: Membership, at: float) -> str:
    after = f"{one.since - at:.1f} s after its heartbeat was answered"
    return f"at {one.since:.3f} s {one.member} was unknown to {one.group}, {after}"
