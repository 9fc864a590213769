"""Share consumers of Java, of franz-go and of spring-kafka, unmodified, in share groups of ours."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from abeyant.broker import Cluster
from abeyant.broker.genuine import Kafka, die_with_parent
from clients.java import Programs, compiled
from clients.toolchains import spring_jars
from waiting import wait_until


@pytest.fixture(scope="module")
def share(jars: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return compiled(jars, tmp_path_factory.mktemp("share"), "Share")


@contextmanager
def member(programs: Programs, kafka: Cluster, *settings: str, name: str = "Share") -> Iterator[list[str]]:
    """Start a member, which does with each record what its value says. The list grows by what it gets."""
    line = programs.command(name, kafka.bootstrap, "group", "work", *settings)
    lines: list[str] = []
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader = Thread(target=lambda stream: lines.extend(map(str.rstrip, stream)), args=(process.stdout,))
        reader.start()
        try:
            yield lines
        finally:
            process.stdin.close()
            process.wait(60)
            reader.join(60)


def delivered(*members: list[str]) -> dict[str, list[int]]:
    """The delivery counts of each value, over all members."""
    found = defaultdict(list)
    for lines in members:
        for line in lines:
            if line[0].isdigit():
                _, count, value = line.split(" ", 2)
                found[value].append(int(count))
    return found


def test_java_members_share_a_topic(share: Programs, tmp_path: Path) -> None:
    with Cluster(3) as kafka:
        kafka.create_topic("work", partitions=2)
        kafka._settled(kafka.controller.groups.change, "group", {"share.auto.offset.reset": "earliest"})
        for number, wish in enumerate(["accept", "release", "reject", "always"]):
            kafka.seed("work", [f"{wish} it".encode()], number % 2)
        with member(share, kafka) as one, member(share, kafka, "share.acquire.mode", "record_limit") as other:
            wait_until(lambda: len(delivered(one, other)) == 4 and len(delivered(one, other)["always it"]) == 5)
            assert sorted(delivered(one, other)["release it"]) == [1, 2]
            expected = {f"accept {n}" for n in range(40)}
            for value in sorted(expected):
                kafka.seed("work", [value.encode()], int(value.split()[1]) % 2)
            wait_until(lambda: expected <= delivered(one, other).keys())
            kafka.stop(3)
            kafka.seed("work", [b"accept last"])
            wait_until(lambda: "accept last" in delivered(one, other))
        assert all(counts == [1] for value, counts in delivered(one, other).items() if value in expected)
        assert not [line for line in one + other if line.startswith("failed")]
        wait_until(lambda: not kafka.waiting("ShareLock"))


def sharing(kafka: Cluster) -> dict[str, list[int]]:
    """Write a record for each acknowledgement; return the delivery counts to be."""
    kafka.create_topic("work", partitions=2)
    kafka._settled(kafka.controller.groups.change, "group", {"share.auto.offset.reset": "earliest"})
    for number, wish in enumerate(["accept", "release", "reject", "renew"]):
        kafka.seed("work", [f"{wish} it".encode()], number % 2)
    return {"accept it": [1], "reject it": [1], "renew it": [1], "release it": [1, 2]}


def test_franz_gos_member(go: Path) -> None:
    with Cluster(3) as kafka:
        expected = sharing(kafka)
        line = [str(go), "share", kafka.bootstrap, "group", "work", "5"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert delivered(done.stdout.splitlines()) == expected
        assert kafka.waiting("ShareLock") == []


def test_springs_listener(jars: Kafka, tmp_path: Path) -> None:
    programs = compiled(jars, tmp_path, "SpringShare", also=spring_jars())
    with Cluster(3) as kafka:
        expected = sharing(kafka)
        with member(programs, kafka, name="SpringShare") as lines:
            wait_until(lambda: delivered(lines) == expected)
            wait_until(lambda: not kafka.waiting("ShareLock"))
