"""State of control over HTTP: the cluster, and the faults ordered there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.broker.api.faults import Fault

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

_MOST_KEPT: Final = 1000  # faults ordered here that can be read, after their end too


class Control:
    """The cluster, and the faults ordered over HTTP."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ordered: dict[int, Fault] = {}

    def keep(self, fault: Fault) -> None:
        """Keep a fault ordered here, so that it can be read after its end; drop the oldest."""
        self._ordered[fault.id] = fault
        while len(self._ordered) > _MOST_KEPT:
            del self._ordered[next(iter(self._ordered))]

    def faults(self) -> dict[int, Fault]:
        """Return faults by id: all active ones, and those ordered here."""
        active = {fault.id: fault for fault in self.cluster.faults()}
        return dict(sorted({**dict(self._ordered), **active}.items()))
