"""Plan the faults of a run from its seed before the run begins, and inject each at its time.

The kinds of a run and their weights are drawn first (swarm testing): a run with only one kind reaches states that a run
with all kinds never reaches. At most one broker is down at a time, and a broker is stopped only while every replica
is in sync: Kafka promises to survive that. A stopped broker comes back with an empty disk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.checks.history import Event, History
from abeyant.broker.coordinator.topics import INTERNAL, OFFSETS, TRANSACTIONS
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.named import REPLICA_FETCH
from abeyant.errors import AbeyantError
from abeyant.simulation.errors import SimulationError

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.simulation import Process, SimulationLoop
    from abeyant.simulation.chance import Stream

KINDS: Final = (
    "pause", "stop", "clog", "lose", "lose answer", "delay", "fail", "disconnect", "expire", "kill", "clock",
    "leader moves", "coordinator moves",
)  # fmt: skip
THE_FAULTS_END: Final = "the faults end"
_LONGEST: Final = {"pause": 15.0, "stop": 12.0, "clog": 10.0, "delay": 30.0, "kill": 5.0, "clock": 3600.0}  # seconds
_MOST: Final = 5  # faults in a run
_COORDINATORS: Final = {OFFSETS.name: "group coordinator", TRANSACTIONS.name: "transaction coordinator"}
_APIS: Final = (
    "Produce", "Fetch", "OffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "FindCoordinator", "Metadata",
    "OffsetFetch", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn",
    "ListOffsets", "LeaveGroup",
)  # fmt: skip
_FOLLOWERS: Final = {"lose": (REPLICA_FETCH,), "delay": (REPLICA_FETCH,)}  # replication is behind for a while
_ERRORS: Final = {
    "Produce": ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"),
    "Fetch": ("NOT_LEADER_OR_FOLLOWER",),
    "OffsetCommit": ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT"),
    "OffsetFetch": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "JoinGroup": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "SyncGroup": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "Heartbeat": ("NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "InitProducerId": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "AddPartitionsToTxn": ("CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"),
    "AddOffsetsToTxn": ("CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"),
    "TxnOffsetCommit": ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "EndTxn": ("CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"),
}


@dataclass(frozen=True)
class PlannedFault:
    """One fault of a simulation's plan, injected once. The target is chosen when the fault is injected: see `where`.

    `Cluster` has methods for the same faults: "pause" is `pause`, "stop" `stop`, "lose" `drop`, "lose answer"
    `drop(response=True)`, "delay" `delay`, "fail" `fail`, "disconnect" `drop_connections`, "expire" `expire_member`.
    """

    at: float
    """Seconds since the run began."""
    kind: str
    where: float
    """Position of the target among the brokers, processes, members or leader moves that exist then: 0 to below 1."""
    seconds: float
    api: str
    error: str
    times: int


Fault = PlannedFault  # its former name


def plan(stream: Stream, horizon: float, kinds: Sequence[str] = KINDS, most: int = _MOST) -> list[PlannedFault]:
    """Return up to `most` random faults within `horizon` seconds, by time. Raises SimulationError for unknown kinds."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise SimulationError(f"there is no fault {unknown[0]!r}: there are {', '.join(KINDS)}")
    weights = [(kind, stream.draw()) for kind in kinds if len(kinds) == 1 or stream.chance(0.6)]
    faults = []
    for _ in range(stream.below(most + 1) if weights else 0):
        kind = _weighted(stream, weights)
        api = stream.choose([*_ERRORS] if kind == "fail" else (*_APIS, *_FOLLOWERS.get(kind, ())))
        error = stream.choose(_ERRORS[api]) if kind == "fail" else ""
        length = _LONGEST.get(kind, 1.0) * stream.draw() ** 2  # mostly short
        at = 0.0 if kind == "clock" else stream.between(0.05, horizon)
        position, length = stream.draw(), round(length + 0.05, 3)
        faults.append(PlannedFault(round(at, 3), kind, position, length, api, error, 1 + stream.below(3)))
    return sorted(faults, key=lambda fault: fault.at)


def _weighted(stream: Stream, weights: Sequence[tuple[str, float]]) -> str:
    remaining = stream.draw() * sum(weight for _, weight in weights)
    for kind, weight in weights:
        remaining -= weight
        if remaining <= 0:
            return kind
    return weights[-1][0]


class FaultRunner:
    """Injects the faults of a plan into a cluster and its processes, and ends them."""

    def __init__(
        self, loop: SimulationLoop, kafka: Cluster, processes: Callable[[], list[Process]], history: History
    ) -> None:
        """`processes` returns the processes that exist now."""
        self._loop = loop
        self._kafka = kafka
        self._processes = processes
        self._history = history
        self._down: int | None = None
        self._orders: list[Any] = []  # the cluster's faults that may be active
        self._killed: list[Process] = []
        self.quiet = False
        self.struck: Callable[[Any, str], None] | None = None
        """If set, it is called with each request that a fault hits, and with a text that describes the effect."""

    async def run(self, faults: Sequence[PlannedFault]) -> None:
        """Inject each fault at its time."""
        for fault in faults:
            await asyncio.sleep(max(fault.at - self._loop.now, 0.0))
            if self.quiet:
                return
            self._loop.create_task(self._do(fault), name=f"fault {fault.kind}")

    async def _do(self, fault: PlannedFault) -> None:
        act: Callable[[PlannedFault], Awaitable[None]] = getattr(self, f"_{fault.kind.replace(' ', '_')}")
        await act(fault)

    def end(self) -> None:
        """End all faults: resume or start the broker that is down, restart killed processes, unclog the network."""
        self.quiet = True
        self._note(THE_FAULTS_END, "")
        self._loop.network.unclog()
        for order in self._orders:
            order.end()
        if self._down is not None:
            self._raise_broker(self._down)
        while self._killed:
            self._restart(self._killed[0])

    def _note(self, message: str, subject: str, seconds: float | None = None) -> None:
        until = None if seconds is None else self._loop.now + seconds
        self._history.events.append(Event(self._loop.now, message, subject, until))
        self._loop.trace.add(self._loop.now, message)

    # -- brokers

    def _broker(self, fault: PlannedFault) -> int:
        numbers = sorted(self._kafka.brokers)
        return numbers[int(fault.where * len(numbers))]

    async def _pause(self, fault: PlannedFault) -> None:
        number = self._broker(fault)
        if self._down is None:
            self._down = number
            self._note(f"broker {number} pauses for {fault.seconds:g} s", f"broker {number}", fault.seconds)
            self._kafka.pause(number)
            await asyncio.sleep(fault.seconds)
            self._raise_broker(number)

    async def _stop(self, fault: PlannedFault) -> None:
        number = self._broker(fault)
        if self._down is None and self._all_in_sync():
            self._down = number
            self._note(
                f"broker {number} stops for {fault.seconds:g} s, its disk lost", f"broker {number}", fault.seconds
            )
            self._kafka.stop(number)
            await asyncio.sleep(fault.seconds)
            self._raise_broker(number)

    def _raise_broker(self, number: int) -> None:
        """Resume or start the broker if a fault has paused or stopped it; do nothing for a running broker."""
        if self._down == number:
            self._down = None
            if self._kafka.is_stopped(number):
                self._kafka.start(number)
            else:
                self._kafka.resume(number)

    def _all_in_sync(self) -> bool:
        topics = self._kafka.controller.topics.values()
        return all(len(state.isr) == len(state.replicas) for topic in topics for state in topic.partitions)

    async def _clog(self, fault: PlannedFault) -> None:
        number = self._broker(fault)
        message = f"the network of broker {number} stands still for {fault.seconds:g} s"
        self._note(message, f"broker {number}", fault.seconds)
        self._loop.network.clog(self._kafka.brokers[number].port, fault.seconds)

    async def _disconnect(self, fault: PlannedFault) -> None:
        number = self._broker(fault)
        self._note(f"the connections of broker {number} end", f"broker {number}")
        self._kafka.drop_connections(broker=number)

    async def _leader_moves(self, fault: PlannedFault) -> None:
        self._move_leader(fault, [name for name in self._kafka.controller.topics if name not in INTERNAL])

    async def _coordinator_moves(self, fault: PlannedFault) -> None:
        self._move_leader(fault, [name for name in self._kafka.controller.topics if name in INTERNAL])

    def _move_leader(self, fault: PlannedFault, topics: Sequence[str]) -> None:
        """Make another in-sync replica lead one partition of these topics, if there is such a replica."""
        controller = self._kafka.controller
        moves = [
            (state, broker)
            for name in topics
            for state in controller.topics[name].partitions
            for broker in state.isr
            if broker not in (state.leader, self._down)
        ]
        if not moves:
            return
        state, broker = moves[int(fault.where * len(moves))]
        try:
            controller.leaders.move_leader(state, broker)
        except ApiError:  # it is being fenced at this moment
            return
        self._kafka.network.settle()
        role = _COORDINATORS.get(state.topic, "leader")
        partition = f"{state.topic}-{state.partition}"
        self._note(f"the {role} of {partition} moves from broker {state.leader} to {broker}", partition)

    # -- requests

    async def _lose(self, fault: PlannedFault) -> None:
        self._note(f"the next {_times(fault)}{fault.api} is lost", fault.api)
        self._follow(self._kafka.drop(fault.api, times=fault.times), "is lost")

    async def _lose_answer(self, fault: PlannedFault) -> None:
        self._note(f"the answer to the next {_times(fault)}{fault.api} is lost", fault.api)
        self._follow(self._kafka.drop(fault.api, response=True, times=fault.times), "is handled, its answer lost")

    async def _delay(self, fault: PlannedFault) -> None:
        self._note(f"the next {_times(fault)}{fault.api} waits for {fault.seconds:g} s", fault.api)
        order = self._kafka.delay(fault.api, seconds=fault.seconds, times=fault.times)
        self._follow(order, f"waits for {fault.seconds:g} s")

    async def _fail(self, fault: PlannedFault) -> None:
        self._note(f"the next {_times(fault)}{fault.api} is answered with {fault.error}", fault.api)
        order = self._kafka.fail(fault.api, error=fault.error, times=fault.times)
        self._follow(order, f"is answered with {fault.error}")

    def _follow(self, order: Any, effect: str) -> None:
        """Remember an injected fault, so that `end` can end it; call `struck` for each request that the fault hits."""
        self._orders.append(order)
        act, struck = order._act, self.struck
        if struck is not None:

            def noted(call: Any) -> None:
                struck(call, effect)
                act(call)

            order._act = noted

    # -- groups and programs

    async def _expire(self, fault: PlannedFault) -> None:
        members = [
            (group.id, member)
            for broker in self._kafka.brokers.values()
            if not (broker.stopped or broker.paused)
            for shard in broker.group_coordinator.loaded()
            for group in shard.all_groups()
            for member in (shard.members(group.id) or ())
        ]
        if members:
            group, member = members[int(fault.where * len(members))]
            with contextlib.suppress(AbeyantError):  # its coordinator moves at this moment
                self._kafka.expire_member(group, member)

    def _process(self, fault: PlannedFault) -> Process | None:
        living = [process for process in self._processes() if process.running]
        return living[int(fault.where * len(living))] if living else None

    async def _kill(self, fault: PlannedFault) -> None:
        process = self._process(fault)
        if process is not None:
            message = f"{process.name} is killed, and begun again after {fault.seconds:g} s"
            self._note(message, process.name, fault.seconds)
            process.kill()
            self._killed.append(process)
            await asyncio.sleep(fault.seconds)
            self._restart(process)

    def _restart(self, process: Process) -> None:
        if process in self._killed:
            self._killed.remove(process)
            if not process.running:
                process.start()

    async def _clock(self, fault: PlannedFault) -> None:
        ahead = fault.seconds if fault.times == 1 else -fault.seconds
        for process in self._processes():
            process.clock_ahead = ahead
        off = f"{abs(ahead):g} s {'ahead' if ahead > 0 else 'behind'}"
        self._note(f"from their next start, clocks of programs are {off}", "")


def _times(fault: PlannedFault) -> str:
    return "" if fault.times == 1 else f"{fault.times} "


def errors_of(kind: str) -> dict[str, tuple[str, ...]]:
    """Return, by API, the errors that a fault of this kind may answer with; ("",) if it answers with no error."""
    return dict(_ERRORS) if kind == "fail" else dict.fromkeys(_APIS, ("",))


def longest(kind: str) -> float:
    """Return the maximum duration of a fault of this kind in seconds."""
    return _LONGEST.get(kind, 1.0)
