"""Twenty-one mistakes of programs that speak Kafka, each with its mended version: what seeds find, and how fast.

A mistake is one argument of a story; the story's own default is right. Work that is done goes into a list that outlives
the programs, as their database does.
"""

from __future__ import annotations

from dataclasses import dataclass

from abeyant.broker.simulation import Options, RunResult, find_failure
from examples.simulation.programs.consuming import booking, consuming, gathering, relaying
from examples.simulation.programs.passing_on import packing_twice, passing_on
from examples.simulation.programs.producing import producing, shipping
from examples.simulation.programs.shared import Story


@dataclass(frozen=True)
class Mistake:
    """A mistaken program, and the same mended."""

    mistaken: Story
    mended: Story
    faults: tuple[str, ...]


_KILL = ("kill",)
MISTAKES: dict[str, Mistake] = {
    "sent again without idempotence": Mistake(producing(idempotent=False), producing(), ("lose answer",)),
    "a topic with one replica": Mistake(producing(replicas=1), producing(), ("stop",)),
    "marked as sent when only buffered": Mistake(shipping(awaits=False), shipping(), _KILL),
    "marked as sent after an error": Mistake(shipping(gives_up=True), shipping(), ("pause",)),
    "committed before the work": Mistake(consuming(commits="before"), consuming(), _KILL),
    "committed by time": Mistake(consuming(commits="by time"), consuming(), _KILL),
    "committed one too few": Mistake(consuming(commits="one too few"), consuming(), ()),
    "several at once, committed as they end": Mistake(consuming(at_once=3), consuming(), _KILL),
    "a new group begins at the end": Mistake(consuming(reset="latest"), consuming(), ("clog", "delay")),
    "to the end when partitions are assigned": Mistake(consuming(on_assigned="the end"), consuming(), _KILL),
    "a failed order is passed over": Mistake(consuming(failing="passed over"), consuming(failing="tried again"), ()),
    "a failed order is given up": Mistake(consuming(failing="given up"), consuming(failing="tried again"), ()),
    "a dead letter is not awaited": Mistake(
        consuming(failing="put aside, not awaited"), consuming(failing="put aside"), _KILL
    ),
    "commits in a rebalance what it has only gathered": Mistake(gathering(on_revoked="commit"), gathering(), ()),
    "an outbox is sent twice, and booked twice": Mistake(relaying(reader_knows=False), relaying(), _KILL),
    "two instances with one transactional id": Mistake(packing_twice(one_id=True), packing_twice(), ()),
    "begun again without a seek": Mistake(booking(seeks=False), booking(), _KILL),
    "two programs assigned by hand": Mistake(booking(by_hand=True), booking(), ()),
    "no transaction from topic to topic": Mistake(passing_on(transactions=False), passing_on(), _KILL),
    "offsets beside the transaction": Mistake(passing_on(offsets="beside it"), passing_on(), _KILL),
    "reads what is not committed": Mistake(passing_on(downstream="read_uncommitted"), passing_on(), _KILL),
}


def found(name: str, seeds: range, *, any_hashes: bool = False) -> RunResult | None:
    """Return the first run of these seeds that finds a mistake."""
    mistake = MISTAKES[name]
    outcome = find_failure(mistake.mistaken, seeds, options_of(mistake), lambda _: True, any_hashes=any_hashes)
    return outcome if outcome is not None and outcome.failure is not None else None


def options_of(mistake: Mistake) -> Options:
    """Return how a mistake is searched for: with the faults that matter to it."""
    return Options(faults=mistake.faults, horizon=4.0, converge=30.0)
