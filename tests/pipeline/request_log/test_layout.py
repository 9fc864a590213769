"""What a log's lines look like, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from abeyant.pipeline.request_log.files import find_logs
from abeyant.pipeline.request_log.layout import KAFKAS, layout, layouts
from pipeline.request_log.kafka_lines import produce
from pipeline.request_log.test_wrapping import OLD, WRAPPED

NAMES = {
    "plain": KAFKAS,
    "Strimzi": "Strimzi's layout",
    "a context before it": "a layout of its own",
    "docker": "Kafka's layout, in docker's json-file",
    "CRI": "Kafka's layout, in CRI",
    "a JSON layout in CRI": "bare messages, in JSON, in CRI",
    "a JSON layout in docker": "bare messages, in log4j2's JSON, in docker's json-file",
    "fluentd": "Kafka's layout, in fluentd's JSON",
    "ECS": "bare messages, in ECS JSON",
    "log4j2's JSON": "bare messages, in log4j2's JSON",
    "CloudWatch": "Kafka's layout, in CloudWatch's JSON",
    "CloudWatch, indented": "Kafka's layout, in indented JSON",
    "a CSV file": "Kafka's layout, in CSV",
    "journald": "Kafka's layout, in journald's JSON",
    "journald, as bytes": "bare messages, in journald's JSON",
    "syslog": "Kafka's layout, in syslog",
    "syslog, RFC 5424": "Kafka's layout, in syslog",
    "flattened": "flattened documents",
    "flattened, in a document": "flattened documents",
    "flattened, names with dots": "flattened documents",
}


@pytest.mark.parametrize("name", NAMES)
def test_each_wrapper_is_named(name: str) -> None:
    assert layout(WRAPPED[name]().decode()) == NAMES[name]


def test_layouts_inside_wrappers_and_old_versions_are_named() -> None:
    strimzi = WRAPPED["Strimzi"]().decode()
    assert layout(f"2026-11-21T10:00:02.000000001Z {strimzi}") == "Strimzi's layout, in kubectl's timestamps"
    docker = '{"log":"' + strimzi.replace('"', '\\"') + '\\n","stream":"stdout"}'
    assert layout(docker) == "Strimzi's layout, in docker's json-file"
    old = f"[2026-11-21 10:00:01,234] DEBUG {OLD} (kafka.request.logger)"
    assert layout(old) == "Kafka's layout of Kafka 1.0 to 2.7"


def test_a_log_that_mixes_layouts_has_all_of_them(tmp_path: Path) -> None:
    for broker, names in {"b1": ["plain", "plain", "docker"], "b2": ["CRI"]}.items():
        (tmp_path / broker).mkdir()
        lines = [b"no request", *(WRAPPED[name]() for name in names)]
        (tmp_path / broker / "kafka-request.log").write_bytes(b"\n".join(lines) + b"\n")
    found = layouts(find_logs(tmp_path))
    assert found == [KAFKAS, NAMES["docker"], NAMES["CRI"]]


def test_a_damaged_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "kafka-request.log.gz").write_bytes(b"\x1f\x8b damaged")
    (tmp_path / "kafka-request.log").write_bytes(produce())
    assert layouts(find_logs(tmp_path, instance=lambda path: path)) == [KAFKAS]
