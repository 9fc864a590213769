"""Moving a partition to other brokers: the next state of one, by the rules of KRaft's controller.

While it moves it has all replicas, old and new. Once those that are to stay are in sync, the others go.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from abeyant.broker.elections import elected
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.wire.schema import ErrorCode


def begun(state: PartitionState, target: Sequence[int]) -> PartitionState:
    """On its way to `target`; one under way is replaced."""
    present = state.present
    removing = tuple(broker for broker in present if broker not in target)
    replicas = (*target, *removing)
    return state._replace(
        replicas=replicas,
        adding=tuple(broker for broker in target if broker not in present),
        removing=removing,
        partition_epoch=state.partition_epoch + 1,
        isr=tuple(broker for broker in replicas if broker in state.isr),
    )


def taken_back(state: PartitionState, alive: Container[int], *, unclean: bool) -> PartitionState:
    """As before the reassignment that is under way. Raises ApiError where none is, or where it cannot go back."""
    if not state.reassigning:
        raise ApiError(ErrorCode.no_reassignment_in_progress)
    replicas = state.present
    isr = tuple(broker for broker in replicas if broker in state.isr)
    if not isr:
        raise ApiError(ErrorCode.invalid_replica_assignment, "None of the replicas it would go back to are in sync.")
    back = state._replace(replicas=replicas, isr=isr, adding=(), removing=(), partition_epoch=state.partition_epoch + 1)
    return back if back.leader in isr else elected(back, alive, unclean=unclean)


def finished(state: PartitionState, alive: Container[int], *, unclean: bool) -> PartitionState:
    """Without the replicas that are to go, once those that are to stay are in sync; else `state` itself."""
    if not state.reassigning or not set(state.wanted) <= set(state.isr):
        return state
    wanted = state.wanted
    done = state._replace(replicas=wanted, isr=wanted, adding=(), removing=())
    if done.leader not in wanted:
        return elected(done, alive, unclean=unclean)
    # Those that were removed must not fetch any more: a new epoch fences them. (KRaft does the same.)
    return done._replace(leader_epoch=done.leader_epoch + bool(state.removing))
