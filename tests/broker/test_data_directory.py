"""A cluster with a data directory: closed, killed or with one broker stopped, it goes on with what it had (K1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from abeyant.broker import Cluster
from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.journal import Journal
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take
from broker.wire import WireClient


def produce(kafka: Cluster, topic: str, values: list[bytes], partitions: int = 1) -> None:
    with producing(kafka, acks="all") as producer:
        sent = [send(producer, topic, value, index % partitions) for index, value in enumerate(values)]
        assert settle(producer, *sent) == [None] * len(values)


def consume(kafka: Cluster, topic: str, count: int, partitions: int = 1) -> list[bytes]:
    with consuming(kafka, *((topic, index) for index in range(partitions))) as consumer:
        return [message.value() or b"" for message in take(consumer, count)]


def test_records_and_topics_are_there_again(tmp_path: Path) -> None:
    with Cluster(brokers=3, data=tmp_path) as kafka:
        kafka.create_topic("orders", partitions=2, config={"retention.ms": 12_345_000})
        first_id = kafka.controller.cluster_id
        produce(kafka, "orders", [b"%d" % index for index in range(100)], 2)
    with Cluster(brokers=3, data=tmp_path) as kafka:
        assert kafka.controller.cluster_id == first_id
        assert kafka.controller.topics["orders"].settings["retention.ms"] == 12_345_000
        assert sorted(consume(kafka, "orders", 100, 2)) == sorted(b"%d" % index for index in range(100))
        produce(kafka, "orders", [b"more"])
        assert b"more" in consume(kafka, "orders", 101, 2)


def test_a_log_that_cannot_be_kept_tidy_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(clock="held") as kafka:
        for topic in ("bad", "good"):
            kafka.create_topic(topic, config={"retention.ms": 1000})
            produce(kafka, topic, [b"tea"])
        bad = kafka.brokers[1].partitions["bad", 0].log
        monkeypatch.setattr(bad, "delete_old", None)  # a bug, say
        for _ in range(2):
            kafka.clock.advance(301.0)
            produce(kafka, "good", [b"more"])
        kafka.clock.advance(301.0)
        assert (len(kafka.records("bad")), kafka.records("good")) == (1, [])
    assert caplog.text.count("retention of bad-0 failed") == 3  # at 30 s, and every 300 s from then on


def test_brokers_that_are_missing_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=3, data=tmp_path) as kafka:
        kafka.create_topic("orders", partitions=3, replicas=1)
        produce(kafka, "orders", [b"tea"] * 3, 3)
    with Cluster(brokers=1, data=tmp_path) as kafka:
        assert [kafka.leader("orders", index) for index in range(3)] == [1, None, None]
    assert ["brokers 2, 3, which have replicas in the data directory" in one.message for one in caplog.records] == [
        True
    ]
    with Cluster(brokers=3, data=tmp_path) as kafka:
        assert len(kafka.records("orders")) == 3
    assert len(caplog.records) == 1


def test_settings_of_groups_are_there_again(tmp_path: Path) -> None:
    name = "consumer.session.timeout.ms"
    with Cluster(data=tmp_path) as kafka, WireClient(kafka.bootstrap) as client:
        for group, value in (("shop", "50000"), ("bar", "55000"), ("bar", None)):
            step = {"name": name, "config_operation": int(value is None), "value": value}
            resource = {"resource_type": 32, "resource_name": group, "configs": [step]}
            (answer,) = client.ask(44, 1, resources=[resource], validate_only=False).responses
            assert answer.error_code is ErrorCode.none, answer
    with Cluster(data=tmp_path) as kafka:
        assert kafka.controller.groups.names() == ["shop"]
        assert kafka.controller.groups.value("shop", name) == 50_000
        assert kafka.controller.groups.value("bar", name) == 45_000


def test_stopped_broker_comes_back_with_its_log(tmp_path: Path) -> None:
    with Cluster(brokers=3, data=tmp_path) as kafka:
        kafka.create_topic("orders", replicas=3)
        produce(kafka, "orders", [b"a", b"b"])
        kafka.stop(2)
        produce(kafka, "orders", [b"c"])
        size = (tmp_path / "broker-2" / "orders-0" / f"{0:020d}.log").stat().st_size
        assert size > 0
        kafka.start(2)
        produce(kafka, "orders", [b"d"])
        assert consume(kafka, "orders", 4) == [b"a", b"b", b"c", b"d"]


def test_deleted_topic_leaves_no_files(tmp_path: Path) -> None:
    with Cluster(brokers=2, clock="held", data=tmp_path, settings={"log.segment.delete.delay.ms": 60_000}) as kafka:
        kafka.create_topic("orders", replicas=2)
        kafka.delete_topic("orders")
        kafka.clock.advance(59)
        assert len(list(tmp_path.glob("broker-*/orders-0*deleted"))) == 2
        kafka.clock.advance(2)
        assert not list(tmp_path.glob("broker-*/*"))


def test_topic_with_the_longest_name_is_deleted(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka:
        for _ in range(2):  # the second is to go while the first waits for its files' time
            kafka.create_topic("x" * 249)
            kafka.delete_topic("x" * 249)
        assert len(list(tmp_path.glob("broker-1/*.deleted"))) == 2
    with Cluster(data=tmp_path) as kafka:
        assert kafka.topics() == []
        assert not list((tmp_path / "broker-1").iterdir())


def test_retention_by_itself(tmp_path: Path) -> None:
    with Cluster(clock="held", data=tmp_path) as kafka:
        kafka.create_topic("orders", config={"retention.ms": 3_600_000})
        produce(kafka, "orders", [b"a"])
        kafka.clock.advance(3_300)
        log = kafka.brokers[1].partitions["orders", 0].log
        assert log.start_offset == 0
        kafka.clock.advance(700)
        assert (log.start_offset, log.size) == (1, 0)


def test_settings_that_contradict_a_topics(tmp_path: Path) -> None:
    with Cluster(data=tmp_path) as kafka:
        kafka.create_topic("orders", config={"min.compaction.lag.ms": 100})
    with (
        pytest.raises(AbeyantError, match=r"topic .orders. contradicts these settings: conflict.*100.*50"),
        Cluster(data=tmp_path, settings={"log.cleaner.max.compaction.lag.ms": 50}),
    ):
        pass
    with Cluster(data=tmp_path) as kafka:
        assert kafka.topics() == ["orders"]


def test_topic_whose_deletion_was_half_kept_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk has room for the line that deletes it, and no more: it is gone now as it will be at the next start."""
    with Cluster(data=tmp_path) as kafka:
        kafka.create_topic("orders", partitions=2)
        put = Journal.put

        def no_room(journal: Journal, name: str, value: object) -> None:
            if name.startswith("partition/"):
                raise StorageError("cannot write: the disk is full")
            put(journal, name, value)

        monkeypatch.setattr(Journal, "put", no_room)
        kafka.delete_topic("orders")
        assert kafka.topics() == []
        monkeypatch.undo()
    with Cluster(data=tmp_path) as kafka:
        assert kafka.topics() == []


def test_brokers_stop_though_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be kept is not so: the leader stays the one that is stopped, and leads again when it is back."""

    def no_room(*_: object) -> None:
        raise StorageError("cannot write: the disk is full")

    lag = {"replica.lag.time.max.ms": 200}  # who follows a leader that was not replaced notices after that
    with Cluster(brokers=2, data=tmp_path, settings=lag) as kafka:
        kafka.create_topic("orders", partitions=2, replicas=2)
        produce(kafka, "orders", [b"a", b"b"], 2)
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "put", no_room)
            kafka.stop(1)
            assert kafka.brokers[1].stopped
            assert kafka.leader("orders") == 1
            kafka.stop(2)
            kafka.start(2)
            kafka.start(1)
            with pytest.raises(AbeyantError, match="cannot delete topic 'orders': cannot write: the disk is full"):
                kafka.delete_topic("orders")
        produce(kafka, "orders", [b"c", b"d"], 2)
        monkeypatch.setattr(Journal, "put", no_room)
    assert all(broker.stopped for broker in kafka.brokers.values())
    monkeypatch.undo()
    with Cluster(brokers=2, data=tmp_path) as kafka:  # nothing holds the directory
        assert sorted(consume(kafka, "orders", 4, 2)) == [b"a", b"b", b"c", b"d"]


def test_directory_in_use(tmp_path: Path) -> None:
    with Cluster(data=tmp_path), pytest.raises(AbeyantError, match="is in use by process"):
        Cluster(data=tmp_path).open()


@pytest.mark.parametrize("by_itself", [True, False])
def test_compaction(by_itself: bool) -> None:
    settings = {"log.cleaner.backoff.ms": 1000, "auto.create.topics.enable": False}
    config = {"cleanup.policy": "compact", "internal.segment.bytes": 200, "min.cleanable.dirty.ratio": 0.1}
    with Cluster(brokers=2, clock="held", settings=settings) as kafka:
        kafka.create_topic("prices", replicas=2, config=config)
        with producing(kafka, acks="all") as producer:
            for count in range(10):
                assert settle(producer, send(producer, "prices", b"%d" % count, key=b"k%d" % (count % 2))) == [None]
        if by_itself:
            kafka.clock.advance(1.1)  # the cleaner begins with the broker, unlike retention
        else:
            kafka.compact("prices")
        logs = [broker.partitions["prices", 0].log for broker in kafka.brokers.values()]
        left = [[one.base_offset for one in log.read_batches(0, 1 << 30, 10, min_one=True)] for log in logs]
        if by_itself:  # not the last segment, which is still written to
            assert len(left[0]) < 6
        else:
            assert left == [[8, 9], [8, 9]]
        assert [log.end_offset for log in logs] == [10, 10]
        with pytest.raises(AbeyantError, match="no topic 'orders'"):
            kafka.compact("orders")
        kafka.create_topic("orders")
        with pytest.raises(AbeyantError, match=r"topic 'orders': its cleanup.policy does not"):
            kafka.compact("orders")
