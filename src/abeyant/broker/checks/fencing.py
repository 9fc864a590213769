"""Nothing is written by a zombie: a producer or a group member whose place another has taken."""

from __future__ import annotations

from abeyant.broker.checks.check import Check, Verdict
from abeyant.broker.checks.history import Committed, Ended, History, Produced


def no_zombie_writes() -> Check:
    """Check that no write is acknowledged that arrived after its writer had been fenced.

    A producer is fenced when another one with its transactional id gets an epoch: then its records, offsets and ends of
    transactions are refused. A member of a classic group is fenced when the next generation has its assignments: then
    its commits are refused. What arrived before, and was answered later, may be acknowledged. Offsets that a producer
    commits without its group's generation are fenced by its epoch alone, and those of no member are not fenced.
    """

    def look(history: History) -> Verdict:
        owners = [one for one in history.initialized if one.error == "NONE" and one.transactional_id is not None]
        generations: dict[tuple[str, int], float] = {}  # when it had its assignments
        for one in history.memberships:
            if one.api == "SyncGroup" and one.error == "NONE":
                generations.setdefault((one.group, one.generation), one.at)
        seen, wrong = 0, []
        for write in _writes(history):
            if write.error != "NONE" or write.since is None:
                continue
            if write.transactional_id is not None:
                seen += 1
                fences = [
                    owner.at
                    for owner in owners
                    if owner.transactional_id == write.transactional_id
                    and owner.producer > write.producer
                    and owner.at < write.since
                ]
                by = f"producer {write.producer[0]} in epoch {write.producer[1]} of {write.transactional_id}"
            elif isinstance(write, Committed) and (write.group, write.generation) in generations:
                seen += 1
                fences = [
                    at
                    for (group, generation), at in generations.items()
                    if group == write.group and generation > write.generation and at < write.since
                ]
                by = f"a member of {write.group} in generation {write.generation}"
            else:
                continue
            if fences:
                wrong.append(f"at {write.since:.3f} s {_what(write)} of {by}, which was fenced at {min(fences):.3f} s")
        return Verdict(seen, "write with a producer's epoch or a group's generation", tuple(wrong))

    return Check("no zombie writes", look)


def _writes(history: History) -> list[Produced | Committed | Ended]:
    return [*history.produced, *history.committed, *history.ended]


def _what(write: Produced | Committed | Ended) -> str:
    if isinstance(write, Produced):
        return f"{write.topic}-{write.partition} took a record"
    if isinstance(write, Committed):
        return f"{write.topic}-{write.partition} took the commit of offset {write.offset}"
    return f"the {'commit' if write.committed else 'abort'} was taken"
