"""A shop that books each payment once, whatever its bank's answers do: found by seeds, without Kafka.

    python -m examples.simulation.outbox

`pay_and_hope` pays again when an answer is lost, and now and then a customer pays twice. `pay_by_number` sends a number
with each payment, by which the bank knows one that it has booked.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from abeyant import simulation

Pay = Callable[[str, int], Coroutine[Any, Any, None]]


class Bank:
    """What survives when the bank's process is killed: its ledger."""

    def __init__(self) -> None:
        self.ledger: list[tuple[str, str]] = []

    async def serve(self) -> None:
        """Book each payment that comes, once if it has a number."""

        async def book(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := (await reader.readline()).decode():
                number, customer = line.split()
                if number == "-" or (number, customer) not in self.ledger:
                    self.ledger.append((number, customer))
                await asyncio.sleep(0.001)
                writer.write(b"booked\n")

        await (await asyncio.start_server(book, "bank", 7000)).serve_forever()


async def request(line: str) -> None:
    """Send a payment until the bank has answered."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("bank", 7000)
            writer.write(line.encode())
            answer = await asyncio.wait_for(reader.readline(), 1)
            writer.close()
            if answer:
                return
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(0.1)


async def pay_and_hope(customer: str, _: int) -> None:
    await request(f"- {customer}\n")


async def pay_by_number(customer: str, number: int) -> None:
    await request(f"{number} {customer}\n")


async def story(pay: Pay) -> None:
    """Ten customers pay, and the bank is killed at a moment of the seed's choice."""
    loop = simulation.current()
    bank = Bank()
    process = loop.process("bank", bank.serve)
    process.start()
    payments = [asyncio.create_task(pay(f"customer-{number}", number)) for number in range(10)]
    await asyncio.sleep(loop.chance.stream("story").between(0, 0.02))
    process.kill()
    await asyncio.sleep(0.5)
    process.start()
    await asyncio.gather(*payments)
    booked = sorted(customer for _, customer in bank.ledger)
    assert booked == [f"customer-{number}" for number in range(10)], f"booked {booked}"


if __name__ == "__main__":
    simulation.fix_hashes()
    print("by number:", simulation.search(lambda: story(pay_by_number), range(200)), "seeds, no customer paid twice")
    try:
        simulation.search(lambda: story(pay_and_hope), range(200))
    except AssertionError as error:
        print("and hope:", error, *error.__notes__, sep="\n  ")
        sys.exit(0)
    sys.exit("no seed found it")
