"""What becomes of an order when a replica stands still. No Docker, no JVM: `pip install '.[broker]'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .service import Order, OrderService

if TYPE_CHECKING:
    from abeyant.broker import Cluster

TEA = Order("A-1", "tea", 3)


@pytest.fixture
def service(kafka: Cluster) -> OrderService:
    kafka.create_topic("orders", partitions=1, replicas=3, config={"min.insync.replicas": 2})
    return OrderService(kafka.bootstrap)


@pytest.mark.kafka(brokers=3)
def test_an_order_is_accepted(kafka: Cluster, service: OrderService) -> None:
    assert service.place(TEA) == "accepted"
    assert [record.key for record in kafka.records("orders")] == [b"A-1"]


@pytest.mark.kafka(brokers=3)
def test_a_replica_that_stands_still_leaves_it_unknown_and_it_is_settled_later(
    kafka: Cluster, service: OrderService
) -> None:
    assert service.place(Order("A-0", "milk", 1)) == "accepted"  # it knows the cluster now
    with kafka.paused(3):  # as under SIGSTOP: it is in sync still, so acks=all waits for it, and times out
        assert service.place(TEA) == "unknown"
        assert list(service.outbox) == ["A-1"]
    assert service.settle() == {"A-1": "accepted"}
    # Both copies are there: REQUEST_TIMED_OUT does not take back what the leader has written.
    assert [record.key for record in kafka.records("orders")] == [b"A-0", b"A-1", b"A-1"]


@pytest.mark.kafka(brokers=3)
def test_too_few_replicas_refuse_it_and_write_nothing(kafka: Cluster, service: OrderService) -> None:
    kafka.stop(2)
    kafka.stop(3)
    assert service.place(TEA) == "refused"
    assert not service.outbox
    assert kafka.records("orders") == []


@pytest.mark.kafka(brokers=3)
def test_an_answer_that_is_lost_leaves_it_unknown(kafka: Cluster, service: OrderService) -> None:
    kafka.drop("Produce", topic="orders", times=1, response=True)  # written and acknowledged, but nobody hears of it
    assert service.place(TEA) == "unknown"
    assert service.settle() == {"A-1": "accepted"}
    assert len(kafka.records("orders")) == 2
