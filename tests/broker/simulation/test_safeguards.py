"""Safeguards of the broker itself are taken out, one by one: seeds find each by the checks, and nothing with all in.

python tests/broker/simulation/test_safeguards.py  # the table of docs/simulation-checks.md
python tests/broker/simulation/test_safeguards.py alarms 100  # with all safeguards in: it prints each alarm
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker.coordinator import shard as coordinator_shard
from abeyant.broker.coordinator.shard import Shard
from abeyant.broker.groups.classic.protocol import ClassicProtocol
from abeyant.broker.groups.consumer.group import ConsumerGroup
from abeyant.broker.groups.offsets.committed import Offsets
from abeyant.broker.log import producers
from abeyant.broker.log.log import Log
from abeyant.broker.log.producers import Producers
from abeyant.broker.replica.partition import Partition
from abeyant.broker.requests.fetch import FetchReader
from abeyant.broker.simulation import Options, RunResult, Simulation, run_seed
from abeyant.broker.transactions.shard import TransactionShard
from abeyant.broker.transactions.transaction import Status, Transaction
from abeyant.broker.wire.schema import ErrorCode

pytest.importorskip("aiokafka")

if __name__ == "__main__":
    sys.path[:0] = [str(folder) for folder in Path(__file__).parents[2:4]]  # tests, and the checkout with examples

from broker.simulation.raw_stories import aborting, committing_by_epoch
from broker.simulation.stories import (
    committing_once,
    handing_over,
    idling,
    leaving_a_tail,
    left_alone,
    losing_a_leader,
    passing_on,
    taking_over,
    working,
)
from seeds import with_slow

Story = Callable[[Simulation], Awaitable[None]]


def nothing(*_: Any, **__: Any) -> None:
    """A check that lets everything through."""


def raise_to_the_end(partition: Partition, _: object = None) -> bool:
    """The high watermark goes to the leader's own end."""
    if not partition.leads or partition.log.end_offset <= partition.high_watermark:
        return False
    partition.high_watermark = partition.log.end_offset
    partition._notify_followers()
    return True


def acknowledge_at_once(
    _: Any, acks: Any, timeout: float, client_id: str, since: float, answer: Callable[[], object]
) -> None:
    """A coordinator's records are acknowledged before followers have them."""
    for ack in acks:
        ack.error = ErrorCode.none
    answer()


def skip_the_log(shard: Shard) -> None:
    """A new coordinator begins without what its log has."""
    shard.loading = False
    shard.begin()


def commit_anyway(offsets: Offsets, producer_id: int, marker: int, replicated: int, *, commits: bool) -> None:
    """The offsets of an aborted transaction count."""
    end_transaction(offsets, producer_id, marker, replicated, commits=True)


end_transaction = Offsets.end_transaction


def only_check(protocol: ClassicProtocol, group: Any, member_id: str, instance_id: str | None, generation: int) -> None:
    """A heartbeat is checked, and the session goes on."""
    group.require_current(member_id, instance_id, generation)
    if group.state.value == "PreparingRebalance":
        from abeyant.broker.errors import ApiError

        raise ApiError(ErrorCode.rebalance_in_progress)


@dataclass(frozen=True)
class Safeguard:
    """What is taken out, and what finds it."""

    patches: tuple[tuple[Any, str, Any], ...]
    story: Story
    faults: tuple[str, ...]
    check: str
    """The check that is expected to find it; others may as well."""


SAFEGUARDS: dict[str, Safeguard] = {
    "the high watermark waits for followers": Safeguard(
        ((Partition, "raise_high_watermark", raise_to_the_end),), losing_a_leader, (), "acknowledged is readable"
    ),
    "a coordinator's records wait for followers": Safeguard(
        ((coordinator_shard, "wait_for_acks", acknowledge_at_once),), committing_once, ("stop",), "commits are kept"
    ),
    "a new coordinator reads its log": Safeguard(
        ((Shard, "load", skip_the_log),), working, ("coordinator moves",), "commits are kept"
    ),
    "a repeated batch is known": Safeguard(
        ((Producers, "duplicate_of", nothing), (Producers, "_check_sequence", staticmethod(nothing))),
        working, ("lose answer",), "each effect once",
    ),
    "an old producer's epoch is refused": Safeguard(
        ((producers, "_check_epoch", nothing), (Transaction, "_check_producer", nothing)),
        handing_over, (), "no zombie writes",
    ),
    "an old generation's commit is refused": Safeguard(
        ((ClassicProtocol, "require_may_commit", nothing),), working, ("expire",), "no zombie writes"
    ),
    "a heartbeat extends the session": Safeguard(
        ((ClassicProtocol, "heartbeat", only_check), (ClassicProtocol, "keep_alive", nothing)),
        idling, (), "heartbeats keep members",
    ),
    "read_committed ends at the last stable offset": Safeguard(
        ((Partition, "last_stable_offset", property(lambda one: one.high_watermark)),),
        passing_on, ("kill",), "aborted is never seen",
    ),
    "aborted transactions are listed for readers": Safeguard(
        ((FetchReader, "_aborted", lambda *_: []),), passing_on, ("kill",), "aborted is never seen"
    ),
    "offsets of an aborted transaction are dropped": Safeguard(
        ((Offsets, "end_transaction", commit_anyway),), passing_on, ("kill",), "each effect once"
    ),
    "min.insync.replicas are waited for": Safeguard(
        ((Partition, "_set_min_isr", lambda one, _: setattr(one, "min_isr", 1)),),
        left_alone, (), "acknowledged by enough",
    ),
    "a follower cuts off what its leader has not": Safeguard(
        ((Log, "epoch_end", lambda log, epoch: (epoch, log.end_offset)),), leaving_a_tail, (), "replicas agree"
    ),
    "a transaction is aborted at its time-out": Safeguard(
        ((TransactionShard, "_time_out", nothing),), taking_over, (), "each effect once"
    ),
    "the end of a transaction raises the epoch": Safeguard(
        ((Status, "bumps", property(lambda _: False)),), aborting, (), "each effect once"
    ),
    "an old member epoch's commit is refused": Safeguard(
        ((ConsumerGroup, "require_may_commit", nothing),), committing_by_epoch, (), "no zombie writes"
    ),
}  # fmt: skip


@contextlib.contextmanager
def without(safeguard: Safeguard) -> Any:
    """Take a safeguard out for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, replacement in safeguard.patches:
            patch.setattr(owner, name, replacement)
        yield


def options_of(safeguard: Safeguard) -> Options:
    return Options(faults=safeguard.faults, horizon=6.0, converge=30.0)


def found(name: str, seeds: range, *, any_hashes: bool = False) -> RunResult | None:
    """Return the first run in which the check that is expected to finds it."""
    safeguard = SAFEGUARDS[name]
    with without(safeguard):
        for seed in seeds:
            outcome = run_seed(safeguard.story, seed, options_of(safeguard), any_hashes=any_hashes)
            if outcome.failure is not None and outcome.failure.reason.startswith(safeguard.check):
                return outcome
    return None


# Those that take many seeds: docs/simulation-checks.md has how many.
SLOW = (
    "a repeated batch is known",
    "an old producer's epoch is refused",
    "read_committed ends at the last stable offset",
    "aborted transactions are listed for readers",
    "offsets of an aborted transaction are dropped",
)


@pytest.mark.parametrize("name", with_slow(SAFEGUARDS, SLOW))
def test_seeds_find_that_a_safeguard_is_missing(name: str) -> None:
    assert found(name, range(2000), any_hashes=True) is not None, "2,000 seeds did not find it"


STORIES = list(dict.fromkeys((one.story, one.faults) for one in SAFEGUARDS.values()))


def alarms(seeds: range) -> list[str]:
    """Return what the checks find with all safeguards in: nothing is wanted."""
    said = []
    for story, faults in STORIES:
        for seed in seeds:
            failure = run_seed(story, seed, Options(faults=faults, horizon=6.0, converge=30.0)).failure
            if failure is not None:
                said.append(f"{story.__name__}, {faults}, seed {seed}: {failure.message}")
    return said


@pytest.mark.slow
def test_with_all_safeguards_seeds_find_nothing() -> None:
    """In a child with fixed hashes, so that the seeds are the same runs each time."""
    done = subprocess.run([sys.executable, __file__, "alarms", "2"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def main() -> None:
    from abeyant import simulation

    simulation.fix_hashes()
    if sys.argv[1:2] == ["alarms"]:
        for alarm in alarms(range(int(sys.argv[2]))):
            print(alarm)
        return
    print("| safeguard taken out | story, faults | found by | seeds to find it | seconds |")
    print("|---|---|---|--:|--:|")
    for name, safeguard in SAFEGUARDS.items():
        began = time.process_time()
        outcome = found(name, range(1000))
        assert outcome is not None, name
        row = f"`{safeguard.story.__name__}`, {', '.join(safeguard.faults) or 'none'} | {safeguard.check}"
        print(f"| {name} | {row} | {outcome.seed + 1} | {time.process_time() - began:.1f} |", flush=True)


if __name__ == "__main__":
    main()
