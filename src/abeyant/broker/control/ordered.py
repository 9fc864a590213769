"""The state of control over HTTP: the cluster, and the faults that clients have injected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from abeyant.broker.api.faults import Fault

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster

_MOST_KEPT: Final = 1000  # injected faults that can be read, ended ones included


class Control:
    """The cluster, and the faults injected over HTTP."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ordered: dict[int, Fault] = {}

    def keep(self, fault: Fault) -> None:
        """Keep a fault injected over HTTP, so that it can be read after its end. Drop the oldest beyond 1000."""
        self._ordered[fault.id] = fault
        while len(self._ordered) > _MOST_KEPT:
            del self._ordered[next(iter(self._ordered))]

    def faults(self) -> dict[int, Fault]:
        """Return faults by id: all active faults of the cluster, and all faults that `keep` has kept."""
        active = {fault.id: fault for fault in self.cluster.faults()}
        return dict(sorted({**dict(self._ordered), **active}.items()))
