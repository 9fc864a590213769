"""Features whose levels change: kept by a data directory, and seen by unmodified clients."""

from __future__ import annotations

from pathlib import Path

from abeyant.broker import Cluster
from broker.clients import producing, send, settle
from broker.conformance.client import Connection
from broker.conformance.scenarios.features import API, SAFE, SHARE, TRANSACTIONS, UPGRADE, update

CLIENT = {"client_software_name": "raw", "client_software_version": "1"}


def connect(kafka: Cluster) -> Connection:
    host, _, port = kafka.bootstrap.partition(",")[0].rpartition(":")
    return Connection(host, int(port))


def levels(client: Connection) -> tuple[int, dict[str, int]]:
    said = client.ask("ApiVersions", 4, CLIENT)
    return said["finalized_features_epoch"], {
        row["name"]: row["max_version_level"] for row in said["finalized_features"]
    }


def test_levels_and_their_epoch_are_kept_by_a_data_directory(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka, connect(kafka) as client:
        assert client.ask(API, 2, update((SHARE, 0, SAFE)))["error_code"] == "NONE"
        assert client.ask(API, 2, update((TRANSACTIONS, 1, SAFE)))["error_code"] == "NONE"
        before = levels(client)
    with Cluster(data=tmp_path) as kafka, connect(kafka) as client:
        assert levels(client) == before
        assert client.ask(API, 2, update((SHARE, 1, UPGRADE)))["error_code"] == "NONE"
        epoch, after = levels(client)
        assert (epoch, after[SHARE], after[TRANSACTIONS]) == (before[0] + 1, 1, 1)


def test_a_change_to_the_same_level_is_none() -> None:
    with Cluster() as kafka, connect(kafka) as client:
        before = levels(client)
        assert client.ask(API, 2, update((SHARE, 1, UPGRADE)))["error_code"] == "NONE"
        assert levels(client) == before


def test_transactions_go_on_by_the_protocol_before() -> None:
    """Clients that connect from now on send what Kafka 3 took: AddPartitionsToTxn before each partition."""
    with Cluster() as kafka:
        kafka.create_topic("orders")
        with connect(kafka) as client:
            assert client.ask(API, 2, update((TRANSACTIONS, 0, SAFE)))["error_code"] == "NONE"
        with producing(kafka, transactional_id="till", retries=3) as producer:
            producer.init_transactions(30)
            producer.begin_transaction()
            assert settle(producer, send(producer, "orders", b"tea")) == [None]
            producer.commit_transaction(30)
        assert [record.value for record in kafka.records("orders")] == [b"tea"]
