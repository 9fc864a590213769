"""Kafka without Kafka: what can be refused before any broker is asked. The rest is in tests/real_kafka."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline.sources import connector
from abeyant.pipeline.sources.connector import ConnectorError, coordinate, start_with_connector
from abeyant.pipeline.sources.kafka import KafkaError, check_brokers, read_properties


def test_a_session_without_the_connector_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ConnectorError) as error:
        start_with_connector("local[2]", "test", jars=coordinate())
    assert str(error.value).endswith(f"without the Kafka connector: start it with --packages {coordinate()}")


def test_jars_that_are_given_are_taken(tmp_path: Path) -> None:
    for name in ("a.jar", "b c.jar", "readme.txt"):
        (tmp_path / name).touch()
    jars = [(tmp_path / name).as_uri() for name in ("a.jar", "b c.jar")]
    assert list(connector._named_jars(str(tmp_path))) == [{"spark.jars": ",".join(jars)}]
    assert list(connector._named_jars(f"{tmp_path / 'b c.jar'},{tmp_path / 'a.jar'}")) == [
        {"spark.jars": ",".join(jars[::-1])}
    ]
    assert list(connector._named_jars("org:name:1.0")) == [{"spark.jars.packages": "org:name:1.0"}]
    with pytest.raises(ConnectorError, match="--connector: no such file or directory: nowhere"):
        list(connector._named_jars("nowhere"))


def test_no_connector_at_all_says_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    tried: list[str] = []
    assert list(connector._found_jars(tried)) == [{"spark.jars.packages": coordinate()}]
    assert tried == ["mvn is not on the PATH"]


def test_brokers_are_tried_one_after_the_other() -> None:
    with socket.socket() as listening, socket.socket() as closed:
        for one in (listening, closed):
            one.bind(("127.0.0.1", 0))
        listening.listen()
        open_port, closed_port = listening.getsockname()[1], closed.getsockname()[1]
        check_brokers(f"127.0.0.1:{closed_port}, 127.0.0.1:{open_port}")
        with pytest.raises(KafkaError, match=f"no Kafka broker can be reached: 127.0.0.1:{closed_port}: "):
            check_brokers(f"127.0.0.1:{closed_port}")
    for wrong in ("host", "host:", ":9092", "host:port", ""):
        with pytest.raises(KafkaError, match="is not HOST:PORT"):
            check_brokers(wrong)


def test_settings_are_read_as_kafkas_tools_read_them(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# how we log in\nsecurity.protocol=SASL_SSL\n\n sasl.jaas.config = a b=c; \n")
    assert read_properties(str(file)) == {"security.protocol": "SASL_SSL", "sasl.jaas.config": "a b=c; "}
    file.write_bytes("password=é\n".encode("latin-1"))
    with pytest.raises(KafkaError, match=r"cannot read .*client\.properties: it is not UTF-8"):
        read_properties(str(file))
    with pytest.raises(KafkaError, match=r"cannot read .*nowhere: No such file"):
        read_properties(str(tmp_path / "nowhere"))
