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
        description = history.groups.get(group)
        if description is None:
            return Verdict(0, f"member of {group}")
        missing = [] if description.state == "Stable" else [f"{group} is in {description.state}"]
        if members is not None and len(description.members) != members:
            missing.append(f"{group} has {len(description.members)} of {members} members")
        owners = Counter(place for _, places in description.members.values() for place in places)
        topics = sorted({topic for subscribed, _ in description.members.values() for topic in subscribed})
        for topic in topics:
            count = history.partitions.get(topic, 0)
            for partition in range(count):
                times = owners[topic, partition]
                if times != 1:
                    missing.append(f"{topic}-{partition} has {times or 'none'} of the members of {group}")
            subscribers = [member for member, (subscribed, _) in description.members.items() if topic in subscribed]
            if len(topics) == 1 and len(subscribers) <= count:
                idle = [member for member in subscribers if not description.members[member][1]]
                missing += [f"{member} has no partition of {topic}" for member in idle]
        return Verdict(len(description.members), f"member of {group}", (), tuple(missing))

    return Check(f"every member has its share ({group})", look)


def heartbeats_keep_members(group: str) -> Check:
    """Check that no member of a classic `group` is removed within its session time-out after a heartbeat.

    As in Kafka, a member may be removed if it leaves, if a fault or the test expires its session, or if it does not
    rejoin in time in a rebalance. Because of rebalances, a heartbeat counts only until the group's next generation.
    """

    def look(history: History) -> Verdict:
        expirations = [event.at for event in history.events if event.subject == group]
        sessions: dict[str, float] = {}
        synced: dict[str, int] = {}
        alive: dict[str, tuple[float, int]] = {}  # when a member's heartbeat was answered, and its generation
        latest, count, wrong = 0, 0, []
        for response in history.memberships:
            if response.group != group:
                continue
            if response.error == "NONE":
                latest = max(latest, response.generation)
            if response.api == "JoinGroup":
                sessions[response.member] = response.session
            elif response.api == "SyncGroup" and response.error == "NONE":
                synced[response.member] = response.generation
            elif response.api == "LeaveGroup":
                alive.pop(response.member, None)
            elif (
                response.api == "Heartbeat"
                and response.error == "NONE"
                and synced.get(response.member) == response.generation
            ):
                count += 1
                alive[response.member] = response.at, response.generation
            if response.error == "UNKNOWN_MEMBER_ID" and response.member in alive:
                at, generation = alive.pop(response.member)
                was_expired = any(at <= expiration <= response.at for expiration in expirations)
                if (
                    response.since < at + sessions.get(response.member, 0.0)
                    and generation == latest
                    and not was_expired
                ):
                    wrong.append(_forgotten(response, at))
        return Verdict(count, f"heartbeat of a member of {group}", tuple(wrong))

    return Check(f"heartbeats keep members ({group})", look)


def _forgotten(response: Membership, at: float) -> str:
    after = f"{response.since - at:.1f} s after its heartbeat was answered"
    return f"at {response.since:.3f} s {response.member} was unknown to {response.group}, {after}"
