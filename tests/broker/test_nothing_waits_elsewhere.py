"""K7 and K8: what waits is in a purgatory or on the timer, and the clock is read in one place.

Once by reading the sources, and once by counting the turns of a loop whose brokers and clients have nothing to do.
"""

from __future__ import annotations

import ast
import asyncio
import selectors
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

import abeyant.broker
from abeyant.broker import Cluster
from broker.wire import WireClient

BROKER = Path(abeyant.broker.__file__).parent
TIMERS = frozenset({"timer", "_timer"})
CLOCKS = frozenset({"time", "monotonic", "perf_counter", "now", "utcnow", "today"})
BESIDE = ("genuine", "simulation", "control")
"""Not the broker: Apache Kafka's processes, a simulation's faults in virtual time, and waits of HTTP clients."""
RUNNING_CLOCK = "clock.py: self._loop.call_later"
"""A held clock that goes on by itself follows the loop's time."""
SECONDS = 0.4  # of real time in which a loop must not turn
TRIES = 5


def sources() -> dict[str, str]:
    """Return the broker's modules by name, except those of `BESIDE`."""
    found = {str(path.relative_to(BROKER)): path.read_text(encoding="utf-8") for path in BROKER.rglob("*.py")}
    return {name: text for name, text in found.items() if not name.startswith(BESIDE)}


def elsewhere(texts: Mapping[str, str]) -> list[str]:
    """What waits elsewhere, or reads another clock than that of clock.py."""
    return [
        f"{name}: {ast.unparse(node)}"
        for name, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if waits(node) or (name != "clock.py" and reads_a_clock(node))
    ]


def waits(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in ("call_later", "call_at"):
        return ast.unparse(node.value).rpartition(".")[2] not in TIMERS
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func).rpartition(".")[2]
    given = [ast.unparse(one) for one in [*node.args, *(keyword.value for keyword in node.keywords)]]
    if called == "sleep":
        return given != ["0"]  # sleep(0) lets others go first, and waits for nothing
    if called in ("wait", "acquire"):
        return bool(given)
    return called in ("wait_for", "timeout", "timeout_at") or ast.unparse(node.func) == "threading.Timer"


def reads_a_clock(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return False
    return node.value.id in ("time", "datetime") and node.attr.removesuffix("_ns") in CLOCKS


def test_nothing_sleeps_and_one_clock_is_read() -> None:
    assert elsewhere(sources()) == [RUNNING_CLOCK]


@pytest.mark.parametrize(
    "text",
    [
        "async def poll(): await asyncio.sleep(0.1)",
        "time.sleep(1)",
        "sleep(delay)",
        "loop.call_later(1, look)",
        "asyncio.get_running_loop().call_at(due, look)",
        "threading.Timer(1, look).start()",
        "async def look(): await asyncio.wait_for(arrived.wait(), 1)",
        "arrived.wait(timeout=0.1)",
        "started = time.monotonic()",
        "now = datetime.now(UTC)",
    ],
)
def test_what_waits_elsewhere_is_found(text: str) -> None:
    assert len(elsewhere({"planted.py": text})) == 1


class Turns(selectors.DefaultSelector):
    """Counts the turns of its loop."""

    count = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout)
        self.count += 1
        return ready

    def cease(self) -> bool:
        """Whether the loop stands still for a while, now or soon: the last request may be in work yet."""
        for _ in range(TRIES):
            before = self.count
            time.sleep(SECONDS)
            if self.count == before:
                return True
        return False


def test_a_loop_of_brokers_and_clients_that_wait_does_not_turn() -> None:
    """On a held clock: followers' fetches and a client's wait, another client is silent, and nobody looks whether."""
    turns = Turns()

    def clients(kafka: Cluster) -> bool:
        with WireClient(kafka.bootstrap) as fetching, WireClient(kafka.bootstrap) as silent:
            silent.ask(18, 0)
            wanted = {"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0}]}
            fetching.send(1, 4, max_wait=timedelta(minutes=1), min_bytes=1, topics=[wanted])
            kafka.until_waiting("Fetch", 7)  # six followers' as well
            return turns.cease()

    async def serve() -> bool:
        async with Cluster(brokers=3, clock="held") as kafka:
            kafka.create_topic("orders", partitions=100, replicas=3)
            return await asyncio.to_thread(clients, kafka)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
        assert runner.run(serve())


def test_a_loop_that_polls_is_found() -> None:
    turns = Turns()

    async def poll() -> bool:
        async def look() -> None:
            while True:
                await asyncio.sleep(SECONDS / 5)

        polling = asyncio.create_task(look())
        try:
            return await asyncio.to_thread(turns.cease)
        finally:
            polling.cancel()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
        assert not runner.run(poll())
