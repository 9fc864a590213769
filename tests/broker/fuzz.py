"""Hostile bytes for a broker: a corpus of requests, what is made of them, and whether the broker goes on.

    PYTHONPATH=tests python -m broker.fuzz --seconds 600 --seed 7

`make test` has a second of this, always with the same seeds (test_hostile_bytes.py).
"""

from __future__ import annotations

import argparse
import logging
import random
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

from abeyant.broker import Cluster
from abeyant.broker.wire.apis import APIS
from broker.asking import SECOND, asked
from broker.log.batches import batch
from broker.wire import WireClient, encoded
from clients.record import recorded

_LENGTH = struct.Struct(">i")
_EDGES = (0, 1, -1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, -0x8000, 0xFFFF, 1_000_000, 0x7FFF_FFFF, -0x8000_0000)
_PATIENCE = 30.0  # seconds
GOOD = "good"  # the topic of the client that has to be served whatever comes


def corpus(kafka: Cluster) -> list[bytes]:
    """A request that means something, for each API in each version, produces of each codec, and what clients sent."""
    frames = [
        encoded(api.key, version, 1, **asked(api, version, kafka))
        for api in APIS
        for version in range(api.lowest, api.highest + 1)
    ]
    for codec in range(5):
        records = batch([b"value %d" % number for number in range(20)], codec=codec).data
        topic = {"name": "there", "partition_data": [{"index": 0, "records": records}]}
        frames.append(encoded(0, 9, 1, acks=1, timeout=SECOND, topic_data=[topic]))
    return frames + recorded()


def mutated(chance: random.Random, frame: bytes, frames: Sequence[bytes]) -> bytes:
    """A request with some of it changed, and its length as it then is, or a little or far off."""
    data = bytearray(frame)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = chance.randrange(256)
        elif kind == 2:
            size = chance.choice((1, 2, 4, 8))
            edge = chance.choice(_EDGES) & (1 << 8 * size) - 1
            data[at : at + size] = edge.to_bytes(size, "big")
        elif kind == 3:
            data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 100)))
        elif kind == 4:
            del data[at : at + chance.choice((1, 2, 4, 100))]
        else:
            data[at:] = chance.choice(frames)[at:]
    size = len(data)
    if chance.random() < 0.1:
        size = chance.choice((size - 1, size + 1, size + 1000, *_EDGES))
        size = min(max(size, -0x8000_0000), 0x7FFF_FFFF)
    return _LENGTH.pack(size) + data


def hostile(chance: random.Random, frames: Sequence[bytes]) -> bytes:
    """What one connection sends: requests with changes, or nothing but chance."""
    if chance.random() < 0.05:
        data = chance.randbytes(chance.choice((1, 3, 4, 50, 5000)))
        return data if chance.random() < 0.5 else _LENGTH.pack(len(data)) + data
    return b"".join(mutated(chance, chance.choice(frames), frames) for _ in range(chance.choice((1, 1, 1, 5))))


def attack(kafka: Cluster, data: bytes, *, patience: float = 0.0) -> None:
    """Send it on a connection of its own, read for `patience` seconds, and leave."""
    host, _, port = kafka.bootstrap.partition(",")[0].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_PATIENCE) as wire, suppress(OSError):
        wire.sendall(data)
        wire.shutdown(socket.SHUT_WR)
        wire.settimeout(patience or _PATIENCE)
        while wire.recv(65536):
            pass


def serves(client: WireClient, value: bytes) -> bool:
    """Whether another client's record is taken and given back."""
    return unserved(client, value) is None


def unserved(client: WireClient, value: bytes) -> str | None:
    """Why another client's record is not taken or not given back; None where it is.

    The record has the time of now: retention goes by records' own times, and its first turn, 30 s after the broker's
    start, would take older ones away.
    """
    records = batch([value], times=[time.time_ns() // 1_000_000]).data
    topic = {"name": GOOD, "partition_data": [{"index": 0, "records": records}]}
    (answer,) = client.ask(0, 9, acks=-1, timeout=30 * SECOND, topic_data=[topic]).responses
    (produced,) = answer.partition_responses
    if produced.error_code.value:
        return f"its record was refused: {produced.error_code.name}"
    at = {"partition": 0, "fetch_offset": produced.base_offset, "partition_max_bytes": 1_000_000}
    topics = [{"topic": GOOD, "partitions": [at]}]
    response = client.ask(1, 11, max_wait=SECOND, min_bytes=1, max_bytes=1_000_000, session_epoch=-1, topics=topics)
    fetched = response.responses[0].partitions[0]
    if value in fetched.records:
        return None
    return (
        f"its record was taken at {produced.base_offset}, and a fetch there gave {fetched.error_code.name}, with"
        f" {len(fetched.records)} bytes; {_bounds(client)}"
    )


def _bounds(client: WireClient) -> str:
    """From where to where the good client's log goes, as its broker says, and what was set for it."""
    found = []
    for timestamp in (-2, -1):
        asked = {"name": GOOD, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        (row,) = client.ask(2, 1, replica_id=-1, topics=[asked]).topics[0].partitions
        found.append(f"{row.offset} ({row.error_code.name})")
    resource = {"resource_type": 2, "resource_name": GOOD, "configuration_keys": None}
    (said,) = client.ask(32, 1, resources=[resource], include_synonyms=False).results
    given = [f"{one.name}={one.value}" for one in said.configs if one.config_source not in (4, 5)]
    return f"its log goes from {' to '.join(found)}; its settings that are no defaults: {', '.join(given) or 'none'}"


def prepare(kafka: Cluster) -> None:
    """The topics that requests name."""
    kafka.create_topic("there", partitions=2)
    kafka.create_topic(GOOD)
    kafka.create_topic("orders", partitions=2)  # of the clients that were recorded


class Complaints(logging.Handler):
    """Keeps what a broker has no business to say: any error, and any warning but of a connection's end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []
        self.ends = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Sort it."""
        if record.levelno == logging.WARNING and record.getMessage().startswith("connection of"):
            self.ends += 1
        else:
            self.found.append(logging.Formatter("%(name)s: %(message)s").format(record))


def main() -> int:
    """Fuzz for as long as one likes; the status is 1 where something was found."""
    parser = argparse.ArgumentParser(description="Send hostile bytes to a broker of ours.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    complaints = Complaints()
    logging.getLogger().addHandler(complaints)
    logging.lastResort = None
    end = time.monotonic() + args.seconds
    seed = args.seed
    with Cluster() as kafka:
        prepare(kafka)
        frames = corpus(kafka)
        with WireClient(kafka.bootstrap) as good:
            while time.monotonic() < end:
                data = hostile(random.Random(seed), frames)
                began = time.monotonic()
                attack(kafka, data, patience=1.0)
                if (why := unserved(good, b"%d" % seed)) is not None:
                    complaints.found.append(f"the other client was not served: {why}")
                if time.monotonic() - began > 2.0:
                    complaints.found.append(f"it took {time.monotonic() - began:.1f} s")
                for complaint in complaints.found:
                    print(f"seed {seed}: {complaint}\n  {data[:2000].hex()}")
                if complaints.found:
                    return 1
                seed += 1
    print(f"{seed - args.seed:,} connections, {complaints.ends:,} of them ended by the broker, no complaint")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
