"""A producer id without epochs left, over an open transaction: it takes 32,766 requests, a minute on genuine Kafka.

On brokers of ours it takes the last 200.
"""

from __future__ import annotations

from ..scenario import Stage, scenario
from .transactions import Till, add, begin, end, init, till

LAST = 32_766  # Kafka keeps 32,767 for itself
AT_ONCE = 200  # requests under way


def exhausted(stage: Stage) -> Till:
    """A producer with the last epoch, in a transaction."""
    one = till(stage)
    stage.brokers.raise_epoch(one.name, LAST - AT_ONCE)
    said = stage.do("InitProducerId", init(one.name), version=5)
    left = waiting = LAST - said["producer_epoch"]
    connection = stage.connect()
    while waiting:
        while left and waiting - left < AT_ONCE:
            connection.send("InitProducerId", 5, init(one.name))
            left -= 1
        said = connection.receive()
        if said["error_code"] != "NONE":
            raise RuntimeError(f"no epoch: {said}")
        waiting -= 1
    one = one.but(epoch=LAST)
    topic = stage.topic()
    stage.do("AddPartitionsToTxn", add(one, topic), version=3)
    return one


@scenario()
def fenced_by_another_producer(stage: Stage) -> None:
    one = exhausted(stage)
    stage.ask("InitProducerId", init(one.name))
    stage.note("the producer that fences it", begin(stage, init(one.name)))
    stage.ask("InitProducerId", init(one.name, producer_id=one.producer_id, producer_epoch=LAST))
    stage.ask("EndTxn", end(one, True))
