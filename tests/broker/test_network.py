"""Messages between brokers: in order, over the end of a turn of the loop too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from abeyant.broker.network import Network


class Receiver:
    """A broker that neither pauses nor stops."""

    def run(self, action: Callable[..., object], *args: Any) -> None:
        action(*args)


def test_what_is_sent_last_is_not_overtaken_where_a_turn_ends_before_it() -> None:
    received: list[object] = []

    async def main() -> None:
        network, receiver = Network(asyncio.get_running_loop()), Receiver()
        for number in range(256):  # a turn
            network.send(receiver, received.append, number)
        network.send_last(receiver, received.append, "last")
        await asyncio.sleep(0)
        assert len(received) == 256
        assert not network.idle
        network.send_last(receiver, received.append, "later")
        await asyncio.sleep(0)
        assert network.idle

    asyncio.run(main())
    assert received == [*range(256), "last", "later"]
