"""A small order service: an order is accepted once every in-sync replica has it, and never lost in silence.

`acks=all` has three ends, and the service tells them apart:

- the broker acknowledges the order: **accepted**;
- the broker refuses it before it wrote anything: **refused**, the customer may try again;
- the broker says REQUEST_TIMED_OUT, or nothing: **unknown**. The order was written by the leader, and may yet be lost
  or kept. So the service keeps it in its outbox, and `settle` sends it again under the same order number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

from confluent_kafka import KafkaError, Message, Producer

Answer = Literal["accepted", "refused", "unknown"]

_NOTHING_WRITTEN = {KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG}


@dataclass(frozen=True)
class Order:
    """What a customer wants. `number` makes a second copy of it recognisable."""

    number: str
    item: str
    count: int


class OrderService:
    """Places orders in the topic `orders`."""

    def __init__(self, bootstrap: str, *, timeout_ms: int = 1500) -> None:
        """`timeout_ms` is how long the broker may wait for its replicas."""
        self.outbox: dict[str, Order] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "request.timeout.ms": timeout_ms,
                "message.send.max.retries": 0,  # the outbox decides what is sent again
                "linger.ms": 0,
            }
        )

    def place(self, order: Order) -> Answer:
        """Send an order, and wait for what becomes of it."""
        answers: list[Answer] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                answers.append("accepted")
            else:
                answers.append("refused" if error.code() in _NOTHING_WRITTEN else "unknown")

        self.outbox[order.number] = order
        value = json.dumps(asdict(order)).encode()
        self._producer.produce("orders", key=order.number.encode(), value=value, on_delivery=delivered)
        self._producer.flush()
        [answer] = answers
        if answer != "unknown":
            del self.outbox[order.number]
        return answer

    def settle(self) -> dict[str, Answer]:
        """Send everything in the outbox again; return what became of each order."""
        return {number: self.place(order) for number, order in list(self.outbox.items())}
