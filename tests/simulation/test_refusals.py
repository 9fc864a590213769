"""S4: what a simulation does not control is refused by name, in one line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from abeyant import simulation

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: time.sleep(1.5), r"time\.sleep\(1\.5\) would block the loop"),
    (lambda: threading.Thread(target=print, name="worker").start(), r"a simulation cannot start a thread \(worker\)"),
    (lambda: subprocess.run(["true"]), r"a simulation cannot start a subprocess \(\['true'\]\)"),
    (lambda: os.system("true"), r"a simulation cannot start a subprocess \(os\.system\)"),
    (lambda: socket.create_connection(("shop", 80)), r"a simulation cannot open a real socket \(\('shop', 80\)\)"),
    (lambda: socket.socket().connect(("shop", 80)), "a simulated socket cannot bind, connect"),
    (lambda: socket.socket(type=socket.SOCK_DGRAM), "carries TCP only"),
    (lambda: asyncio.get_running_loop().add_reader(0, print), "a simulation cannot watch 0: use asyncio's streams"),
]


@pytest.mark.parametrize(("misuse", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_misuse_is_named(misuse: Callable[[], Any], said: str) -> None:
    async def main() -> None:
        misuse()

    with pytest.raises(simulation.SimulationError, match=said) as caught:
        simulation.run(main, seed=1, any_hashes=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("misuse", "said"), REFUSED[:5], ids=[said for _, said in REFUSED[:5]])
def test_misuse_is_named_where_the_program_catches_it(misuse: Callable[[], Any], said: str) -> None:
    async def main() -> None:
        with contextlib.suppress(Exception):
            misuse()

    with pytest.raises(simulation.SimulationError, match=said):
        simulation.run(main, seed=1, any_hashes=True)


@pytest.mark.parametrize(
    ("misuse", "said"),
    [
        (lambda: asyncio.open_connection("shop", 443, ssl=True), "a simulation has no TLS"),
        (lambda: asyncio.create_subprocess_exec("true"), "a simulation cannot start a subprocess"),
        (lambda: asyncio.open_unix_connection("/tmp/none"), "a simulation has no Unix sockets"),
        (
            lambda: asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol),
            "a simulation cannot send datagrams",
        ),
    ],
)
def test_awaited_misuse_is_named(misuse: Callable[[], Any], said: str) -> None:
    async def main() -> None:
        await misuse()

    with pytest.raises(simulation.SimulationError, match=said):
        simulation.run(main, seed=1, any_hashes=True)


def test_a_client_in_c_is_named() -> None:
    pytest.importorskip("confluent_kafka")
    code = """
import confluent_kafka
from abeyant import simulation

async def main():
    kept.append(make({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))

kept = []
make = lambda options: confluent_kafka.Producer(options)
MAKE
simulation.run(main, seed=1, any_hashes=True)
"""
    # In a process of its own: other tests' clients may still be in this one.
    for make in ("", "make = confluent_kafka.Producer"):  # its name is replaced; what has no name begins threads
        ran = subprocess.run(
            [sys.executable, "-c", code.replace("MAKE", make)], capture_output=True, text=True, check=False
        )
        assert re.search(r"SimulationError: confluent-kafka .* use aiokafka\n", ran.stderr), ran.stderr


def test_a_client_in_c_is_refused_before_it_can_block() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    from confluent_kafka import admin

    made: list[Any] = []

    async def main() -> None:
        for make in (confluent_kafka.Consumer, confluent_kafka.SerializingProducer, admin.AdminClient):
            with pytest.raises(simulation.SimulationError, match=r"confluent-kafka .* use aiokafka"):
                make({"bootstrap.servers": "127.0.0.1:1", "group.id": "work"})
            made.append(make)

    with pytest.raises(simulation.SimulationError, match="use aiokafka"):
        simulation.run(main, seed=1, any_hashes=True)
    assert len(made) == 3
    assert confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "work"}) is not None


def test_a_program_that_cannot_be_simulated_is_named() -> None:
    """By the package of the code that does what is refused: here a stand-in for faust's first step."""
    code = compile("import subprocess; subprocess.run(['file', '-b', 'python'])", "faust/app.py", "exec")

    async def main() -> None:
        exec(code, {"__name__": "faust.app"})

    said = r"faust runs its consumer in a thread .*: use aiokafka \(a simulation cannot start a subprocess \(.*\)\)"
    with pytest.raises(simulation.SimulationError, match=said):
        simulation.run(main, seed=1, any_hashes=True)


def test_a_client_in_c_of_before_the_run_may_begin_threads() -> None:
    """As librdkafka does when a broker is gone: it was not the run that made it."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    make = confluent_kafka.Producer  # the class itself, not by its name, which a run replaces
    kept = [make({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})]

    async def main() -> None:
        kept.append(make({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2", "log_level": 0}))

    assert simulation.run(main, seed=1, any_hashes=True).error is None


@pytest.mark.parametrize("seed", [-1, "7", 1.5, None, True, 2**63])
def test_a_seed_that_is_no_number_is_refused(seed: Any) -> None:
    with pytest.raises(simulation.SimulationError, match="a seed must be a whole number from 0"):
        simulation.run(lambda: asyncio.sleep(0), seed=seed, any_hashes=True)


def test_no_run_inside_of_a_loop() -> None:
    async def main() -> None:
        simulation.run(lambda: asyncio.sleep(0), seed=1, any_hashes=True)

    with pytest.raises(simulation.SimulationError, match="cannot start inside a running event loop"):
        asyncio.run(main())
    with pytest.raises(simulation.SimulationError, match="no simulation is running"):
        simulation.current()
