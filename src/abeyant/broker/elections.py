"""Who leads a partition: the next state of one, by the rules of KRaft's controller. Nothing here remembers anything."""

from __future__ import annotations

from collections.abc import Container

from abeyant.broker.partition_state import NO_LEADER, PartitionState


def changed(state: PartitionState, *, leader: int | None = None, isr: tuple[int, ...] | None = None) -> PartitionState:
    """With another leader or in-sync set; a new leader begins a new epoch."""
    leader = state.leader if leader is None else leader
    return state._replace(
        leader=leader,
        isr=state.isr if isr is None else isr,
        leader_epoch=state.leader_epoch + (leader != state.leader),
        partition_epoch=state.partition_epoch + 1,
    )


def elected(state: PartitionState, alive: Container[int], *, unclean: bool) -> PartitionState:
    """With a leader, if there can be one; else `state` itself. With `unclean` it may be one that is not in sync."""
    for broker in state.replicas:
        if broker in state.isr and broker in alive:
            return changed(state, leader=broker)
    if unclean:
        for broker in state.replicas:
            if broker in alive:
                return changed(state, leader=broker, isr=(broker,))
    return state


def without(state: PartitionState, broker: int, alive: Container[int], *, unclean: bool) -> PartitionState:
    """With a broker out of sync; the last one stays, for nobody else has what was acknowledged."""
    isr = tuple(other for other in state.isr if other != broker) or state.isr
    if state.leader != broker:
        return state if isr == state.isr else changed(state, isr=isr)
    leaderless = state._replace(isr=isr)
    found = elected(leaderless, alive, unclean=unclean)
    return changed(leaderless, leader=NO_LEADER) if found is leaderless else found
