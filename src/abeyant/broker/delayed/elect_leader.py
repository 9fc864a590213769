"""The operation behind ElectLeaders: it waits until every elected broker has begun to lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation

if TYPE_CHECKING:
    from abeyant.broker.partition_state import PartitionState


class DelayedElectLeader(BrokerOperation):
    """Waits in the ElectLeader purgatory of the broker that got the request, keyed by topic and partition."""

    __slots__ = ("_answer", "_leads", "waiting")

    kind = "ElectLeader"

    def __init__(
        self,
        timeout: float,
        elected: Sequence[PartitionState],
        leads: Callable[[PartitionState], bool],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait for at most `timeout` seconds. `leads` returns whether the elected broker leads a partition by now.

        `answer` is called once; `waiting` then has the partitions whose new leader has not begun to lead.
        """
        super().__init__(timeout, client_id, since)
        self._leads = leads
        self._answer = answer
        self.waiting = list(elected)

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions whose new leader does not lead yet."""
        return ((state.topic, state.partition) for state in self.waiting)

    def try_complete(self) -> bool:
        """Complete when all lead. Kafka: `DelayedElectLeader.tryComplete`."""
        self.waiting = [state for state in self.waiting if not self._leads(state)]
        return not self.waiting and self.force_complete()

    def on_complete(self) -> None:
        """Answer; partitions that are still waiting have timed out."""
        self._answer()
