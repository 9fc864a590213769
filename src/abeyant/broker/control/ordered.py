"""What the operations work on: the cluster, and the faults that were ordered over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.broker.api.faults import Fault

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

_MOST_ENDED: Final = 1000  # faults that have ended and can still be read


class Control:
    """What the operations work on: the cluster, and the faults that were ordered over HTTP."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ordered: dict[int, Fault] = {}

    def keep(self, fault: Fault) -> None:
        """Keep a fault that was ordered here, to be read after its end; the oldest are dropped."""
        self._ordered[fault.id] = fault
        while len(self._ordered) > _MOST_ENDED:
            del self._ordered[next(iter(self._ordered))]

    def faults(self) -> dict[int, Fault]:
        """Return the faults by id: those that are active, and those that were ordered here."""
        active = {fault.id: fault for fault in self.cluster.faults()}
        return dict(sorted({**dict(self._ordered), **active}.items()))
