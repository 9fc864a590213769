"""Levels of loggers (KIP-412): changed for this package only, and restored when the cluster closes."""

from __future__ import annotations

import logging

import pytest

from abeyant.broker import Cluster
from broker.conformance.client import Connection
from broker.conformance.scenarios.configs import DELETE, SET, stepwise
from broker.conformance.scenarios.loggers import ALTER, BROKER_LOGGER

NAME = "abeyant.broker"


def change(kafka: Cluster, *steps: tuple[int, str, str | None], broker: int = 1) -> str:
    host, _, port = kafka.bootstrap.split(",")[broker - 1].rpartition(":")
    with Connection(host, int(port)) as client:
        [row] = client.ask(ALTER, 1, stepwise(BROKER_LOGGER, str(broker), *steps))["responses"]
    return str(row["error_code"])


def test_levels_are_pythons_until_the_cluster_closes() -> None:
    ours, top = logging.getLogger(NAME), logging.getLogger("abeyant")
    before = ours.level, top.level, logging.root.level
    with Cluster(brokers=2) as kafka:
        assert change(kafka, (SET, NAME, "TRACE"), (SET, "root", "ERROR")) == "NONE"
        assert (ours.level, top.level, logging.root.level) == (5, logging.ERROR, before[2])
        assert logging.getLevelName(5) == "TRACE"
        assert change(kafka, (DELETE, NAME, None), broker=2) == "NONE"
        assert (ours.level, ours.getEffectiveLevel()) == (logging.NOTSET, logging.ERROR)
        assert change(kafka, (SET, NAME, "FATAL")) == "NONE"
        assert ours.level == logging.CRITICAL
        assert change(kafka, (SET, "asyncio", "FATAL")) == "INVALID_CONFIG"
    assert (ours.level, top.level, logging.root.level) == before


@pytest.mark.parametrize("first", [0, 1])
def test_clusters_of_one_process_restore_levels_together(first: int) -> None:
    """In whatever order they close."""
    ours = logging.getLogger(NAME)
    before = ours.level
    clusters = [Cluster(), Cluster()]
    with clusters[1 - first]:
        with clusters[first]:
            assert change(clusters[0], (SET, NAME, "ERROR")) == "NONE"
            assert change(clusters[1], (SET, NAME, "FATAL")) == "NONE"
        assert ours.level == logging.CRITICAL
    assert ours.level == before


def test_what_a_broker_logs_is_silenced(caplog: pytest.LogCaptureFixture) -> None:
    """A request that is none is logged, unless the level is above."""

    def broken(kafka: Cluster) -> list[str]:
        caplog.clear()
        host, _, port = kafka.bootstrap.rpartition(":")
        with Connection(host, int(port)) as client:
            client.send_frame(b"\x7f\xff\x00\x00\x00\x00\x00\x01")
            with pytest.raises(Exception):  # noqa: B017, PT011  the connection is closed
                client.receive_frame()
        return [record.message for record in caplog.records if "is not supported" in record.message]

    with Cluster() as kafka:
        assert len(broken(kafka)) == 1
        assert change(kafka, (SET, NAME, "FATAL")) == "NONE"
        assert broken(kafka) == []
        assert change(kafka, (DELETE, NAME, None)) == "NONE"
        assert len(broken(kafka)) == 1
