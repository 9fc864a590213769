"""Read a broker cluster's state from the window's own thread, so that it is shown even while the loop is blocked.

Nothing here waits for the cluster's loop. The functions read single attributes, and copy collections in one operation
of the interpreter. So if the cluster changes meanwhile, one row may show the change while another does not yet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.api.contents import leaders
from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.purgatory.survey import operations_in, slots_of
from abeyant.window.pacing import Pacer
from abeyant.window.waits import SLICE, Described, PurgatoryView, key_text

if TYPE_CHECKING:
    from abeyant.broker.api.faults import Fault
    from abeyant.broker.broker import Broker
    from abeyant.broker.cluster import Cluster
    from abeyant.broker.groups.shard import GroupShard

ROWS = 60  # partitions, groups or transactions that a page shows
MEMBERS = 12  # members of a group that are listed
_SESSIONS = 4096  # slots of a broker's session timers that are read
_LONG_LISTS = 3  # partitions named in a sentence
_KEYS_READ = 64


def purgatories_of(cluster: Cluster) -> list[PurgatoryView]:
    """Return the purgatories of all brokers that run or are paused."""
    return [
        PurgatoryView(f"broker {broker.id} {purgatory.name}", purgatory, partial(describe, broker), broker.now)
        for broker in list(cluster.brokers.values())
        if not broker.stopped
        for purgatory in broker.purgatories
    ]


def describe(broker: Broker, operation: BrokerOperation, keys: list[str]) -> Described:
    """Return the description of a request that waits in a broker, and of what would complete the request."""
    waiting = operation.describe(0)
    pairs = sorted(waiting.keys[:_KEYS_READ], key=_is_internal)  # internal topics last; otherwise the order is kept
    names = [f"{name}-{part}" if isinstance(part, int) else f"{name} {part}" for name, part in pairs]
    until = _until(operation, names)
    if broker.paused:
        until = f"broker {broker.id} to resume; {until}"
    return Described(waiting.kind, names or keys, waiting.client_id, waiting.since, waiting.deadline, until)


_UNTIL: Final = {
    "DelayedReplicaFetch": "new records on {listed}",
    "DelayedRebalance": "{listed} to join or sync",
    "DelayedHeartbeat": "only the deadline: a heartbeat of {listed} moves it",
    "HeldRequest": "only the deadline: a fault delays it",
    "Throttled": "only the deadline: a quota, a throttle of replicas or a fault holds it",
    "DelayedShareFetch": "records on {listed} that are free to acquire",
    "AcquisitionLock": "acknowledgements of all its records",
    "DelayedElectLeader": "a new leader for {listed}",
    "DelayedPeerResponse": "the other broker's response",
}
"""By class of operation, a text that says what completes it. `_until` computes the text for other classes."""


def _is_internal(key: tuple[str, int | str]) -> bool:
    return key[0].startswith("__")


def _until(operation: Any, names: list[str]) -> str:
    """Return a text that says what would complete the request; "" if unknown."""
    kind = type(operation).__name__
    listed = ", ".join(names[:_LONG_LISTS]) + (" ..." if len(names) > _LONG_LISTS else "")
    if kind in ("DelayedProduce", "DelayedDeleteRecords"):
        return "; ".join(_acks(ack) for ack in list(operation._waiting)[:_LONG_LISTS] if ack.pending) or "its response"
    if kind == "DelayedFetch":
        size = sum(entry.bytes for entry in operation._pending)
        min_bytes = operation._min_bytes
        return f"{min_bytes:,} byte{'s' if min_bytes != 1 else ''} on {listed}, now {size:,}"
    return _UNTIL[kind].format(listed=listed) if kind in _UNTIL else ""


def _acks(pending: Any) -> str:
    """Return a text with the offset that a partition of a Produce or DeleteRecords needs, and the replicas behind."""
    partition, required = pending.partition, pending.required
    if hasattr(pending, "leader_epoch"):
        behind = [
            f"broker {remote.broker} at {max(remote.end, 0):,}"
            for remote in list(partition.remotes.values())
            if remote.broker in partition.state.isr and remote.end < required
        ]
        mark = f"high watermark of {partition} at {required:,}, now {partition.high_watermark:,}"
        return f"{mark} ({', '.join(behind)})" if behind else mark
    return f"log start of every replica of {partition} at {required:,}"


async def look(cluster: Cluster, search: str, internal: bool) -> dict[str, Any]:
    """Return the cluster's brokers, partitions, groups, transactions, faults and clock, as JSON values."""
    search = search.casefold()
    brokers = list(cluster.brokers.values())
    leader_counts = leaders(cluster)
    state: dict[str, Any] = {
        "bootstrap": cluster.bootstrap,
        "clock": _clock(cluster),
        "brokers": [_broker(broker, leader_counts) for broker in brokers],
        "faults": [_fault(fault) for fault in list(cluster._faults.active)],
    }
    pacer = Pacer()
    state["partitions"] = await _partitions(cluster, search, internal, pacer)
    sessions = await _sessions(brokers, pacer)
    state["groups"] = await _groups(cluster, brokers, search, sessions, pacer)
    state["transactions"] = _transactions(brokers, search)
    return state


def _fault(fault: Fault) -> dict[str, Any]:
    misses = sorted(fault._misses.values(), key=lambda miss: -miss.requests)
    return {
        "id": fault.id,
        "what": repr(fault)[8:-1],
        "hits": fault.hits,
        "misses": [str(miss) for miss in misses[:_LONG_LISTS]],
    }


def _clock(cluster: Cluster) -> dict[str, Any]:
    clock = cluster.clock
    now = clock.now()
    upcoming = clock.timer.next_deadline() if clock.held else None  # type: ignore[attr-defined]  # a ManualTimer
    remaining = None if upcoming is None or upcoming == math.inf else max(0.0, upcoming - now)
    return {"held": clock.held, "runs": clock.runs, "now": now, "next": remaining}


def _broker(broker: Broker, leader_counts: Counter[int]) -> dict[str, Any]:
    return {
        "id": broker.id,
        "at": broker.address,
        "state": "stopped" if broker.stopped else "paused" if broker.paused else "running",
        "leads": leader_counts[broker.id],
        "replicas": len(broker.partitions),
        "connections": len(broker.connections),
        "inbox": len(broker._inbox),
        "waiting": sum(purgatory.delayed for purgatory in broker.purgatories),
    }


async def _partitions(cluster: Cluster, text: str, internal: bool, pacer: Pacer) -> dict[str, Any]:
    """Return up to `ROWS` partitions as JSON values; first those with most replicas out of sync or behind."""
    rows = []
    total = 0
    for topic in list(cluster.controller.topics.values()):
        if topic.name.startswith("__") and not internal:
            continue
        total += len(topic.partitions)
        if text and text not in topic.name.casefold():
            continue
        for state in list(topic.partitions):
            rows.append(_partition(cluster, state))
            await pacer.rest()
        if len(rows) > 16 * ROWS:
            break
    matched = len(rows)
    rows.sort(key=lambda row: (-row["behind"], row["topic"], row["partition"]))
    return {"total": total, "matched": matched, "rows": rows[:ROWS]}


def _partition(cluster: Cluster, state: Any) -> dict[str, Any]:
    key = state.topic, state.partition
    leader = cluster.brokers.get(state.leader)
    leading = None if leader is None else leader.partitions.get(key)
    mark = None if leading is None else leading.high_watermark
    replicas = []
    for number in state.replicas:
        broker = cluster.brokers.get(number)
        replica = None if broker is None or broker.stopped else broker.partitions.get(key)
        replicas.append(
            {
                "broker": number,
                "end": None if replica is None else replica.log.end_offset,
                "in_sync": number in state.isr,
                "leads": number == state.leader,
            }
        )
    ends = [entry["end"] for entry in replicas if entry["end"] is not None]
    most = max(ends, default=0)
    return {
        "topic": state.topic,
        "partition": state.partition,
        "leader": state.leader if state.leader >= 0 else None,
        "high_watermark": mark,
        "start": None if leading is None else leading.log.start_offset,
        "min_isr": None if leading is None else leading.min_isr,
        "replicas": replicas,
        "behind": sum(not entry["in_sync"] or entry["end"] is None or entry["end"] < most for entry in replicas),
    }


async def _sessions(brokers: Iterable[Broker], pacer: Pacer) -> dict[tuple[str, str], tuple[float, float]]:
    """Return, by (group, member), the seconds until the member's session expires, and the session time-out."""
    sessions: dict[tuple[str, str], tuple[float, float]] = {}
    for broker in sorted(brokers, key=lambda node: not node.paused):  # those of running brokers last, to replace others
        room = broker.heartbeat_purgatory
        now = broker.now()
        for begin in range(0, min(slots_of(room), _SESSIONS), SLICE):
            for operation, _ in operations_in(room, begin, SLICE):
                waiting = operation.describe(broker.id)
                for group, member in waiting.keys:
                    sessions[group, str(member)] = waiting.deadline - now, waiting.deadline - waiting.since
            await pacer.rest()
    return sessions


async def _groups(
    cluster: Cluster,
    brokers: Iterable[Broker],
    text: str,
    sessions: dict[tuple[str, str], tuple[float, float]],
    pacer: Pacer,
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    total = 0
    for broker in brokers:
        for shard in [] if broker.stopped else broker.group_coordinator.current():
            for group in shard.all_groups():
                total += 1
                if len(rows) < ROWS and text in group.id.casefold():
                    rows.append(_group(cluster, shard, group, sessions))
                    await pacer.rest()
    return {"total": total, "rows": rows}


def _group(
    cluster: Cluster, shard: GroupShard, group: Any, sessions: dict[tuple[str, str], tuple[float, float]]
) -> Any:
    members = []
    for member in list(group.members.values()):
        remaining, seconds = sessions.get((group.id, member.id), (None, None))
        members.append(
            {
                "id": member.id,
                "client": member.client_id,
                "left": None if remaining is None else round(remaining, 3),
                "session": seconds,
            }
        )
    lags = []
    for (topic, partition), offset in list(shard.offsets.all_committed(group.id, shard.replicated)):
        topic_state = cluster.controller.topics.get(topic)
        if topic_state is None or partition >= len(topic_state.partitions):
            continue
        mark = _partition(cluster, topic_state.partitions[partition])["high_watermark"]
        committed = offset.offset
        lag = None if mark is None else max(0, mark - committed)
        lags.append({"topic": topic, "partition": partition, "committed": committed, "lag": lag})
    return {
        "id": group.id,
        "kind": "consumer" if hasattr(group, "target") else "classic",
        "state": getattr(group.state, "shown", None) or str(group.state.value),
        "generation": getattr(group, "generation", None) or getattr(group, "epoch", 0),
        "members": members[:MEMBERS],
        "more": max(0, len(members) - MEMBERS),
        "lag": sum(row["lag"] or 0 for row in lags),
        "lags": lags[:MEMBERS],
    }


def _transactions(brokers: Iterable[Broker], text: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    total = 0
    for broker in brokers:
        for shard in [] if broker.stopped else broker.transaction_coordinator.current():
            for transaction in list(shard.transactions.values()):
                total += 1
                if len(rows) >= ROWS or text not in transaction.id.casefold():
                    continue
                now = transaction.now
                ongoing = now.state.shown == "Ongoing" and now.timeout_ms >= 0
                remaining = (now.started_ms + now.timeout_ms - broker.now_ms()) / 1000 if ongoing else None
                partitions = sorted(key_text(f"{topic}-{index}") for topic, index in now.partitions)
                rows.append(
                    {
                        "id": transaction.id,
                        "state": now.state.shown,
                        "producer": now.producer_id,
                        "epoch": now.epoch,
                        "left": remaining,
                        "timeout": now.timeout_ms / 1000,
                        "partitions": partitions[:_LONG_LISTS],
                    }
                )
    rows.sort(key=lambda row: row["left"] is None)
    return {"total": total, "rows": rows}
